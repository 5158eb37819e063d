"""The frame of every page: one file that fetches nothing and runs nothing but our own script."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ioprism.version import __version__


def shell_page(name: str, *, title: str, data: Mapping[str, Any], connect: bool = False) -> str:
    """Return a self-contained page on the shell.

    Args:
        name: of its folder in frontend/src, and so of its script and style sheet in assets/.
        title: of the window, as plain text.
        data: what the script draws, as JSON values; the one place for names from traces.
        connect: whether the page may ask the server that it came from, and no other.
    """
    style = asset(f"{name}.css")
    script = asset(f"{name}.js")
    policy = (
        f"default-src 'none'; script-src {fingerprint(script)}; style-src {fingerprint(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
        + ("; connect-src 'self'" if connect else "")
    )
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n",
            asset("shell.html"),
            f"<footer>Made by ioprism {html.escape(__version__)}.</footer>\n",
            "<noscript>This page needs JavaScript; the script is part of the page.</noscript>\n",
            f'<script type="application/json" id="data">{embedded(data)}</script>\n',
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def embedded(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the element it stands in, whatever names it holds."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def asset(name: str) -> str:
    """Return the text of a style sheet, script or template."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def fingerprint(text: str) -> str:
    """Return the hash by which a content security policy allows exactly this text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def short(value: float) -> float | None:
    """Round to what the eye can tell apart; None for what is not a number."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded == int(rounded) else rounded
