"""What a command prints: one result on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entrepot.ir.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.ir.progress import Progress


@dataclass
class Output:
    """How much is printed, and in which form, as set by the options of every command.

    Attributes:
        as_json: Print one JSON object instead of text.
        quiet: Print only errors; the exit status says the rest.
        verbosity: 1 reports progress from the start, 2 shows tracebacks.
        closed: Standard streams that were closed when the process began.
        claims_input: A model was read from standard input.
        claims_output: A result goes to standard output, and all text to standard error.
    """

    as_json: bool = False
    quiet: bool = False
    verbosity: int = 0
    closed: frozenset[str] = frozenset()
    claims_input: bool = False
    claims_output: bool = False

    def result(self, facts: dict[str, Any], text: Callable[[], RenderableType]) -> None:
        """Print the one result of the command: ``facts`` with ``--json``, else what ``text`` makes."""
        if self.as_json:
            sys.stdout.write(f"{json.dumps(plain(facts), indent=2, allow_nan=False)}\n")
        elif not self.quiet:
            show(text())
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Mention something on standard error."""
        if not self.quiet and not self.as_json:
            print(printable(text), file=sys.stderr)  # noqa: T201 - it is the command line

    @property
    def progress(self) -> Progress:
        """What long-running work reports to: silent when nobody reads it."""
        if self.verbosity:
            return True
        return False if self.quiet or self.as_json else None


def show(renderable: RenderableType) -> None:
    """Print with rich, as wide as the terminal; never folded when the output is a file or a pipe."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=_width())
    console.print(renderable, soft_wrap=isinstance(renderable, str))


def _width() -> int | None:
    """The width in columns; ``None`` for that of the terminal."""
    return None if sys.stdout.isatty() else 4096


def rows(*columns: str, cells: Iterable[Sequence[Any]], title: str = "") -> RenderableType:
    """A table without lines, headed by column names; empty headings make a plain list."""
    from entrepot.ir.tables import Rows

    return Rows(columns, cells, title=title)


def stack(*parts: RenderableType) -> RenderableType:
    """Several things, one below the other."""
    from rich.console import Group

    return Group(*parts)


def plain(value: Any) -> Any:
    """The same in what JSON can represent: tuples become lists, infinities and NaNs strings."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)
