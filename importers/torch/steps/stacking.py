"""Recurrent layers one above the other, which torch has as one layer: found before they become layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from entrepot.importers.torch.layers.layer import LAYERS
from entrepot.importers.torch.layers.recurrent import recurrent
from entrepot.importers.torch.modules.scopes import scope_of
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.text.sizes import same_shape
from entrepot.ir.table import OpKey
from entrepot.runtime.planning.fuse import Neighbours, Rules
from entrepot.runtime.planning.plan import Step, Value


@dataclass
class _Stack:
    """Steps of one kind and size, each of which reads all that the one below it makes.

    Attributes:
        layers: From the lowest up.
        between: The steps that put two directions side by side, and those that gather the states.
        result: What the highest makes, directions side by side; ``None`` where they stay apart.
    """

    layers: list[Step]
    between: list[Step]
    result: Value | None = None


def _stack(graph: Neighbours, first: Step) -> None:
    """A step, those above it, and the one way in which two directions become one row of features."""
    stack = _found(graph, first)
    states = [_initial(graph, stack.layers, at) for at in (5, 6)]
    if (stack.result is None and len(stack.layers) == 1) or states.count(_UNKNOWN) or not _is_layer(stack.layers):
        return
    if first.op_type == "LSTM" and (states[0] is None) != (states[1] is None):
        return
    top = stack.layers[-1]
    gathered = [_gathered(graph, stack, at) for at in (1, 2)]
    outputs = [stack.result or top.outputs[0], *gathered]
    apart = [[] if value else _outputs(stack.layers, at) for at, value in zip((1, 2), gathered, strict=True)]
    for values in apart:
        outputs += values or [None] * len(stack.layers)
    lengths = [value for value in [_padded(first.inputs)[4]] if value is not None]
    weights = [value for step in stack.layers for value in _padded(step.inputs)[1:4]]
    attributes = {
        "layers": len(stack.layers), "merged": stack.result is not None, "hidden_size": first.attributes["hidden_size"],
        "direction": first.attributes.get("direction", "forward"), "activations": first.attributes.get("activations"),
    }  # fmt: skip
    joined = replace(
        top, key=OpKey(LAYERS, f"Stacked{first.op_type}", 1), inputs=[first.inputs[0], *states, *weights, *lengths],
        outputs=outputs, attributes=attributes, metadata=first.metadata,
    )  # fmt: skip
    graph.replace([*stack.between, *stack.layers], joined)


def _found(graph: Neighbours, first: Step) -> _Stack:
    stack = _Stack([first], [])
    while (merged := _merged(graph, stack.layers[-1])) is not None:
        steps, value = merged
        readers = graph.readers(value)
        if len(readers) != 1 or not _goes_on(first, readers[0], value):
            return replace(stack, between=[*stack.between, *steps], result=value)
        stack.between += steps
        stack.layers.append(readers[0])
    if len(stack.layers) > 1 and _merged(graph, stack.layers[-1]) is None:
        stack.result = None
    return stack


def _goes_on(first: Step, above: Step, value: Value) -> bool:
    same = above.key == first.key and above.attributes == first.attributes and scope_of(above) == scope_of(first)
    return same and above.inputs[0] is value and value not in above.inputs[1:]


def _merged(graph: Neighbours, step: Step) -> tuple[list[Step], Value] | None:
    """The steps after a recurrent one that make a row of features of what its directions give."""
    readers = graph.readers(step.outputs[0])
    if len(readers) != 1:
        return None
    after = readers[0]
    steps = [after]
    if after.is_a("Transpose") and list(after.attributes.get("perm", ())) == [0, 2, 1, 3]:
        reshaped = graph.only_reader(after)
        if reshaped is None or not reshaped.is_a("Reshape"):
            return None
        steps.append(reshaped)
    elif not after.is_a("Squeeze", "Reshape") or _directions(step) > 1:
        return None
    value = steps[-1].outputs[0]
    rows, features = _shape(step.inputs[0])[:2], _directions(step) * step.attributes.get("hidden_size", 0)
    if value is None or not same_shape(_shape(value), (*rows, features)):
        return None
    return steps, value


def _directions(step: Step) -> int:
    return 2 if step.attributes.get("direction") == "bidirectional" else 1


def _shape(value: Value | None) -> tuple[int | str | None, ...]:
    known = None if value is None else value.type
    return () if known is None or known.shape is None else known.shape


def _padded(inputs: Sequence[Value | None]) -> list[Value | None]:
    return [*inputs, *[None] * (8 - len(inputs))]


def _outputs(layers: Sequence[Step], at: int) -> list[Value | None]:
    return [step.outputs[at] if at < len(step.outputs) else None for step in layers]


def _is_layer(layers: Sequence[Step]) -> bool:
    """Whether torch has each of them as a layer, with a bias or without one like the others, over rows as long."""
    alike = len({(_padded(step.inputs)[3] is None, _padded(step.inputs)[4]) for step in layers}) == 1
    return alike and all(recurrent(Op(None, step)) is not None for step in layers)  # type: ignore[arg-type]


_UNKNOWN = Value("")


def _initial(graph: Neighbours, layers: Sequence[Step], at: int) -> Value | None:
    """What all begin with: nothing, which is zeros, or a tensor that each reads its part of; else ``_UNKNOWN``."""
    values = [_padded(step.inputs)[at] for step in layers]
    if all(value is None or _is_zero(graph, value) for value in values):
        return None
    if len(values) == 1:
        return values[0]
    wholes = {_whole(graph, value, number, _directions(layers[0])) for number, value in enumerate(values)}
    whole = wholes.pop()
    known = not wholes and whole is not None and _shape(whole)[:1] == (len(layers) * _directions(layers[0]),)
    return whole if known else _UNKNOWN


def _is_zero(graph: Neighbours, value: Value) -> bool:
    made = graph.maker(value)
    if made is not None and made.is_a("Slice", "Split", "Expand") and made.inputs[0] is not None:
        return _is_zero(graph, made.inputs[0])
    if made is not None and made.is_a("ConstantOfShape"):
        return not np.any(made.attributes.get("value", 0))
    return isinstance(value.constant, np.ndarray) and not value.constant.any()


def _whole(graph: Neighbours, value: Value | None, number: int, count: int) -> Value | None:
    """The tensor whose rows for one layer a value is."""
    made = graph.maker(value)
    if made is not None and made.is_a("Split"):
        each_alike = made.attributes.get("axis", 0) == 0 and {_shape(part)[:1] for part in made.outputs} == {(count,)}
        return made.inputs[0] if each_alike and made.outputs.index(value) == number else None
    if made is None or not made.is_a("Slice"):
        return None
    given = [each.constant for each in made.inputs[1:] if each is not None]
    numbers = [int(each.item()) for each in given if isinstance(each, np.ndarray) and each.size == 1]
    if len(numbers) != len(made.inputs) - 1 or len(numbers) < 3:
        return None
    start, end, axis, *step = numbers
    mine = (start, end, axis, step or [1]) == (number * count, (number + 1) * count, 0, [1])
    return made.inputs[0] if mine else None


def _gathered(graph: Neighbours, stack: _Stack, at: int) -> Value | None:
    """The last states of all layers, one after the other, if that is the only way in which they are read."""
    values = _outputs(stack.layers, at)
    readers = [graph.readers(value) for value in values]
    if any(len(each) != 1 for each in readers) or len({id(each[0]) for each in readers}) != 1 or len(values) < 2:
        return None
    concat = readers[0][0]
    if not concat.is_a("Concat") or concat.attributes.get("axis") not in (0, -3) or concat.inputs != values:
        return None
    stack.between.append(concat)
    return concat.outputs[0]


RULES: Rules = dict.fromkeys(("LSTM", "GRU", "RNN"), (_stack,))
