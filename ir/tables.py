"""Tables for terminals of any width: nothing is cut, and what does not fit side by side is stacked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from entrepot.ir.printable import printable

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text

_LEAST = 13
"""The widest column may be folded down to this many characters."""

_GAP = 2


class Rows:
    """Rows of text under headings.

    A table that is too wide folds its widest column. If that is not enough, each row becomes a block of lines, one
    per non-empty cell.

    Args:
        headings: One per column; a table without any is a plain list.
        cells: The rows; every cell is shown as text.
        title: A line above.
        styles: rich's style of a cell, by row and column.
    """

    def __init__(
        self,
        headings: Sequence[str],
        cells: Iterable[Sequence[Any]],
        *,
        title: str = "",
        styles: dict[tuple[int, int], str] | None = None,
    ) -> None:
        self._headings = tuple(headings)
        self._rows = [tuple(printable(str(cell)) for cell in row) for row in cells]
        self._title = printable(title)
        self._styles = styles or {}

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> Iterable[rich.console.RenderableType]:
        from rich.text import Text

        if self._title:
            yield Text(self._title, "bold", overflow="fold")
        widths = self._widths()
        widest = max(range(len(widths)), key=lambda at: (widths[at], at))
        room = options.max_width - sum(widths) + widths[widest] - _GAP * (len(widths) - 1)
        if widths[widest] <= room or room >= _LEAST:
            yield self._table(widest, min(widths[widest], room))
        else:
            yield from self._blocks()

    def _widths(self) -> list[int]:
        from rich.cells import cell_len

        lines = [self._headings, *self._rows]
        texts = ([cell.split("\n") for cell in column] for column in zip(*lines, strict=True))
        return [max(cell_len(line) for cell in column for line in cell) for column in texts]

    def _table(self, widest: int, width: int) -> rich.table.Table:
        from rich.table import Table

        table = Table(show_header=any(self._headings), box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for at, heading in enumerate(self._headings):
            folds = at == widest
            table.add_column(heading, overflow="fold", no_wrap=not folds, width=width if folds else None)
        for row in range(len(self._rows)):
            table.add_row(*(self._text(row, column) for column in range(len(self._headings))))
        return table

    def _text(self, row: int, column: int) -> rich.text.Text:
        from rich.text import Text

        return Text(self._rows[row][column], self._styles.get((row, column), ""), overflow="fold")

    def _blocks(self) -> Iterable[rich.console.RenderableType]:
        """Each row as lines: the first cell, and the others under it with their headings."""
        from rich.padding import Padding
        from rich.text import Text

        headed = any(self._headings)
        for row, cells in enumerate(self._rows):
            for column, cell in enumerate(cells):
                if not cell:
                    continue
                heading = self._headings[column]
                label = Text(f"{heading}: " if heading else "", overflow="fold").append_text(self._text(row, column))
                yield Padding(label, (0, 0, 0, 2 if column else 0), expand=False)
            if headed and row < len(self._rows) - 1:
                yield Text("")
