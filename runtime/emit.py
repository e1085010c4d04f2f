"""A plan becomes Python source: one statement per step, values deleted at their last use.

Nothing here knows what an array is: kernels come bound to their steps, and what control flow needs of arrays (is it
true, take a slice, stack) comes as ``Support``. So the same text serves every provider and every importer.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from entrepot.ir.errors import ResourceLimitError
from entrepot.runtime.emit_control import FORMS
from entrepot.runtime.names import Names
from entrepot.runtime.plan import Block, Call, Step, Value, first, last_uses
from entrepot.runtime.types import Type

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
    """

    true: Any
    truth: Callable[[Any], bool]
    number: Callable[[int], Any]
    trips: Callable[[Any], Any]
    length: Callable[..., int]
    pick: Callable[[Any, int, int], Any]
    stack: Callable[[list[Any], int, Type | None], Any]


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
    writer = Writer(support, name)
    writer.function(block)
    source = "\n".join(writer.lines) + "\n"
    filename = f"<entrepot {name} {next(_SERIAL)}>"
    try:
        code = compile(source, filename, "exec")
    except (SyntaxError, RecursionError) as error:  # Python allows twenty nested loops and a hundred indents, no more
        raise ResourceLimitError(
            f"subgraphs are nested too deeply for generated source: {error}", hint="run it with providers=['reference']"
        ) from error
    space = dict(writer.space)
    exec(code, space)  # noqa: S102 - our own text over our own names: no name or string of the file is in it unescaped
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return Emitted(space[writer.name], source, filename, writer.step_of_line, writer.space)


class Writer:
    """Text being written; control flow writes through it too."""

    def __init__(self, support: Support, name: str) -> None:
        self.lines: list[str] = []
        self.step_of_line: dict[int, Step] = {}
        self.space: dict[str, Any] = {}
        self.support = support
        self.names = Names()
        self.name = self.names.fresh(name)
        self._depth = 0
        self.values: dict[Value, str] = {}
        self._objects: dict[int, str] = {}
        self._step: Step | None = None

    # text
    def line(self, text: str) -> None:
        """One line at the current depth."""
        self.lines.append("    " * self._depth + text)
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
        """The name by which the text refers to an object made beforehand."""
        if id(value) not in self._objects:
            name = self._objects[id(value)] = self.names.fresh(wanted)
            self.space[name] = value
        return self._objects[id(value)]

    def read(self, value: Value | None) -> str:
        """The expression that reads a value."""
        if value is None:
            return "None"
        if value.constant is not None:
            return self.thing(value.constant, value.name)
        return self.values[value]

    def write(self, value: Value | None) -> str:
        """A new variable for a value."""
        if value is None:
            return "_"
        name = self.values[value] = self.names.fresh(value.name)
        return name

    # structure
    def function(self, block: Block) -> None:
        """The whole function."""
        parameters = ", ".join(self.write(value) for value in block.inputs)
        with self.indented(f"def {self.name}({parameters}):"):
            self.steps(block)
            results = ", ".join(self.read(value) for value in block.outputs)
            self.line(f"return ({results},)" if block.outputs else "return ()")

    def steps(self, block: Block) -> None:
        """One statement per step, and ``del`` for what nothing reads any more."""
        for step, dying in zip(block.steps, last_uses(block), strict=True):
            outer, self._step = self._step, step
            form = FORMS.get(step.op_type) if step.traits.control_flow else None
            form(self, step) if form is not None else self._call(step)
            names = [self.values[value] for value in dying if value.constant is None]
            if names:
                self.line(f"del {', '.join(names)}")
            self._step = outer

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
            self.line(f"{targets} = {text}[:{len(outputs)}]")

    def _expression(self, call: Call, step: Step) -> str:
        arguments = [self.thing(value, "xp") for value in call.leading]
        arguments += [self.read(value) for value in step.inputs]
        arguments += [f"{key}={self.literal(value, key)}" for key, value in call.attributes.items()]
        return f"{self.thing(call.function, _kernel_name(call, step))}({', '.join(arguments)})"

    def literal(self, value: Any, name: str) -> str:
        """An attribute as it is written in a call; what has no literal form becomes an object."""
        if isinstance(value, bool | int | str | type(None)) or (isinstance(value, float) and value - value == 0):
            return repr(value)
        if isinstance(value, tuple) and all(isinstance(item, int | str) for item in value):
            return repr(value)
        return self.thing(value, name)


def _kernel_name(call: Call, step: Step) -> str:
    name = getattr(call.function, "__name__", "") or step.op_type.lower()
    return step.op_type.lower() if name.startswith("<") else name
