"""Which paths may a client ask about? Those in the folders that were given, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ioprism.errors import UsageError
from ioprism.text import printable


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders whose content may be read; links that lead out of them are not followed."""

    roots: tuple[Path, ...]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Folders:
        """Resolve folders once, so that a link changed later opens nothing new.

        Raises:
            UsageError: one of them is not a folder.
        """
        roots = tuple(path.resolve() for path in paths)
        for root in roots:
            if not root.is_dir():
                raise UsageError(f"{printable(str(root))} is not a folder.")
        return cls(roots)

    def allowed(self, name: str) -> Path:
        """Return the path that a client names; relative names start at each folder.

        Raises:
            UsageError: it lies outside, leads outside, or does not exist.
        """
        meant = ((root / name).resolve() for root in self.roots)
        found = next((path for path in meant if self._holds(path) and path.exists()), None)
        if found is None:
            where = ", ".join(map(str, self.roots))
            raise UsageError(
                f"{printable(name)} is not in the folders that are served.\n"
                f"Hint: name a file or a folder in {printable(where)}."
            )
        self._check_below(found)
        return found

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.roots)

    def _check_below(self, folder: Path) -> None:
        if not folder.is_dir():
            return
        for path in folder.rglob("*"):
            if path.is_symlink() and not self._holds(path.resolve()):
                raise UsageError(
                    f"{printable(str(path))} points outside the folders that are served.\n"
                    "Hint: serve the folder it points to as well."
                )
