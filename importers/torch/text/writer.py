"""The text of one forward: a statement per step, over what the module keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from entrepot.importers.torch.beside.needs import OWN, Helpers
from entrepot.importers.torch.dtypes import COMPUTED, FLOATS, NAMES
from entrepot.importers.torch.modules.part import Item, Part
from entrepot.importers.torch.modules.state import State
from entrepot.importers.torch.modules.tree import reference
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import WORDS
from entrepot.importers.torch.text import lane, literals
from entrepot.importers.torch.text.anchors import held_in, is_tensor
from entrepot.importers.torch.text.calls import dim_of, is_chain, write_part, write_run
from entrepot.importers.torch.text.dimensions import Dimensions
from entrepot.importers.torch.text.sizes import Sizes, is_number, of_constant
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.emitting.writer import Style, Support, Writer
from entrepot.runtime.planning.plan import Step, Value

WIDTH = 88


class ModuleWriter(Writer):
    """Writes the forward of one part.

    Args:
        state: Where everything is kept.
        part: What is written.
        support: What control flow needs of tensors.
        forms: How control flow is written.
        helpers: Functions that the file has beside its modules.
        plain: Whether names of values are shortened, so that parts that do the same have the same text.
    """

    def __init__(self, state: State, part: Part, support: Support, forms: Mapping[str, Any], helpers: Helpers, *,
                 plain: bool) -> None:  # fmt: skip
        names = Names((*OWN, *helpers.reserved))
        super().__init__(support, names, helpers, forms, Style(WIDTH - len("    "), deletes=False))
        self.state = state
        self.part = part
        self.helpers = helpers
        self.plain = plain
        self.sizes: dict[Value, Sizes] = {}
        self.turns: set[str] = set()
        self.floating = state.floating
        self.given: dict[Part, dict[Value, Sizes]] = {}
        self._root = state.tree.find(part.path) or state.tree
        self.dimensions = Dimensions(self)

    def enter(self, sizes: Mapping[Value, Sizes], names: Sequence[str] | None) -> None:
        """Name what the part is called with; numbers among it come as numbers."""
        self._given: list[str] = []
        for at, value in enumerate(self.part.inputs):
            if value not in sizes:
                self.values[value] = self.names.fresh(self.stem(value) if names is None else names[at])
        for at, value in enumerate(self.part.inputs):
            known = sizes.get(value)
            if known is None:
                self._given.append(self.values[value])
                continue
            if (found := self._recomputed(known)) is not None:
                self.sizes[value] = found
                continue
            name = self.names.fresh(self.stem(value) if names is None else names[at])
            self._given.append(name)
            if known.items is None:
                self.sizes[value] = replace(known, text=name)
            elif len(known.items) == 1:
                self.sizes[value] = replace(known, items=(name,))
            else:
                self.sizes[value] = replace(known, items=tuple(f"{name}[{n}]" for n in range(len(known.items))))

    def _recomputed(self, known: Sizes) -> Sizes | None:
        """Numbers that are known, or are sizes of what the part is called with."""
        items = tuple(
            item if is_number(item) else self.dimensions.symbol(dim_of(item)) for item in known.items or ("",)
        )
        return replace(known, items=items) if all(items) else None

    # names
    def write(self, value: Value | None) -> str:
        """A new variable for a value, named as in the file."""
        if value is None:
            return "_"
        name = self.values[value] = self.names.fresh(self.stem(value))
        return name

    def stem(self, value: Value) -> str:
        """What a value would be called."""
        name = value.name
        if "/" in name or "::" in name:
            name = re.sub(r"_output_\d+$", "", re.split(r"/|::", name)[-1]).lower()
        return re.sub(r"[._]\d+(?=[._]|$)", "", name) or "x" if self.plain else name

    # reading
    def read(self, value: Value | None, step: Step | None = None, position: int = 0) -> str:
        """The expression that reads a value, as a tensor."""
        if value is None:
            return "None"
        if value in self.values:
            return self.values[value]
        if value in self.sizes:
            return literals.of_numbers(self, self.sizes[value])
        if value in self.state.held:
            return self.kept(value)
        if value.constant is not None:
            return literals.of_constant(self, value)
        raise AssertionError(f"'{value.name}' is read before it is made")

    def count(self, value: Value | None) -> str:
        """A number of Python where it is known as one."""
        known = None if value is None else self.known(value)
        return self.read(value) if known is None or known.items is None else known.items[0]

    def turn(self, value: Value, number: str) -> None:
        """A number of Python."""
        self.turns.add(number)
        self.sizes[value] = Sizes((number,), 0, natural=True)

    def kept(self, value: Value) -> str:
        """The expression for a tensor of the module's state."""
        path, leaf = self.state.held[value]
        text = self.place(path) + f".{leaf}"
        return text + self.state.moved.get(value, "")

    def place(self, path: Sequence[str]) -> str:
        """The expression for a module."""
        return reference(self._root, tuple(path)[len(self.part.path) :])

    def numbers(self, value: Value, step: Step | None = None, position: int = 0) -> Sizes:
        """A value as numbers of Python."""
        if value in self.sizes:
            return self.sizes[value]
        known = of_constant(value) if value not in self.state.held else None
        if known is not None:
            return known
        text = self.read(value, step, position)
        rank = 1 if value.type is None or value.type.shape is None else len(value.type.shape)
        dtype = (value.type.dtype if value.type is not None else None) or ir.DataType.INT64
        if rank == 0:
            return Sizes((f"{text}.item()",), 0, dtype)
        count = value.type.shape[0] if value.type is not None and value.type.shape is not None else None
        if rank == 1 and count == 1:
            return Sizes((f"{text}.item()",), 1, dtype)
        return Sizes(None, 1, dtype, text=f"{text}.tolist()")

    def is_parameter(self, value: Value | None) -> bool:
        """Whether a constant is trained."""
        return self.state.is_parameter(value)

    def is_cut(self, value: Value | None) -> bool:
        """Whether integers were made of floats."""
        return self.state.is_cut(value)

    def is_buffer(self, value: Value) -> bool:
        """Whether the file says that a constant was a buffer."""
        return self.state.is_buffer(value)

    def exists(self, value: Value | None) -> bool:
        """Whether a constant is a tensor of the module's state."""
        return value in self.state.held

    def is_natural(self, value: Value | None) -> bool:
        """Whether no element can be below 0."""
        return value is not None and value.constant is not None and bool((value.constant >= 0).all())

    def computed_by_torch(self, dtype: ir.DataType) -> bool:
        """Whether torch computes with a type."""
        return dtype in COMPUTED

    # what forwards begin with
    def device(self) -> str:
        """The device that everything is on."""
        anchor = self._anchor()
        return f"{anchor}.device" if anchor else ""

    def dtype(self) -> str:
        """The type that the module computes in."""
        anchor = self._anchor(FLOATS)
        return f"{anchor}.dtype" if anchor else NAMES[ir.DataType.FLOAT]

    def dtype_name(self, dtype: ir.DataType) -> str:
        """An element type."""
        return self.dtype() if dtype == self.floating else NAMES.get(dtype, NAMES[ir.DataType.FLOAT])

    def _anchor(self, kinds: frozenset[ir.DataType] = frozenset()) -> str:
        given = [value for value in self.part.inputs if value in self.values and value not in self.sizes]
        return next((self.values[value] for value in given if is_tensor(value, kinds)), "") or held_in(
            self._root, kinds
        )

    def helper(self, name: str) -> str:
        """The name of a function that the file has."""
        return self.helpers.need(name)

    # writing
    def forward(self) -> list[str]:
        """The whole method."""
        given = ", ".join(["self", *self._given])
        with self.indented(f"def forward({given}):"):
            checks = self.dimensions.checks()
            self.items(self.part.items)
            self._root.chained |= not checks and is_chain(self)
            results = [self.read(value) for value in self.part.outputs]
            self.line(f"return {', '.join(results) or 'None'}")
        head = next(at for at, line in enumerate(self.lines) if line.endswith(":")) + 1
        body = self.lines[head:]
        return [*self.lines[:head], *checks, *(line[4:] for line in self.dimensions.openings(body)), *body]

    def items(self, items: Sequence[Item]) -> None:
        """Calls of other parts, and steps."""
        for item in items:
            if isinstance(item, Step):
                self.step(item)
            elif isinstance(item, Part):
                write_part(self, item)
            else:
                write_run(self, item)

    def gap(self) -> None:
        """A blank line, but not two, nor at the beginning of a suite."""
        if self.lines and self.lines[-1] and not self.lines[-1].endswith(":"):
            self.lines.append("")

    def step(self, step: Step) -> None:
        """One step, and what is inside it."""
        form = self._forms.get(step.op_type) if step.traits.control_flow and step.domain == "" else None
        if form is not None:
            form(self, step)
        elif not self._sized(step):
            self._call(step)

    def steps(self, block: Any) -> None:
        """The steps of a block within a step."""
        for step in block.steps:
            self.step(step)

    def _sized(self, step: Step) -> bool:
        """Whether a step computes numbers of Python, which are then written as such."""
        if step.is_a("Split"):
            return self._parted(step)
        out = step.outputs[0] if len(step.outputs) == 1 else None
        if out is None or step.domain:
            return False
        if step.op_type == "Shape":
            made = self.dimensions.of_shape(step)
        elif step.op_type == "SequenceLength":
            made = Sizes((f"len({self.read(step.inputs[0])})",), 0, natural=True)
        else:
            given = [None if value is None else self.known(value) for value in step.inputs]
            made = None if any(g is None and v is not None for g, v in zip(given, step.inputs, strict=True)) else (
                lane.computed(step, given)
            )  # fmt: skip
        if made is None:
            return False
        self.sizes[out] = self.dimensions.named(made, out)
        return True

    def _parted(self, step: Step) -> bool:
        """Whether Split takes numbers apart."""
        parts = lane.parted(step, [None if value is None else self.known(value) for value in step.inputs])
        for value, part in zip(step.outputs, parts or (), strict=False):
            if value is not None:
                self.sizes[value] = part
        return parts is not None

    def known(self, value: Value) -> Sizes | None:
        """A value as numbers of Python, if no tensor has to be read for them."""
        if value in self.sizes:
            return self.sizes[value]
        return None if value in self.state.held else of_constant(value)

    def _call(self, step: Step) -> None:
        op = Op(self, step)
        text = self._layer(op, step)
        text = self._word(op, step) if text is None else text
        text = self.helpers.kernel(op) if text is None else text
        if text:
            self.line(f"{', '.join(self._target(value) for value in step.outputs)} = {text}")

    def _target(self, value: Value | None) -> str:
        return self.write(value)

    def _layer(self, op: Op, step: Step) -> str | None:
        found = self.state.layers.get(step)
        return None if found is None else found[0].call(op, self.place(found[1]) if found[1] else "super().forward")

    def _word(self, op: Op, step: Step) -> str | None:
        entry = WORDS.find(*step.key)
        if entry is None or not all(self._is_computed(value) for value in (*step.inputs, *step.outputs)):
            return None
        before = len(self.lines)
        text = entry.function(op)
        if text is None or op.overlooked:
            text = None
            del self.lines[before:]
        return text

    def _is_computed(self, value: Value | None) -> bool:
        if value is None:
            return True
        known = value.type
        for kind in ("optional", "sequence"):
            if known is not None and known.kind == kind:
                known = known.element
        return known is not None and known.kind == "tensor" and known.dtype in COMPUTED
