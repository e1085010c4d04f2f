"""The text of one forward: a statement per step, over what the module keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from entrepot.importers.torch import lane
from entrepot.importers.torch.dtypes import COMPUTED, FLOATS, NAMES
from entrepot.importers.torch.needs import OWN, Helpers
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.part import Item, Part, Run
from entrepot.importers.torch.sizes import Sizes, is_number, of_constant
from entrepot.importers.torch.state import State
from entrepot.importers.torch.table import WORDS
from entrepot.importers.torch.tree import reference
from entrepot.ir.errors import UnsupportedOpError
from entrepot.runtime.names import Names
from entrepot.runtime.plan import Step, Value
from entrepot.runtime.writer import Style, Support, Writer

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
        super().__init__(support, names, helpers, forms, Style(WIDTH, deletes=False))
        self.state = state
        self.part = part
        self.helpers = helpers
        self.plain = plain
        self.sizes: dict[Value, Sizes] = {}
        self.floating = state.floating
        self.given: dict[Part, dict[Value, Sizes]] = {}
        self._root = state.tree.find(part.path) or state.tree
        self.made: dict[str, str] = {}
        self._spare: dict[Value, dict[int, str]] = {}
        self._tops: dict[Value, dict[int, str]] = {}
        self.symbols: dict[str, str] = {}

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
        items = tuple(item if is_number(item) else self.symbol(_dim(item)) for item in known.items or ("",))
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
        return re.sub(r"_\d+(?=_|$)", "", name) or "x" if self.plain else name

    # reading
    def read(self, value: Value | None, step: Step | None = None, position: int = 0) -> str:
        """The expression that reads a value, as a tensor."""
        if value is None:
            return "None"
        if value in self.values:
            return self.values[value]
        if value in self.sizes:
            return self._as_tensor(value)
        if value in self.state.held:
            return self.kept(value)
        if value.constant is not None:
            return self._literal(value)
        raise AssertionError(f"'{value.name}' is read before it is made")

    def kept(self, value: Value) -> str:
        """The expression for a tensor of the module's state."""
        path, leaf = self.state.held[value]
        text = self.place(path) + f".{leaf}"
        return text + self.state.moved.get(value, "")

    def place(self, path: Sequence[str]) -> str:
        """The expression for a module."""
        return reference(self._root, tuple(path)[len(self.part.path) :])

    def _as_tensor(self, value: Value) -> str:
        sizes = self.sizes[value]
        plain = sizes.dtype == ir.DataType.INT64 and sizes.items != ()
        dtype = "" if plain else f", dtype={self.dtype_name(sizes.dtype)}"
        device = self.device()
        return f"torch.tensor({sizes}{dtype}{f', device={device}' if device else ''})"

    def _literal(self, value: Value) -> str:
        array = value.constant
        sizes = of_constant(value)
        if array.dtype == object or sizes is None:
            return self.helpers.constant(value, None, 0)
        if array.size == 0:
            dtype, device = self.dtype_name(ir.DataType.from_numpy(array.dtype)), self.device()
            return f"torch.zeros({tuple(array.shape)}, dtype={dtype}{f', device={device}' if device else ''})"
        self.sizes[value] = sizes
        text = self._as_tensor(value)
        del self.sizes[value]
        return text

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
        anchor = self._anchor(frozenset(), with_part=True)
        return f"{anchor}.device" if anchor else ""

    def dtype(self) -> str:
        """The type that the module computes in."""
        anchor = self._anchor(FLOATS)
        return f"{anchor}.dtype" if anchor else NAMES[ir.DataType.FLOAT]

    def dtype_name(self, dtype: ir.DataType) -> str:
        """An element type."""
        return self.dtype() if dtype == self.floating else NAMES.get(dtype, NAMES[ir.DataType.FLOAT])

    def _anchor(self, kinds: frozenset[ir.DataType], *, with_part: bool = False) -> str:
        """A tensor that is surely there."""
        for value in self.part.inputs:
            known = value.type
            if value not in self.values or value in self.sizes or known is None or known.kind != "tensor":
                continue
            if not kinds or known.dtype in kinds:
                return self.values[value]
        for path, node in self._root.walk():
            layer = node.layer
            for name in () if layer is None else layer.tensors:
                if name not in layer.buffers:  # type: ignore[union-attr]
                    return f"{reference(self._root, path)}.{name}"
            for name, held in node.held.items():
                if not kinds or ir.DataType.from_numpy(held.array.dtype) in kinds:
                    return f"{reference(self._root, path)}.{name}"
        return ""

    def helper(self, name: str) -> str:
        """The name of a function that the file has."""
        return self.helpers.need(name)

    # writing
    def forward(self) -> list[str]:
        """The whole method."""
        given = ", ".join(["self", *self._given])
        with self.indented(f"def forward({given}):"):
            self.items(self.part.items)
            self._root.chained |= self._is_chain()
            results = [self.read(value) for value in self.part.outputs]
            self.line(f"return {', '.join(results) or 'None'}")
        head = next(at for at, line in enumerate(self.lines) if line.endswith(":")) + 1
        return [*self.lines[:head], *(line[4:] for line in self._openings()), *self.lines[head:]]

    def _is_chain(self) -> bool:
        """Whether the module is a list that runs its items one after another, and does nothing else."""
        run = self.part.items[0] if len(self.part.items) == 1 else None
        if not isinstance(run, Run) or run.path != self.part.path or not run.whole:
            return False
        return self.part.inputs == run.inputs[:1] and self.part.outputs == run.outputs and len(run.inputs) == 1

    def items(self, items: Sequence[Item]) -> None:
        """Calls of other parts, and steps."""
        for item in items:
            if isinstance(item, Step):
                self.step(item)
            elif isinstance(item, Part):
                self._call_part(item)
            else:
                self._call_run(item)

    def _call_part(self, part: Part) -> None:
        call = f"{self.place(part.path)}({', '.join(self._passed([part], part.inputs))})"
        self.line(f"{', '.join(self.write(value) for value in part.outputs)} = {call}")

    def _passed(self, parts: Sequence[Part], inputs: Sequence[Value]) -> list[str]:
        """What parts are called with; numbers are passed as such, and those that are known are not."""
        own = {text: dim for dim, text in self.symbols.items()}
        sizes = {value: self.sizes[value] for value in inputs if value in self.sizes}
        named = {value: _named_dims(known, own) for value, known in sizes.items()}
        self.given.update(dict.fromkeys(parts, named))
        dims = [_dims_of([value for value in part.inputs if value not in sizes]) for part in parts]
        there = set.intersection(*dims) if dims else set()
        texts = []
        for value in inputs:
            known = sizes.get(value)
            if known is None:
                texts.append(self.read(value))
            elif known.items is None or not all(is_number(i) or _dim(i) in there for i in named[value].items or ()):
                texts.append(known.items[0] if known.items is not None and len(known.items) == 1 else str(known))
        return texts

    def _call_run(self, run: Run) -> None:
        parts = list(_parts(run, self.state))
        given, *others = self._passed(parts, run.inputs)
        target = self.write(run.outputs[0])
        node = self.state.tree.find(run.path)
        if run.whole and not others and node is not None and run.path != self.part.path:
            node.chained = True
            self.line(f"{target} = {self.place(run.path)}({given})")
            return
        self.line(f"{target} = {given}")
        with self.indented(f"for block in {self._blocks(run)}:"):
            self.line(f"{target} = block({', '.join([target, *others])})")

    def _blocks(self, run: Run) -> str:
        """The list of layers that run, or the part of it that does."""
        place = self.place(run.path)
        if run.whole:
            return place
        if run.path == self.part.path:
            place = f"list({place})"  # a slice of a list of layers is made by its class, which may be this one
        return f"{place}[{run.first or ''}:{run.first + len(run.items)}]"

    def gap(self) -> None:
        """A blank line, but not two, nor at the beginning of a suite."""
        if self.lines and self.lines[-1] and not self.lines[-1].endswith(":"):
            self.lines.append("")

    def spare(self) -> tuple[Any, ...]:
        """Variables for sizes, before a body is written."""
        return {value: dict(found) for value, found in self._spare.items()}, dict(self.symbols)

    def restore(self, spare: tuple[Any, ...], made: dict[str, str]) -> None:
        """Forget the variables of a body, as it may not run; those of inputs stay."""
        self._spare, symbols = spare
        tops = {name for found in self._tops.values() for name in found.values()}
        self.symbols = {dim: name for dim, name in self.symbols.items() if dim in symbols or name in tops}
        self.made = made

    def fix_sizes(self, step: Step) -> None:
        """Numbers that a loop starts with become tensors, as its body may change them."""

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
        out = step.outputs[0] if len(step.outputs) == 1 else None
        if out is None or step.domain:
            return False
        if step.op_type == "Shape":
            made = self._shape(step)
        else:
            given = [None if value is None else self.known(value) for value in step.inputs]
            made = None if any(g is None and v is not None for g, v in zip(given, step.inputs, strict=True)) else (
                lane.computed(step, given)
            )  # fmt: skip
        if made is None:
            return False
        self.sizes[out] = self._named(made, out)
        return True

    def known(self, value: Value) -> Sizes | None:
        """A value as numbers of Python, if no tensor has to be read for them."""
        if value in self.sizes:
            return self.sizes[value]
        return None if value in self.state.held else of_constant(value)

    def _named(self, sizes: Sizes, value: Value) -> Sizes:
        """Computed numbers as variables."""
        items = []
        for item in sizes.items or ():
            if re.fullmatch(r"[\w.\[\]]+|-\d+|float\(\"[-\w]+\"\)|float\(\w+\)", item):
                items.append(item)
                continue
            if item not in self.made:
                name = self.names.fresh(self.stem(value))
                self.line(f"{name} = {item}")
                self.made[item] = name
            items.append(self.made[item])
        return Sizes(tuple(items), sizes.rank, sizes.dtype, sizes.natural)

    def _shape(self, step: Step) -> Sizes | None:
        value = step.inputs[0]
        known = None if value is None else value.type
        if value is None or known is None or known.shape is None or known.kind != "tensor":
            return None
        start, end = step.attributes.get("start", 0), step.attributes.get("end")
        axes = range(len(known.shape))[slice(start, end)]
        if value.constant is not None:
            return Sizes(tuple(str(value.constant.shape[axis]) for axis in axes), 1, natural=True)
        if value in self.sizes:
            return None
        return Sizes(tuple(self.size(value, axis) for axis in axes), 1, natural=True)

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
            known[axis] = self.names.fresh(
                dim if isinstance(dim, str) and dim.isidentifier() else f"{self.stem(value)}_size"
            )
            self.line(f"{known[axis]} = {self.read(value)}.shape[{axis}]")
            if isinstance(dim, str):
                self.symbols[dim] = known[axis]
        return known[axis]

    def symbol(self, dim: str) -> str:
        """The variable for a size that the model has a name for, if an input of this forward has it."""
        if dim not in self.symbols:
            for value in self.part.inputs:
                shape = () if value.type is None or value.type.shape is None else value.type.shape
                if value in self.values and value not in self.sizes and dim in shape:
                    name = self.symbols[dim] = self.names.fresh(dim if dim.isidentifier() else "size")
                    self._tops.setdefault(value, {})[shape.index(dim)] = name
                    break
        return self.symbols.get(dim, "")

    def _openings(self) -> list[str]:
        """``b, t = x.shape[:2]``, for the sizes of inputs that are read."""
        lines = []
        for value, found in self._tops.items():
            rank, last = len(value.type.shape or ()) if value.type else 0, max(found) + 1
            if len(found) == 1:
                ((axis, name),) = found.items()
                lines.append(f"        {name} = {self.values[value]}.shape[{axis}]")
                continue
            targets = ", ".join(found.get(axis, "_") for axis in range(last))
            lines.append(f"        {targets} = {self.values[value]}.shape{'' if last == rank else f'[:{last}]'}")
        return lines

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
        return known is not None and known.kind == "tensor" and known.dtype in COMPUTED


def _parts(run: Run, state: State) -> Iterator[Part]:
    """The parts that a run calls; lists in it run one after another, too."""
    for item in run.items:
        if isinstance(item, Part):
            yield item
        elif isinstance(item, Run):
            state.tree.at(item.path).chained = True
            yield from _parts(item, state)


def _named_dims(sizes: Sizes, own: Mapping[str, str]) -> Sizes:
    """Numbers in which variables for sizes have the sizes' names, marked."""
    items = sizes.items
    return sizes if items is None else replace(sizes, items=tuple(f"<{own[i]}>" if i in own else i for i in items))


def _dim(item: str) -> str:
    return item[1:-1] if item.startswith("<") else ""


def _dims_of(values: Sequence[Value]) -> set[str]:
    shapes = [value.type.shape for value in values if value.type is not None and value.type.shape is not None]
    return {dim for shape in shapes for dim in shape if isinstance(dim, str)}


def refuse_text(step: Step) -> None:
    """Raise for a step on strings."""
    raise UnsupportedOpError(
        "torch has no strings", node=step.where, hint="run it with ep.Session, or cut the model before it"
    )
