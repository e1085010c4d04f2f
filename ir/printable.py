"""What comes from a file, made fit to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters spelled out: a name in a model must not drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def size_text(count: int) -> str:
    """``512 B``, ``1.2 KiB``, ``97.7 MiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"
        size /= 1024
    return f"{size:.2f} GiB"


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
