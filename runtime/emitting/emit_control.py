"""If, Loop, Scan and SequenceMap as Python's own ``if`` and ``for``, inline with the steps around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from entrepot.ir.typing.plain import Type
from entrepot.runtime.emitting.writer import Form, Support, Writer
from entrepot.runtime.planning.plan import Block, Step, Value


def write_if(writer: Writer, step: Step) -> None:
    """``if truth(condition): ... else: ...``; both branches assign the same variables."""
    condition = writer.read(step.inputs[0])
    truth = writer.thing(writer.support.truth, "truth")
    targets = [writer.names.fresh(value.name if value else "unused") for value in step.outputs]
    for head, name in ((f"if {truth}({condition}):", "then_branch"), ("else:", "else_branch")):
        block = step.blocks[name]
        with writer.indented(head):
            writer.steps(block)
            assign(writer, targets, [writer.read(value) for value in block.outputs[: len(targets)]])
    for value, target in zip(step.outputs, targets, strict=True):
        if value is not None:
            writer.values[value] = target


def write_loop(writer: Writer, step: Step) -> None:
    """``for trip in trips(M): ...`` with the carried values as variables and a list per scan output."""
    body = step.blocks["body"]
    states = len(body.inputs) - 2
    initial = [*step.inputs, *[None] * (2 + states - len(step.inputs))]
    condition = writer.values[body.inputs[1]] = _condition(writer, step, initial[1])
    live = [at for at in range(states) if is_read(body, body.inputs[2 + at]) or is_wanted(step, at)]
    carried = _carry(writer, [body.inputs[2 + at] for at in live], [initial[2 + at] for at in live])
    collected = _collectors(writer, body.outputs[1 + states :])
    trip = writer.names.fresh("trip") if is_read(body, body.inputs[0]) else "_"
    endless = writer.support.whiles and initial[0] is None and condition and trip == "_"
    with writer.indented(f"while {condition}:" if endless else _turns(writer, trip, initial[0])):
        if condition and not endless:
            with writer.indented(f"if not {writer.thing(writer.support.truth, 'truth')}({condition}):"):
                writer.line("break")
        if is_read(body, body.inputs[0]):
            writer.turn(body.inputs[0], trip)
        writer.steps(body)
        _collect(writer, collected, body.outputs[1 + states :])
        targets, sources = list(carried), [body.outputs[1 + at] for at in live]
        if condition:
            targets, sources = [condition, *carried], [body.outputs[0], *sources]
        assign(writer, targets, [writer.read(value) for value in sources])
    for at, name in zip(live, carried, strict=True):
        if (value := step.outputs[at] if at < len(step.outputs) else None) is not None:
            writer.values[value] = name
    stacks = _stacks(collected, body.outputs[1 + states :], [0] * len(collected), [0] * len(collected))
    _stack(writer, step.outputs[states:], stacks)


def _turns(writer: Writer, trip: str, count: Value | None) -> str:
    return f"for {trip} in {writer.thing(writer.support.trips, 'trips')}({writer.count(count)}):"


def write_scan(writer: Writer, step: Step) -> None:
    """``for trip in range(length): ...`` over slices of the scanned inputs."""
    body, given = step.blocks["body"], step.attributes
    scanned = int(given["num_scan_inputs"])
    states = len(step.inputs) - scanned
    arrays = [writer.read(value) for value in step.inputs[states:]]
    axes = list(given.get("scan_input_axes") or [0] * scanned)
    backwards = list(given.get("scan_input_directions") or [0] * scanned)
    made = body.outputs[states:]
    carried = _carry(writer, body.inputs[:states], step.inputs[:states])
    collected = _collectors(writer, made)
    size, trip = writer.names.fresh("length"), writer.names.fresh("trip")
    pairs = ", ".join(f"{array}, {axis}" for array, axis in zip(arrays, axes, strict=True))
    writer.line(f"{size} = {writer.thing(writer.support.length, 'length')}({pairs})")
    with writer.indented(f"for {trip} in {writer.thing(writer.support.trips, 'trips')}({size}):"):
        pick = writer.thing(writer.support.pick, "pick")
        for value, array, axis, back in zip(body.inputs[states:], arrays, axes, backwards, strict=True):
            if is_read(body, value):
                index = f"{size} - 1 - {trip}" if back else trip
                writer.line(f"{writer.write(value)} = {pick}({array}, {index}, {axis})")
        writer.steps(body)
        _collect(writer, collected, made)
        assign(writer, carried, [writer.read(value) for value in body.outputs[:states]])
    _results(writer, step, carried)
    out_axes = list(given.get("scan_output_axes") or [0] * len(made))
    out_backwards = list(given.get("scan_output_directions") or [0] * len(made))
    _stack(writer, step.outputs[states:], _stacks(collected, made, out_axes, out_backwards))


def write_sequence_map(writer: Writer, step: Step) -> None:
    """``for trip in range(len(sequence)): ...``; further inputs are sequences walked together, or tensors."""
    body = step.blocks["body"]
    names = [writer.read(value) for value in step.inputs]
    collected = _collectors(writer, body.outputs)
    trip = writer.names.fresh("trip")
    with writer.indented(f"for {trip} in {writer.thing(writer.support.trips, 'trips')}(len({names[0]})):"):
        for value, name in zip(body.inputs, names, strict=False):
            if is_read(body, value):
                member = f"{name}[{trip}] if isinstance({name}, list) else {name}"
                writer.line(f"{writer.write(value)} = {member}")
        writer.steps(body)
        _collect(writer, collected, body.outputs)
    _results(writer, step, collected)


FORMS: dict[str, Form] = {
    "If": write_if,
    "Loop": write_loop,
    "Scan": write_scan,
    "SequenceMap": write_sequence_map,
}


def assign(writer: Writer, targets: Sequence[str], sources: Sequence[str]) -> None:
    """One parallel assignment, so that values may swap places; ``pass`` where a suite would be empty."""
    pairs = [(target, source) for target, source in zip(targets, sources, strict=True) if target != source]
    if pairs:
        writer.line(f"{', '.join(target for target, _ in pairs)} = {', '.join(source for _, source in pairs)}")
    elif writer.lines[-1].endswith(":"):
        writer.line("pass")


def _condition(writer: Writer, step: Step, initial: Value | None) -> str:
    """The variable that says whether to go on; empty for a loop that only its trip count ends."""
    body = step.blocks["body"]
    after, before = body.outputs[0], body.inputs[1]
    always = initial is None or is_true(initial)
    read = before in body.outputs[1:] or any(before in step.uses() for step in body.steps)
    if always and not read and (after is before or (after is not None and is_true(after))):
        return ""
    name = writer.names.fresh("going_on")
    writer.line(f"{name} = {writer.thing(writer.support.true, 'true') if initial is None else writer.read(initial)}")
    return name


def is_true(value: Value) -> bool:
    """Whether a condition is known to hold."""
    return value.constant is not None and bool(value.constant.all())


def is_wanted(step: Step, position: int) -> bool:
    """Whether anything reads one of a step's outputs."""
    return position < len(step.outputs) and step.outputs[position] is not None


