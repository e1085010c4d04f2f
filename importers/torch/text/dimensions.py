"""The variables of a forward that are sizes of tensors, or numbers computed from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from entrepot.importers.torch.text.sizes import Sizes
from entrepot.runtime.planning.plan import Step, Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter

Saved = tuple[dict[Value, dict[int, str]], dict[str, str], dict[str, str]]


class Dimensions:
    """Sizes as variables: one for all axes of a name.

    Args:
        writer: The forward, which gets a line for each variable where it is first needed.

    Attributes:
        symbols: The variable for each size that the model has a name for.
        made: The variable for each expression.
    """

    def __init__(self, writer: ModuleWriter) -> None:
        self._writer = writer
        self.symbols: dict[str, str] = {}
        self.made: dict[str, str] = {}
        self._spare: dict[Value, dict[int, str]] = {}
        self._tops: dict[Value, dict[int, str]] = {}

    def size(self, value: Value | None, axis: int) -> str:
        """The expression for a size of a tensor: a number, or a variable that all of that name share."""
        assert value is not None
        shape = () if value.type is None or value.type.shape is None else value.type.shape
        dim = shape[axis] if axis < len(shape) else None
        if isinstance(dim, int):
            return str(dim)
        if isinstance(dim, str) and (found := self.symbol(dim)):
            return found
        known = self._spare.setdefault(value, {})
        if axis not in known:
            known[axis] = self._writer.names.fresh(
                dim if isinstance(dim, str) and dim.isidentifier() else f"{self._writer.stem(value)}_size"
            )
            self._writer.line(f"{known[axis]} = {self._writer.read(value)}.shape[{axis}]")
            if isinstance(dim, str):
                self.symbols[dim] = known[axis]
        return known[axis]

    def symbol(self, dim: str) -> str:
        """The variable for a size that the model has a name for, if an input of this forward has it."""
        if dim not in self.symbols:
            for value in self._writer.part.inputs:
                shape = () if value.type is None or value.type.shape is None else value.type.shape
                if value in self._writer.values and value not in self._writer.sizes and dim in shape:
                    name = self.symbols[dim] = self._writer.names.fresh(dim if dim.isidentifier() else "size")
                    self._tops.setdefault(value, {})[shape.index(dim)] = name
                    break
        return self.symbols.get(dim, "")

    def named(self, sizes: Sizes, value: Value) -> Sizes:
        """Computed numbers as variables."""
        if sizes.items is None:
            return sizes
        items = []
        for item in sizes.items:
            if re.fullmatch(r"[\w.\[\]]+|-\d+|float\(\"[-\w]+\"\)|float\(\w+\)", item):
                items.append(item)
                continue
            if item not in self.made:
                name = self._writer.names.fresh(self._writer.stem(value))
                self._writer.line(f"{name} = {item}")
                self.made[item] = name
            items.append(self.made[item])
        return Sizes(tuple(items), sizes.rank, sizes.dtype, sizes.natural)

    def of_shape(self, step: Step) -> Sizes | None:
        """What Shape makes: a variable for each axis, or all of them at once where the rank is not known."""
        value = step.inputs[0]
        known = None if value is None else value.type
        start, end = step.attributes.get("start", 0), step.attributes.get("end")
        if value is None or known is None or known.kind != "tensor":
            return None
        if (numbers := self._writer.sizes.get(value)) is not None:
            return None if numbers.items is None else _lengths(numbers, start, end)
        if known.shape is None:
            some = "" if (start, end) == (0, None) else f"[{start or ''}:{'' if end is None else end}]"
            return Sizes(None, 1, natural=True, text=f"{self._writer.read(value)}.shape{some}")
        axes = range(len(known.shape))[slice(start, end)]
        if value.constant is not None:
            return Sizes(tuple(str(value.constant.shape[axis]) for axis in axes), 1, natural=True)
        return Sizes(tuple(self.size(value, axis) for axis in axes), 1, natural=True)

    def openings(self, body: Sequence[str]) -> list[str]:
        """``b, t = x.shape[:2]``, for the sizes of inputs that the lines below read."""
        lines = []
        words = {word for line in body for word in re.findall(r"\w+", line)}
        for value, asked in self._tops.items():
            found = {axis: name for axis, name in asked.items() if name in words}
            if not found:
                continue
            rank, last = len(value.type.shape or ()) if value.type else 0, max(found) + 1
            if len(found) == 1:
                ((axis, name),) = found.items()
                lines.append(f"        {name} = {self._writer.values[value]}.shape[{axis}]")
                continue
            targets = ", ".join(found.get(axis, "_") for axis in range(last))
            lines.append(
                f"        {targets} = {self._writer.values[value]}.shape{'' if last == rank else f'[:{last}]'}"
            )
        return lines

    def checks(self) -> list[str]:
        """Refusals of sizes that the export had to fix: what the file computes from others is wrong."""
        writer = self._writer
        given = () if writer.part.path else writer.state.plan.fixed
        sizes = [(f"{writer.values[value]}.shape[{axis}]", size) for value, axis, size in given]
        return [f'    torch._check({text} == {size}, lambda: "{text} must be {size}")' for text, size in sizes]

    def save(self) -> Saved:
        """What is known before a body is written."""
        return {value: dict(found) for value, found in self._spare.items()}, dict(self.symbols), dict(self.made)

    def restore(self, saved: Saved) -> None:
        """Forget the variables of a body, as it may not run; those of inputs stay."""
        self._spare, symbols, self.made = saved
        tops = {name for found in self._tops.values() for name in found.values()}
        self.symbols = {dim: name for dim, name in self.symbols.items() if dim in symbols or name in tops}


def _lengths(numbers: Sizes, start: int, end: int | None) -> Sizes:
    """The shape of numbers that are written one by one."""
    shape = (str(len(numbers.items or ())),) if numbers.rank else ()
    return Sizes(shape[start:end], 1, natural=True)
