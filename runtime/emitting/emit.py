"""A plan becomes Python source: one statement per step, values deleted at their last use.

Nothing here knows what an array is: kernels come bound to their steps, and the ``Writer`` is given what control flow
needs of arrays. The text refers to kernels and constants by names bound to live objects here, by imports and parameters
in ``spelling``.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from entrepot.ir.errors import ResourceLimitError
from entrepot.runtime.emitting.emit_control import forms_of
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.emitting.writer import Support, Writer, kernel_name
from entrepot.runtime.planning.plan import Block, Call, Step, Value

_SERIAL = count(1)


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
    writer = Writer(support, names, objects, forms_of(support))
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
