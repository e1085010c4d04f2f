"""A plan becomes Python source: one statement per step, values deleted at their last use.

Nothing here knows what an array is: kernels come bound to their steps, and what control flow needs of arrays (is it
true, take a slice, stack) comes as ``Support``, with the forms that it is written in. How the text refers to kernels
and constants is for its ``Objects`` to say: by names bound to live objects here, by imports and parameters in
``spelling``.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from entrepot.ir.errors import ResourceLimitError
from entrepot.ir.printable import printable
from entrepot.ir.typing.plain import Type
from entrepot.runtime.emit_control import FORMS
from entrepot.runtime.layout import wrapped
from entrepot.runtime.names import Names
from entrepot.runtime.plan import Block, Call, Step, Value, first, last_uses

_SERIAL = count(1)


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
        forms: How If, Loop, Scan and SequenceMap are written.
    """

    true: Any
    truth: Callable[[Any], bool]
    number: Callable[[int], Any]
    trips: Callable[[Any], Any]
    length: Callable[..., int]
    pick: Callable[[Any, int, int], Any]
    stack: Callable[[list[Any], int, Type | None], Any]
    forms: Mapping[str, Callable[[Writer, Step], None]] = field(default_factory=lambda: FORMS)


@dataclass(frozen=True)
class Emitted:
    """Generated code, ready to run.

    Attributes:
        function: Takes the block's inputs by position, returns a tuple of its outputs.
        source: Its text.
        filename: What tracebacks call it.
        lines: The step that each line of the text runs.
        names: The objects the text refers to.
    """

    function: Callable[..., tuple[Any, ...]]
    source: str
    filename: str
    lines: dict[int, Step] = field(repr=False)
    names: dict[str, Any] = field(repr=False)

    def locate(self, error: BaseException) -> str:
        """The node whose line an error was raised in, or under."""
        found, trace = "", error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename and trace.tb_lineno in self.lines:
                found = self.lines[trace.tb_lineno].where
            trace = trace.tb_next
        return found


def emit(block: Block, support: Support, *, name: str = "run") -> Emitted:
    """Generate and compile the function that runs a block whose steps are all bound."""
    names = Names()
    objects = Bound(names)
    writer = Writer(support, names, objects)
    function = writer.function(block, name)
    source = "\n".join(writer.lines) + "\n"
    filename = f"<entrepot {name} {next(_SERIAL)}>"
    space = executed(source, filename, objects.space)
    return Emitted(space[function], source, filename, writer.step_of_line, objects.space)


def executed(source: str, filename: str, space: Mapping[str, Any]) -> dict[str, Any]:
    """What a text defines, over the names of ``space``; tracebacks show its lines.

    Raises:
        ResourceLimitError: It is nested more deeply than Python allows.
    """
    try:
        code = compile(source, filename, "exec")
    except (SyntaxError, RecursionError) as error:  # Python allows twenty nested loops and a hundred indents, no more
        raise ResourceLimitError(
            f"subgraphs are nested too deeply for generated source: {error}", hint="run it with providers=['reference']"
        ) from error
    made = dict(space)
    exec(code, made)  # noqa: S102 - our own text over our own names: no name or string of the file is in it unescaped
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return made


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


class Bound:
    """Names bound to live objects.

    Attributes:
        space: The objects by their names.
    """

    def __init__(self, names: Names) -> None:
        self.space: dict[str, Any] = {}
        self._names = names
        self._known: dict[int, str] = {}

    def thing(self, value: Any, wanted: str) -> str:
        """The name of an object, ``wanted`` if it is free."""
        if id(value) not in self._known:
            name = self._known[id(value)] = self._names.fresh(wanted)
            self.space[name] = value
        return self._known[id(value)]

    def constant(self, value: Value, step: Step | None, position: int) -> str:
        """The name of its array."""
        return self.thing(value.constant, value.name)

    def text(self, value: str) -> str:
        """As Python prints it."""
        return repr(value)

    def call(self, call: Call, step: Step, arguments: Sequence[str], attributes: Mapping[str, str]) -> str:
        """A call of the kernel."""
        given = [self.thing(value, "xp") for value in call.leading]
        given += [*arguments, *(f"{key}={value}" for key, value in attributes.items())]
        return f"{self.thing(call.function, kernel_name(call, step))}({', '.join(given)})"


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
    """Text being written; control flow writes through it too."""

    def __init__(self, support: Support, names: Names, objects: Objects, style: Style | None = None) -> None:
        self.lines: list[str] = []
        self.step_of_line: dict[int, Step] = {}
        self.support = support
        self.names = names
        self.values: dict[Value, str] = {}
        self._objects = objects
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
            form = self.support.forms.get(step.op_type) if step.traits.control_flow else None
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
