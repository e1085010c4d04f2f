"""Attention that exporters spelled out, found before it becomes steps of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from entrepot.importers.torch.layers.layer import LAYERS
from entrepot.importers.torch.steps.patterns import alone, number
from entrepot.importers.torch.text.sizes import same_shape
from entrepot.ir.table import OpKey
from entrepot.runtime.planning import attention_pattern
from entrepot.runtime.planning.fuse import Neighbours, Rules
from entrepot.runtime.planning.plan import Step, Value

Kept = Callable[[Value], bool]
"""Whether a constant is part of the module's state, so that it may be trained or loaded."""


def rules(kept: Kept) -> Rules:
    """What is tried on the steps of a model."""
    return {"Softmax": (partial(_fuse_attention, kept),)}


def _fuse_attention(kept: Kept, graph: Neighbours, softmax: Step) -> None:
    """``softmax(q @ k' [* scale] [+ mask]) @ v``, as a step of its own.

    Where a mask hides all keys from a query, torch gives zeros, and so does a graph with a guard. Without one it gives
    NaN, or an average over what is hidden: such a mask makes it no match.
    """
    ending, rank = attention_pattern.ending(graph, softmax), _rank(softmax.inputs[0])
    found = _scores(kept, graph, softmax)
    if found is None or rank < 3 or softmax.attributes.get("axis", -1) not in (-1, rank - 1):
        return
    steps, mask, scale = found
    if ending is None:
        ending, mask = _zeroed(graph, softmax, mask)
    if not ending:
        return
    if len(ending) == 1 and not _is_finite(graph, mask):
        return
    heads = [steps[0].inputs[0], steps[0].inputs[1], ending[-1].inputs[1]]
    if not _fits(mask, softmax.inputs[0]) or not _float(softmax) or not _alike(heads):
        return
    query, factor, gone = _scaled(kept, graph, steps[0], 0)
    key, other, before = _scaled(kept, graph, steps[0], 1)
    swaps, key = _untransposed(graph, key, before[0] if before else steps[0])
    if key is None:
        return
    gone = [*gone, *swaps, *before]
    attention = replace(
        ending[-1], key=OpKey(LAYERS, "Attention", 1), inputs=[query, key, heads[2], *([] if mask is None else [mask])],
        attributes={"scale": scale * factor * other},
    )  # fmt: skip
    graph.replace([*gone, *steps, softmax, *ending], attention)


def _zeroed(graph: Neighbours, softmax: Step, mask: Value | None) -> tuple[list[Step], Value | None]:
    """The product with the value, after weights of queries that see no key are set to zero; and which keys are seen.

    ``softmax(scores + Where(sees, mask, 0)) * Cast(sees)``, as our exporter writes a mask of truths.
    """
    times, chosen = graph.only_reader(softmax), graph.maker(mask)
    product = None if times is None else graph.only_reader(times)
    if times is None or product is None or chosen is None or not (times.is_a("Mul") and chosen.is_a("Where")):
        return [], mask
    factor = times.inputs[1] if times.inputs[0] is softmax.outputs[0] else times.inputs[0]
    cast, sees, hidden = graph.maker(factor), chosen.inputs[0], graph.maker(chosen.inputs[1])
    if cast is None or not cast.is_a("Cast") or cast.inputs[0] is not sees or not _is(chosen.inputs[2], 0.0):
        return [], mask
    if hidden is None or not hidden.is_a("Where") or not _is(hidden.inputs[1], 0.0):
        return [], mask
    if not _is(hidden.inputs[2], -np.inf) or not _sees_any(graph, sees, hidden.inputs[0]):
        return [], mask
    is_last = product.is_a("MatMul") and product.inputs[0] is times.outputs[0]
    return ([times, product], hidden.inputs[0]) if is_last else ([], mask)


def _sees_any(graph: Neighbours, sees: Value | None, allowed: Value | None) -> bool:
    """Whether a truth says of each row of another that not all of it is false: more than none of them count."""
    more = graph.maker(sees)
    count = graph.maker(more.inputs[0]) if more is not None and more.is_a("Greater") else None
    if more is None or count is None or not _is(more.inputs[1], 0) or not count.is_a("ReduceSum"):
        return False
    axes = count.inputs[1].constant if len(count.inputs) > 1 and count.inputs[1] is not None else None
    counted, rank = graph.maker(count.inputs[0]), _rank(allowed)
    if axes is None or list(axes.reshape(-1)) not in ([-1], [rank - 1]) or not count.attributes.get("keepdims", 1):
        return False
    return counted is not None and counted.is_a("Cast") and counted.inputs[0] is allowed and _is_truth(allowed)


def _is_truth(value: Value | None) -> bool:
    return value is not None and value.type is not None and value.type.numpy == np.bool_


def _is(value: Value | None, number: float) -> bool:
    array = None if value is None else value.constant
    return isinstance(array, np.ndarray) and array.size > 0 and bool((array == number).all())


