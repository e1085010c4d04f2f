"""Normalisations that exporters spelled out, found before they become layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from entrepot.importers.torch.text.sizes import same_shape
from entrepot.ir.table import OpKey
from entrepot.ir.typing.plain import of_array
from entrepot.runtime.planning.fuse import Neighbours, Rules
from entrepot.runtime.planning.plan import Step, Value


def _fuse_layer_norm(graph: Neighbours, mean: Step) -> None:
    """``(x - mean) / sqrt(mean((x - mean) ** 2) + eps) * scale + bias`` over the last axis.

    The mean is read by one Sub or by two; scale and bias have to be constant rows.
    """
    normalised = _normalised(graph, mean)
    if normalised is None:
        return
    steps, epsilon = normalised
    scaled = graph.only_reader(steps[-1])
    shifted = None if scaled is None else graph.only_reader(scaled)
    if scaled is None or shifted is None:
        return
    scale, bias = _row(scaled, "Mul", steps[-1]), _row(shifted, "Add", scaled)
    if scale is None or bias is None or np.shape(bias.constant) != np.shape(scale.constant):
        return
    norm = replace(
        shifted, key=OpKey("", "LayerNormalization", 17), inputs=[mean.inputs[0], scale, bias],
        attributes={"axis": -1, "epsilon": epsilon}, metadata=mean.metadata, name=mean.name,
    )  # fmt: skip
    graph.replace([*steps, scaled, shifted], norm)


def _normalised(graph: Neighbours, mean: Step) -> tuple[list[Step], float] | None:
    """The steps up to the division, and epsilon."""
    readers = graph.readers(mean.outputs[0]) if _over_last(mean) else []
    centred = [step for step in readers if step.is_a("Sub") and step.inputs == [mean.inputs[0], mean.outputs[0]]]
    differences = {step.outputs[0] for step in centred}
    after = [step for step in centred for step in graph.readers(step.outputs[0])]
    square = next((step for step in after if _is_square(step, differences)), None)
    chain = None if square is None else _chain(graph, square, ("ReduceMean",), ("Add",), ("Sqrt",), ("Div",))
    if square is None or chain is None or len(centred) != len(readers) or not _over_last(chain[0]):
        return None
    epsilon, division = number(chain[1]), chain[-1]
    if epsilon is None or division.inputs[0] not in differences or {*after} != {square, division}:
        return None
    return [mean, *centred, square, *chain], epsilon


def _chain(graph: Neighbours, start: Step, *kinds: tuple[str, ...]) -> list[Step] | None:
    """The only readers of one after another."""
    steps, step = [], start
    for kind in kinds:
        after = graph.only_reader(step)
        if after is None or not after.is_a(*kind):
            return None
        steps.append(after)
        step = after
    return steps


def _over_last(mean: Step) -> bool:
    axes = mean.inputs[1].constant if len(mean.inputs) > 1 and mean.inputs[1] is not None else None
    known = None if mean.inputs[0] is None else mean.inputs[0].type
    if not isinstance(axes, np.ndarray) or axes.size != 1 or mean.attributes.get("keepdims", 1) != 1:
        return False
    rank = None if known is None or known.shape is None else len(known.shape)
    return int(axes.item()) == -1 or (rank is not None and int(axes.item()) == rank - 1)


def _is_square(step: Step, differences: set[Value | None]) -> bool:
    if step.is_a("Mul"):
        return step.inputs[0] in differences and step.inputs[1] in differences
    exponent = step.inputs[1].constant if step.is_a("Pow") and step.inputs[1] is not None else None
    return (
        isinstance(exponent, np.ndarray)
        and exponent.size == 1
        and exponent.item() == 2
        and step.inputs[0] in differences
    )


def number(step: Step) -> float | None:
    """The one number among a step's operands."""
    for value in step.inputs:
        if value is not None and isinstance(value.constant, np.ndarray) and value.constant.size == 1:
            return float(value.constant.item())
    return None


def _row(step: Step, op_type: str, before: Step) -> Value | None:
    """The constant row that a step applies to the result of another."""
    if not step.is_a(op_type):
        return None
    other = step.inputs[1] if step.inputs[0] is before.outputs[0] else step.inputs[0]
    row = None if other is None else other.constant
    return other if isinstance(row, np.ndarray) and row.ndim == 1 and row.size > 1 else None


def alone(graph: Neighbours, value: Value | None, reader: Step) -> Step | None:
    """The step that makes a value, if only ``reader`` reads it."""
    made = graph.maker(value)
    return made if made is not None and graph.only_reader(made) is reader else None


