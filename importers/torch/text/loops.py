"""Loop and Scan as functions of one turn: Python's own loop, and torch's operator where a graph is captured.

torch has no operator for loops that carry lists or values of changing shapes, for those with sizes that only a
turn knows, nor for those that draw numbers and collect them without a bound to their turns: these are left to Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from entrepot.importers.torch.modules.state import every_step
from entrepot.importers.torch.text.sizes import is_number
from entrepot.importers.torch.text.steady import are_steady, are_tensors
from entrepot.ir.traits import host_operands, unread_operands
from entrepot.runtime.emitting.emit_control import is_read, is_true, is_wanted
from entrepot.runtime.planning.plan import Block, Step, Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter

_ENDLESS = 2**31
"""Turns; exporters write some such number for a loop that only its condition ends."""


@dataclass(frozen=True)
class _Loop:
    """The values of a loop.

    Attributes:
        body: What a turn does.
        first: What carried values begin as.
        inputs: The same in a turn.
        results: The same after it.
        made: What each turn makes besides.
        targets: What is left of both after the last turn.
    """

    body: Block
    first: Sequence[Value | None]
    inputs: Sequence[Value]
    results: Sequence[Value | None]
    made: Sequence[Value | None]
    targets: Sequence[Value | None]

    @property
    def is_steady(self) -> bool:
        """Whether everything is a tensor, and what is carried keeps its shape."""
        return are_steady(self.body, self.first, self.inputs, self.results) and are_tensors(self.made)


def write_steady_loop(writer: ModuleWriter, step: Step) -> bool:
    """A Loop as a function, if its values keep their shapes; whether it has been written."""
    body = step.blocks["body"]
    states = len(body.inputs) - 2
    operands = [*step.inputs, *[None] * (2 + states - len(step.inputs))]
    count, condition, initial = operands[0], operands[1], operands[2:]
    live = [at for at in range(states) if is_read(body, body.inputs[2 + at]) or is_wanted(step, at)]
    made = range(states, len(body.outputs) - 1)
    loop = _Loop(
        body,
        first=[initial[at] for at in live],
        inputs=[body.inputs[2 + at] for at in live],
        results=[body.outputs[1 + at] for at in live],
        made=[body.outputs[1 + at] for at in made],
        targets=[_output(step, at) for at in [*live, *made]],
    )
    if not loop.is_steady or _reads_condition(body) or _reads_sizes(writer, body):
        return False
    if not made:
        return _write_repeated(writer, loop, count, condition)
    return _write_counted(writer, loop, count, condition) or _write_collected(writer, loop, count, condition)


def _write_repeated(writer: ModuleWriter, loop: _Loop, count: Value | None, condition: Value | None) -> bool:
    """A loop that a count ends, or a condition, or both."""
    body = loop.body
    endless = _is_endless(body, condition)
    if body.outputs[0] is body.inputs[1] and not endless:
        return False
    start = "True" if condition is None or endless else writer.read(condition)
    given = ", ".join([_turns(writer, count), start, *map(writer.read, loop.first)])
    name = _turn(writer, body, [body.inputs[0], *loop.inputs], [None if endless else body.outputs[0], *loop.results])
    _assign(writer, loop.targets, f"{writer.helper('repeated')}({name}, {given})")
    return True


def _write_counted(writer: ModuleWriter, loop: _Loop, count: Value | None, condition: Value | None) -> bool:
    """A loop that makes something in each turn, and whose number of turns is known when it begins."""
    turns, device = _turns(writer, count), writer.device()
    if not _is_endless(loop.body, condition) or count is None or not (count in writer.sizes or is_number(turns)):
        return False
    rows = [f"torch.arange({turns}{f', device={device}' if device else ''})"]
    _write_scanned(writer, loop, [loop.body.inputs[0]], rows)
    return True


def _write_collected(writer: ModuleWriter, loop: _Loop, count: Value | None, condition: Value | None) -> bool:
    """A loop that makes something in each turn, and whose number of turns shows when it ends.

    Without a bound, a graph has it twice, the first time to count; so it must do the same both times.
    """
    turns = _turns(writer, count)
    endless = _is_endless(loop.body, condition)
    if loop.body.outputs[0] is loop.body.inputs[1] and not endless:
        return False
    if turns == "None" and (endless or any(step.traits.random for step in every_step(loop.body))):
        return False
    start = "True" if condition is None or endless else writer.read(condition)
    first = ", ".join(map(writer.read, loop.first))
    kinds = ", ".join(writer.thing(value.type, "kind") for value in loop.made if value is not None)
    after = None if endless else loop.body.outputs[0]
    name = _turn(writer, loop.body, [loop.body.inputs[0], *loop.inputs], [after, *loop.results, *loop.made])
    call = f"{writer.helper('collected')}({name}, {turns}, {start}, [{first}], [{kinds}])"
    _assign(writer, loop.targets, call)
    return True


def write_steady_scan(writer: ModuleWriter, step: Step) -> bool:
    """A Scan as a function, if its states keep their shapes; whether it has been written."""
    body, given = step.blocks["body"], step.attributes
    scanned = int(given["num_scan_inputs"])
    states = len(step.inputs) - scanned
    slices, made = body.inputs[states:], body.outputs[states:]
    targets = [_output(step, at) for at in range(len(body.outputs))]
    loop = _Loop(body, step.inputs[:states], body.inputs[:states], body.outputs[:states], made, targets)
    if not loop.is_steady or not are_tensors(slices) or _reads_sizes(writer, body):
        return False
    axes = given.get("scan_input_axes") or [0] * scanned
    backwards = given.get("scan_input_directions") or [0] * scanned
    rows = [
        f"{writer.read(value)}{f'.movedim({axis}, 0)' if axis else ''}{'.flip(0)' if back else ''}"
        for value, axis, back in zip(step.inputs[states:], axes, backwards, strict=True)
    ]
    names = _write_scanned(writer, loop, slices, rows)
    axes = given.get("scan_output_axes") or [0] * len(made)
    backwards = given.get("scan_output_directions") or [0] * len(made)
    for name, axis, back in zip(names[states:], axes, backwards, strict=True):
        moved = f"{'.flip(0)' if back else ''}{f'.movedim(0, {axis})' if axis else ''}"
        if moved and name != "_":
            writer.line(f"{name} = {name}{moved}")
    return True


def _write_scanned(writer: ModuleWriter, loop: _Loop, slices: Sequence[Value], rows: Sequence[str]) -> list[str]:
    """Turns over the rows of tensors; the names of the results."""
    start = ", ".join(map(writer.read, loop.first))
    kinds = ", ".join(writer.thing(value.type, "kind") for value in loop.made if value is not None)
    name = _turn(writer, loop.body, [*loop.inputs, *slices], [*loop.results, *loop.made])
    call = f"{writer.helper('scanned')}({name}, [{start}], [{', '.join(rows)}], [{kinds}])"
    return _assign(writer, loop.targets, call)


def _turn(writer: ModuleWriter, body: Block, inputs: Sequence[Value], results: Sequence[Value | None]) -> str:
    """The function of one turn; its name. A result that is ``None`` says to go on."""
    name = writer.names.fresh("turn")
    values = dict(writer.values)
    writer.gap()
    with writer.indented(f"def {name}({', '.join(map(writer.write, inputs))}):"):
        writer.steps(body)
        texts = ["True" if value is None else writer.read(value) for value in results]
        writer.line(f"return {', '.join(texts)}{',' if len(texts) == 1 else ''}")
    writer.gap()
    writer.values = values
    return name


def _assign(writer: ModuleWriter, targets: Sequence[Value | None], call: str) -> list[str]:
    names = [writer.write(value) for value in targets]
    writer.line(f"({names[0]},) = {call}" if len(names) == 1 else f"{', '.join(names)} = {call}")
    return names


def _turns(writer: ModuleWriter, count: Value | None) -> str:
    """The number of turns as an expression."""
    if count is None or (count.constant is not None and count.constant.size == 1 and count.constant.item() >= _ENDLESS):
        return "None"
    if writer.known(count) is not None or (count.type is not None and count.type.shape == ()):
        return writer.count(count)
    return f"{writer.read(count)}.reshape(())"


def _output(step: Step, at: int) -> Value | None:
    return step.outputs[at] if at < len(step.outputs) else None


def _reads_condition(body: Block) -> bool:
    before = body.inputs[1]
    return before in body.outputs[1:] or any(before in step.uses() for step in body.steps)


def _reads_sizes(writer: ModuleWriter, body: Block) -> bool:
    """Whether values that only a turn knows decide a size, an axis or an end within it."""
    known = {*writer.sizes, *(value for step in writer.state.light for value in step.outputs)}
    for step in every_step(body):
        if step.blocks:
            continue  # torch's operators for control flow read tensors
        unread, numbers = unread_operands(step.key), host_operands(step.key)
        tensors = [(at, value) for at, value in enumerate(step.inputs) if value and value.constant is None]
        unknown = {at for at, value in tensors if value not in known}
        if unknown & numbers:
            return True
        if not unknown - unread:
            known.update(value for value in step.outputs if value)
    return False


def _is_endless(body: Block, condition: Value | None) -> bool:
    """Whether no condition ends the loop."""
    after = body.outputs[0]
    goes_on = after is body.inputs[1] or (after is not None and is_true(after))
    return goes_on and (condition is None or is_true(condition))
