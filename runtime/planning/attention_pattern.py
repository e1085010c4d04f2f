"""Attention as exporters spell it out: ``softmax(q·a @ (k·b)' [+ mask]) @ v``, guarded where rows are all masked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import Step, Value


@dataclass(frozen=True)
class Found:
    """What the pattern is made of.

    Attributes:
        steps: In order, the last one last.
        inputs: Query, key, value, and the mask if one is added.
        scale: What scores are multiplied by.
        transposed: Whether the key comes with its last two axes swapped.
        guarded: Whether weights that are NaN are zero.
    """

    steps: list[Step]
    inputs: list[Value]
    scale: float
    transposed: bool
    guarded: bool


def find(graph: Neighbours, softmax: Step, *, masked: bool = False) -> Found | None:
    """The pattern around a Softmax over the last of four axes.

    A row whose keys are all hidden is zero where the guard is, and NaN without it.

    Args:
        graph: Where the step is.
        softmax: The step.
        masked: Whether a mask without the guard is a match, too.
    """
    after = ending(graph, softmax)
    shape = _shape(softmax.inputs[0])
    if after is None or len(shape) != 4 or softmax.attributes.get("axis", -1) not in (-1, 3):
        return None
    before, mask = _scores(graph, softmax, shape)
    if not before or (mask is not None and len(after) == 1 and not masked):
        return None
    product = before[0]
    query, first = _scaled(graph, product.inputs[0], product)
    key, second = _scaled(graph, product.inputs[1], product)
    plain = untransposed(graph, key, second[0] if second else product)
    value = after[-1].inputs[1]
    inputs = [query, key if plain is None else plain[-1], value]
    if any(each is None or len(_shape(each)) != 4 for each in inputs):
        return None
    scale = _number(first) * _number(second)
    steps = [*(plain[0] if plain else []), *first, *second, *before, softmax, *after]
    return Found(steps, [each for each in (*inputs, mask) if each is not None], scale, plain is None, len(after) > 1)


def ending(graph: Neighbours, softmax: Step) -> list[Step] | None:
    """The product with the value, after ``Where(IsNaN(p), 0, p)`` if that is there."""
    readers = graph.readers(softmax.outputs[0])
    if len(readers) == 1:
        return readers if _multiplies(readers[0], softmax) else None
    nan = next((step for step in readers if step.is_a("IsNaN")), None)
    guard = next((step for step in readers if step.is_a("Where")), None)
    if len(readers) != 2 or nan is None or guard is None or graph.only_reader(nan) is not guard:
        return None
    zero = guard.inputs[1]
    if guard.inputs[0] is not nan.outputs[0] or zero is None or zero.constant is None or np.any(zero.constant):
        return None
    product = graph.only_reader(guard)
    return [nan, guard, product] if product is not None and _multiplies(product, guard) else None


def _multiplies(product: Step, step: Step) -> bool:
    return product.is_a("MatMul") and product.inputs[0] is step.outputs[0]


def _scores(graph: Neighbours, softmax: Step, shape: tuple[object, ...]) -> tuple[list[Step], Value | None]:
    """The product of query and key, with the addition of a mask that does not widen it."""
    step = _alone(graph, softmax.inputs[0], softmax)
    if step is not None and step.is_a("Add"):
        for scores, mask in (step.inputs, step.inputs[::-1]):
            product = _alone(graph, scores, step)
            if product is not None and product.is_a("MatMul") and mask is not None and _fits(mask, shape):
                return [product, step], mask
    return ([step], None) if step is not None and step.is_a("MatMul") else ([], None)


def _fits(mask: Value, shape: tuple[object, ...]) -> bool:
    known = _shape(mask)
    pairs = zip(known[::-1], shape[::-1], strict=False)
    return 2 <= len(known) <= 4 and all(dim == 1 or (dim is not None and dim == other) for dim, other in pairs)


def _scaled(graph: Neighbours, value: Value | None, reader: Step) -> tuple[Value | None, list[Step]]:
    """An operand without the multiplication by a number before it, and that step."""
    step = _alone(graph, value, reader)
    if step is None or not step.is_a("Mul"):
        return value, []
    for operand, factor in (step.inputs, step.inputs[::-1]):
        if factor is not None and isinstance(factor.constant, np.ndarray) and factor.constant.size == 1:
            return operand, [step]
    return value, []


def _number(steps: list[Step]) -> float:
    constants = [value.constant for step in steps for value in step.inputs if value is not None]
    return next((float(each.item()) for each in constants if isinstance(each, np.ndarray) and each.size == 1), 1.0)


def untransposed(graph: Neighbours, key: Value | None, reader: Step) -> tuple[list[Step], Value] | None:
    """The steps that swap the key's last axes, and what it is before: Transpose, or Reshape, Transpose and Reshape.

    Args:
        graph: Where the steps are.
        key: With the axes swapped.
        reader: The step that alone reads it.
    """
    last = _alone(graph, key, reader)
    if last is None:
        return None
    if last.is_a("Transpose"):
        source = last.inputs[0]
        swaps = list(last.attributes.get("perm") or ()) == [0, 1, 3, 2]
        return ([last], source) if swaps and source is not None else None
    middle = _alone(graph, last.inputs[0], last) if last.is_a("Reshape") else None
    if middle is None or not middle.is_a("Transpose") or list(middle.attributes.get("perm") or ()) != [0, 2, 1]:
        return None
    first = _alone(graph, middle.inputs[0], middle)
    source = None if first is None or not first.is_a("Reshape") else first.inputs[0]
    if first is None or source is None or not _only_swaps(source, first.outputs[0], key):
        return None
    return [first, middle, last], source


def _only_swaps(source: Value, flat: Value | None, swapped: Value | None) -> bool:
    """Whether shapes say that heads are put into one axis and come back, and the last two axes stay till then."""
    shape, rows, after = _shape(source), _shape(flat), _shape(swapped)
    if len(shape) != 4 or len(rows) != 3 or None in (*shape, *rows[1:], *after):
        return False
    batch, heads, length, size = shape
    return rows[1:] == (length, size) and after == (batch, heads, size, length)


def _alone(graph: Neighbours, value: Value | None, reader: Step) -> Step | None:
    """The step that makes a value, if only ``reader`` reads it."""
    made = graph.maker(value)
    return made if made is not None and graph.only_reader(made) is reader else None


def _shape(value: Value | None) -> tuple[object, ...]:
    known = None if value is None else value.type
    return () if known is None or known.shape is None else known.shape