def _fuse_group_norm(graph: Neighbours, norm: Step) -> None:
    """Channels reshaped to groups, normalised, reshaped back, scaled and shifted by constants."""
    apart, back = alone(graph, norm.inputs[0], norm), graph.only_reader(norm)
    scale, bias = (value.constant if value is not None else None for value in norm.inputs[1:3])
    if apart is None or back is None or not apart.is_a("Reshape") or not back.is_a("Reshape"):
        return
    if not isinstance(scale, np.ndarray) or not isinstance(bias, np.ndarray) or (scale != 1).any() or bias.any():
        return
    x = apart.inputs[0]
    shape, groups = _shape(x), _shape(norm.inputs[0])
    if len(shape) < 3 or len(groups) != 3 or groups[1] != scale.size or not _is_back(graph, back, x, shape):
        return
    scaled = graph.only_reader(back)
    factor = None if scaled is None else _per_channel(scaled, "Mul", back, shape)
    shifted = None if scaled is None else graph.only_reader(scaled)
    addend = None if scaled is None or shifted is None else _per_channel(shifted, "Add", scaled, shape)
    if scaled is None or shifted is None or factor is None or addend is None:
        return
    epsilon = {"epsilon": norm.attributes["epsilon"]} if "epsilon" in norm.attributes else {}
    grouped = replace(
        shifted, key=OpKey("", "GroupNormalization", 21), inputs=[x, factor, addend],
        attributes={"num_groups": scale.size, **epsilon}, metadata=norm.metadata, name=norm.name,
    )  # fmt: skip
    graph.replace([apart, norm, back, scaled, shifted], grouped)


def _is_back(graph: Neighbours, back: Step, x: Value | None, shape: tuple[int | str | None, ...]) -> bool:
    """Whether a Reshape leads to the shape that x has."""
    asked = graph.maker(back.inputs[1])
    same = asked is not None and asked.is_a("Shape") and asked.inputs[0] is x and not asked.attributes.get("start")
    return same or same_shape(shape, _shape(back.outputs[0])) or _is_all_but_one(back.inputs[1], shape)


def _is_all_but_one(target: Value | None, shape: tuple[int | str | None, ...]) -> bool:
    """Whether a Reshape of as many elements asks for the sizes of a shape, and leaves one of them open."""
    asked = None if target is None else target.constant
    if not isinstance(asked, np.ndarray) or asked.shape != (len(shape),):
        return False
    others = [(wanted, size) for wanted, size in zip(asked.tolist(), shape, strict=True) if wanted != -1]
    return len(others) >= len(shape) - 1 and all(wanted == size and wanted != 0 for wanted, size in others)


def _shape(value: Value | None) -> tuple[int | str | None, ...]:
    known = None if value is None else value.type
    return () if known is None or known.shape is None else known.shape


def _per_channel(step: Step, op_type: str, before: Step, shape: tuple[int | str | None, ...]) -> Value | None:
    """The constant that a step applies to every channel, as a row."""
    if not step.is_a(op_type):
        return None
    other = step.inputs[1] if step.inputs[0] is before.outputs[0] else step.inputs[0]
    array = None if other is None else other.constant
    if other is None or not isinstance(array, np.ndarray) or array.size != shape[1]:
        return None
    if array.ndim not in (len(shape) - 1, len(shape)) or array.shape[-len(shape) + 1] != array.size:
        return None
    return Value(other.name, of_array(array.reshape(-1)), array.reshape(-1))


def _fuse_rms_norm(graph: Neighbours, square: Step) -> None:
    """``x / sqrt(mean(x ** 2) + eps) * scale`` over the last axis."""
    x = square.inputs[0]
    chain = _chain(graph, square, ("ReduceMean",), ("Add",), ("Sqrt",)) if _is_square(square, {x}) else None
    if chain is None or not _over_last(chain[0]) or (epsilon := number(chain[1])) is None:
        return
    quotient = _quotient(graph, x, chain[-1])
    scaled = graph.only_reader(quotient[-1]) if quotient else None
    scale = None if scaled is None else _row(scaled, "Mul", quotient[-1])
    if scaled is None or scale is None:
        return
    norm = replace(
        scaled, key=OpKey("", "RMSNormalization", 23), inputs=[x, scale], attributes={"axis": -1, "epsilon": epsilon},
        metadata=square.metadata, name=square.name,
    )  # fmt: skip
    graph.replace([square, *chain, *quotient, scaled], norm)


def _quotient(graph: Neighbours, x: Value | None, root: Step) -> list[Step]:
    """The steps that divide ``x`` by a root, or multiply it with its reciprocal; empty if there are none."""
    first = graph.only_reader(root)
    if first is None:
        return []
    if first.is_a("Div") and first.inputs[0] is x and first.inputs[1] is root.outputs[0]:
        return [first]
    if not (first.is_a("Reciprocal") or (first.is_a("Div") and _is_one(first.inputs[0]))):
        return []
    product = graph.only_reader(first)
    if product is None or not product.is_a("Mul") or x not in product.inputs or first.outputs[0] not in product.inputs:
        return []
    return [first, product]


def _is_one(value: Value | None) -> bool:
    array = None if value is None else value.constant
    return isinstance(array, np.ndarray) and array.size == 1 and array.item() == 1


RULES: Rules = {
    "Pow": (_fuse_rms_norm,),
    "ReduceMean": (_fuse_layer_norm,),
    "InstanceNormalization": (_fuse_group_norm,),
}
