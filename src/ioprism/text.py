"""Make names from traces harmless to print: they are untrusted."""

from __future__ import annotations

import unicodedata

# Characters that move the cursor, hide text or change its direction.
_DANGEROUS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    """Show every control or format character as an escape, everything else as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def harmless(text: str) -> str:
    """Do the same to each line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _DANGEROUS:
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
