"""The text of a plan while it is written: lines, names, one statement per step.

What control flow needs of arrays (is it true, take a slice, stack) comes as ``Support``; how the text refers to kernels
and constants is for its ``Objects`` to say; how control flow is written, for its forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from entrepot.ir.printable import printable
from entrepot.ir.typing.plain import Type
from entrepot.runtime.emitting.layout import wrapped
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.planning.plan import Block, Call, Step, Value, first, last_uses

Form: TypeAlias = "Callable[[Writer, Step], None]"
"""Writes one step of control flow, and the steps inside it."""


@dataclass(frozen=True)
class Support:
    """What If, Loop and Scan need of a framework's arrays.

    Attributes:
        true: A 0-d boolean array.
        truth: A 0-d (or one-element) boolean as a Python bool.
        number: A Python int as a 0-d int64 array.
        trips: The range of a loop: how often its trip count (or ``None``) allows; raises past the limit.
        length: ``length(x, axis, y, axis, ...)``: the size of all of them along their axes, which must agree.
        pick: Slice ``i`` of an array along an axis.
        stack: Slices to one array along a new axis; with the declared type for when there are none.
        whiles: Whether a loop without a count, which nothing but its condition ends, is written as ``while``.
        forms: How it writes If, Loop, Scan or SequenceMap where this differs from ``emit_control``.
    """

    true: Any
    truth: Callable[[Any], bool]
    number: Callable[[int], Any]
    trips: Callable[[Any], Any]
    length: Callable[..., int]
    pick: Callable[[Any, int, int], Any]
    stack: Callable[[list[Any], int, Type | None], Any]
    forms: Mapping[str, Form] = field(default_factory=dict)
    whiles: bool = False


class Objects(Protocol):
    """How a text refers to what is not made in it."""

    def thing(self, value: Any, wanted: str) -> str:
        """An object made beforehand: a kernel, an array, a backend."""

    def constant(self, value: Value, step: Step | None, position: int) -> str:
        """A constant that a step reads at a position; a block's output without one."""

    def text(self, value: str) -> str:
        """A string."""

    def call(self, call: Call, step: Step, arguments: Sequence[str], attributes: Mapping[str, str]) -> str:
        """The expression that runs a step."""


@dataclass(frozen=True)
class Style:
    """How a text looks.

    Attributes:
        width: Characters of a line; longer ones are broken as formatters do. ``None`` for as long as it takes.
        deletes: Whether values are deleted at their last use.
        remarks: Whether a comment says where steps come from, when that changes.
    """

    width: int | None = None
    deletes: bool = True
    remarks: bool = False