def is_read(body: Block, value: Value) -> bool:
    """Whether a body uses one of its inputs."""
    return value in body.outputs or any(value in step.uses() for step in body.steps)


def _carry(writer: Writer, values: Sequence[Value], initial: Sequence[Value | None]) -> list[str]:
    names = []
    for value, first in zip(values, initial, strict=True):
        source = writer.read(first)
        names.append(writer.write(value))
        writer.line(f"{names[-1]} = {source}")
    return names


def _collectors(writer: Writer, values: Sequence[Value | None]) -> list[str]:
    names = [writer.names.fresh(f"{value.name if value else 'scan'}_all") for value in values]
    for name in names:
        writer.line(f"{name} = []")
    return names


def _collect(writer: Writer, collected: Sequence[str], values: Sequence[Value | None]) -> None:
    for name, value in zip(collected, values, strict=True):
        writer.line(f"{name}.append({writer.read(value)})")


def _results(writer: Writer, step: Step, names: Sequence[str]) -> None:
    """The step's outputs are the variables that its loop carried."""
    for value, name in zip(step.outputs, names, strict=False):
        if value is not None:
            writer.values[value] = name


def _stacks(
    collected: Sequence[str], values: Sequence[Value | None], axes: Sequence[int], backwards: Sequence[int]
) -> list[tuple[str, int, Type | None]]:
    lists = [f"{name}[::-1]" if back else name for name, back in zip(collected, backwards, strict=True)]
    kinds = [None if value is None else value.type for value in values]
    return list(zip(lists, axes, kinds, strict=True))


def _stack(writer: Writer, outputs: Sequence[Value | None], stacks: Sequence[tuple[str, int, Type | None]]) -> None:
    stack = writer.thing(writer.support.stack, "stack") if stacks else ""
    for output, (items, axis, kind) in zip(outputs, stacks, strict=False):
        if output is not None:
            element = "None" if kind is None else writer.thing(kind, f"{output.name}_type")
            writer.line(f"{writer.write(output)} = {stack}({items}, {axis}, {element})")


def forms_of(support: Support) -> Mapping[str, Form]:
    """How each operator of control flow is written for arrays of this kind."""
    return {**FORMS, **support.forms}