def _is_finite(graph: Neighbours, mask: Value | None) -> bool:
    """Whether no element of a mask can be minus infinity, as far as the steps say that made it."""
    if mask is None:
        return True
    if mask.constant is not None:
        return isinstance(mask.constant, np.ndarray) and bool(np.isfinite(mask.constant).all())
    made = graph.maker(mask)
    if made is None:
        return False
    if made.is_a("Cast"):
        known = made.inputs[0].type if made.inputs[0] is not None else None
        return known is not None and known.numpy is not None and known.numpy.kind in "biu"
    first = 1 if made.is_a("Where") else 0
    operands = made.inputs if made.is_a("Mul", "Sub", "Where") else made.inputs[:1] if made.is_a(*_MOVES) else []
    return bool(operands) and all(_is_finite(graph, value) for value in operands[first:])


_MOVES = ("Expand", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")


def _scores(kept: Kept, graph: Neighbours, softmax: Step) -> tuple[list[Step], Value | None, float] | None:
    """The product that a softmax is of and what follows it, the mask that is added, and the factor."""
    steps: list[Step] = []
    mask, scale = None, 1.0
    made = alone(graph, softmax.inputs[0], softmax)
    if made is not None and made.is_a("Add"):
        scores = next((value for value in made.inputs if _is_scores(graph, value, made)), None)
        mask = made.inputs[1] if made.inputs[0] is scores else made.inputs[0]
        steps.insert(0, made)
        made = alone(graph, scores, made)
    if made is not None and made.is_a("Mul", "Div") and (factor := _factor(kept, made)) is not None:
        scale = factor
        steps.insert(0, made)
        made = alone(graph, next((v for v in made.inputs if v is not None and v.constant is None), None), made)
    return ([made, *steps], mask, scale) if made is not None and made.is_a("MatMul") else None


def _scaled(kept: Kept, graph: Neighbours, product: Step, at: int) -> tuple[Value | None, float, list[Step]]:
    """An operand before it is multiplied by a number, the number, and the step that does so."""
    step = alone(graph, product.inputs[at], product)
    factor = _factor(kept, step) if step is not None and step.is_a("Mul") else None
    if step is not None and factor is not None:
        plain = next((value for value in step.inputs if value is not None and value.constant is None), None)
        if _rank(plain) == _rank(product.inputs[at]):
            return plain, factor, [step]
    return product.inputs[at], 1.0, []


def _factor(kept: Kept, step: Step) -> float | None:
    """What a step multiplies by, if that is a constant number and no weight."""
    if any(value is not None and value.constant is not None and kept(value) for value in step.inputs):
        return None
    if step.is_a("Div"):
        divisor = step.inputs[1]
        by = number(step) if divisor is not None and divisor.constant is not None else None
        return 1 / by if by else None
    return number(step)


def _alike(values: list[Value | None]) -> bool:
    """Whether all have the same axes before the last two, as far as they are declared."""
    ahead = [value.type.shape[:-2] for value in values if value is not None and value.type and value.type.shape]
    return len(ahead) == len(values) and all(same_shape(each, ahead[0]) for each in ahead)


def _rank(value: Value | None) -> int:
    known = None if value is None else value.type
    return 0 if known is None or known.shape is None else len(known.shape)


def _float(step: Step) -> bool:
    known = step.outputs[0].type if step.outputs[0] is not None else None
    return known is not None and known.numpy in (np.dtype(np.float32), np.dtype(np.float64))


def _fits(mask: Value | None, scores: Value | None) -> bool:
    """A mask has to broadcast to the scores without widening them."""
    if mask is None:
        return True
    return 2 <= _rank(mask) <= _rank(scores)


def _is_scores(graph: Neighbours, value: Value | None, reader: Step) -> bool:
    made = alone(graph, value, reader)
    if made is None:
        return False
    if made.is_a("MatMul"):
        return True
    return made.is_a("Mul", "Div") and number(made) is not None


def _untransposed(graph: Neighbours, key: Value | None, reader: Step) -> tuple[list[Step], Value | None]:
    """Keys before their last two axes changed places, and the steps that this takes away.

    A permutation that does more does the rest from now on.
    """
    found = attention_pattern.untransposed(graph, key, reader)
    if found is not None:
        return found
    keys = alone(graph, key, reader)
    if keys is None or not keys.is_a("Transpose"):
        return [], None
    perm, made = keys.attributes.get("perm"), keys.outputs[0]
    if perm is None or made is None or len(perm) < 3:
        return [], None
    left = [*perm[:-2], perm[-1], perm[-2]]
    if left == sorted(left):
        return [keys], keys.inputs[0]
    shape = None if made.type is None or made.type.shape is None else made.type.shape
    if made.type is None or shape is None:
        return [], None
    keys.attributes = {**keys.attributes, "perm": tuple(left)}
    made.type = replace(made.type, shape=(*shape[:-2], shape[-1], shape[-2]))
    return [], made