class Writer:
    """Text being written; control flow writes through it too.

    Args:
        support: What control flow needs of arrays.
        names: Names that are taken.
        objects: How the text refers to what is not made in it.
        forms: How each operator of control flow is written.
        style: How the text looks.
    """

    def __init__(
        self,
        support: Support,
        names: Names,
        objects: Objects,
        forms: Mapping[str, Form],
        style: Style | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.step_of_line: dict[int, Step] = {}
        self.support = support
        self.names = names
        self.values: dict[Value, str] = {}
        self._objects = objects
        self._forms = forms
        self._style = style or Style()
        self._depth = 0
        self._step: Step | None = None
        self._origin = ""

    # text
    def line(self, text: str) -> None:
        """One line at the current depth, or the lines that it is broken into."""
        indented = "    " * self._depth + text
        broken = [indented] if self._style.width is None else wrapped(indented, self._style.width)
        for each in broken:
            self.lines.append(each)
            if self._step is not None:
                self.step_of_line[len(self.lines)] = self._step

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """A line that opens a suite, and the suite."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    # names
    def thing(self, value: Any, wanted: str) -> str:
        """The expression for an object made beforehand."""
        return self._objects.thing(value, wanted)

    def count(self, value: Value | None) -> str:
        """The expression for how often a loop runs at most."""
        return self.read(value)

    def turn(self, value: Value, number: str) -> None:
        """Name the value that is the number of a loop's turn, of which a Python int is at hand."""
        self.line(f"{self.write(value)} = {self.thing(self.support.number, 'number')}({number})")

    def read(self, value: Value | None, step: Step | None = None, position: int = 0) -> str:
        """The expression that reads a value, at a position of a step."""
        if value is None:
            return "None"
        if value.constant is not None:
            return self._objects.constant(value, step, position)
        return self.values[value]

    def write(self, value: Value | None) -> str:
        """A new variable for a value."""
        if value is None:
            return "_"
        name = self.values[value] = self.names.fresh(value.name)
        return name

    # structure
    def function(self, block: Block, name: str) -> str:
        """The whole function, which returns a tuple; its name."""
        name = self.names.fresh(name)
        with self.indented(f"def {name}({self.parameters(block)}):"):
            self.steps(block)
            results = ", ".join(self.read(value) for value in block.outputs)
            self.line(f"return ({results},)" if block.outputs else "return ()")
        return name

    def parameters(self, block: Block) -> str:
        """A new variable for each input of a function."""
        return ", ".join(self.write(value) for value in block.inputs)

    def steps(self, block: Block) -> None:
        """One statement per step, and ``del`` for what nothing reads any more."""
        for step, dying in zip(block.steps, last_uses(block), strict=True):
            outer, self._step = self._step, step
            if self._style.remarks:
                self._remark(step)
            form = self._forms.get(step.op_type) if step.traits.control_flow else None
            form(self, step) if form is not None else self._call(step)
            names = [self.values[value] for value in dying if value.constant is None]
            if names and self._style.deletes:
                self.line(f"del {', '.join(names)}")
            self._step = outer

    def _remark(self, step: Step) -> None:
        """A comment where the text comes to another part of the source model."""
        origin = step.metadata.get("entrepot.module", "")
        if origin == self._origin:
            return
        self._origin = origin
        if self.lines and not self.lines[-1].endswith((":", '"""')):
            self.lines.append("")
        source = step.metadata.get("entrepot.source", "")
        told = printable(f"{origin} ({source})" if source else origin).replace("\n", " ").strip()
        if told:
            self.lines.append("    " * self._depth + f"# {told}")

    def _call(self, step: Step) -> None:
        assert step.call is not None, step.where
        text = self._expression(step.call, step)
        outputs = step.outputs
        if not step.many:
            self.line(f"{self.write(outputs[0])} = {text}")
        elif len(outputs) == 1:
            self.line(f"{self.write(outputs[0])} = {self.thing(first, 'first')}({text})")
        else:
            targets = ", ".join(self.write(value) for value in outputs)
            if self._style.width is None:
                self.line(f"{targets} = {text}[:{len(outputs)}]")  # faster than what readers like better
            else:
                self.line(f"{targets}{'' if 'n_outputs' in step.call.attributes else ', *_'} = {text}")

    def _expression(self, call: Call, step: Step) -> str:
        arguments = [self.read(value, step, position) for position, value in enumerate(step.inputs)]
        attributes = {key: self.literal(value, key) for key, value in call.attributes.items()}
        return self._objects.call(call, step, arguments, attributes)

    def literal(self, value: Any, name: str) -> str:
        """An attribute as it is written in a call; what has no literal form becomes an object."""
        if isinstance(value, str):
            return self._objects.text(value)
        if isinstance(value, bool | int | type(None)) or (isinstance(value, float) and value - value == 0):
            return repr(value).replace("e+", "e")
        if isinstance(value, tuple) and all(isinstance(item, int | str) for item in value):
            items = [self.literal(item, name) for item in value]
            return f"({', '.join(items)}{',' * (len(items) == 1)})"
        return self.thing(value, name)


def kernel_name(call: Call, step: Step) -> str:
    """What a kernel is called in a text."""
    name = getattr(call.function, "__name__", "") or step.op_type.lower()
    return step.op_type.lower() if name.startswith("<") else name
