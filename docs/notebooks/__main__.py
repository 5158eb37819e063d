"""Run every notebook and keep what it shows: `make notebooks`."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def run(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run a notebook in a folder of its own."""
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=120, resources=resources, record_timing=False)
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        ran: nbformat.NotebookNode = client.execute(env={**os.environ, "PYTHONPATH": path})
        return ran


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(nbformat.read(path, as_version=4)), path)
