"""Text that comes from a file, made safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters spelled out: a name in a model must not drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
