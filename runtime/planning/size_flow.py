"""Sizes that a graph computes, by name: the shape of what is reshaped to ``Concat(Shape(x)[:2], [4, -1])``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.typing.plain import Type
from entrepot.runtime.planning.plan import Step, Value
from entrepot.runtime.planning.type_flow import completed

Sizes: TypeAlias = tuple[int | str | None, ...]
"""Elements of a vector of sizes: numbers, names of axes, or unknown."""

_MOST = 16
"""Elements of a vector that may be a shape."""

_EXACT = frozenset({ir.DataType.INT32, ir.DataType.INT64, ir.DataType.DOUBLE})
"""Element types that hold every size."""


class SizeFlow:
    """What is known of the integers that steps make of shapes; steps are shown in the order that they run in."""

    def __init__(self) -> None:
        self._sizes: dict[Value, Sizes] = {}

    def follow(self, step: Step) -> None:
        """Note the sizes that a step makes, or state those of what it reshapes where its type leaves them open."""
        if step.domain or len(step.outputs) != 1 or (made := step.outputs[0]) is None or not step.inputs:
            return
        if step.op_type == "Reshape":
            made.type = completed(made.type, self._reshaped(step, made.type))
        found = self._made(step)
        if found is not None and len(found) <= _MOST:
            self._sizes[made] = found

    def of(self, value: Value | None) -> Sizes | None:
        """The elements of a scalar or vector of integers; ``None`` if nothing is known of them."""
        if value is None or not isinstance(value.constant, np.ndarray):
            return None if value is None else self._sizes.get(value)
        is_small = value.constant.dtype.kind == "i" and value.constant.ndim <= 1 and value.constant.size <= _MOST
        return tuple(value.constant.reshape(-1).tolist()) if is_small else None

    def _reshaped(self, step: Step, known: Type | None) -> Type | None:
        """What a Reshape makes, with its shape: what stands for the rest is found where all other names cancel."""
        target, given = self.of(_second(step)), _shape(step.inputs[0])
        if target is None or known is None:
            return known
        keeps = not step.attributes.get("allowzero", 0)
        shape = [_kept(given, axis) if size == 0 and keeps else size for axis, size in enumerate(target)]
        if shape.count(-1) == 1:
            at = shape.index(-1)
            shape[at] = None if given is None else _rest(given, shape[:at] + shape[at + 1 :])
        sizes = tuple(size if isinstance(size, str) or (size or 0) > 0 else None for size in shape)
        return replace(known, shape=sizes)

    def _made(self, step: Step) -> Sizes | None:
        match step.op_type:
            case "Shape":
                shape = _shape(step.inputs[0])
                return None if shape is None else shape[step.attributes.get("start", 0) : step.attributes.get("end")]
            case "Gather":
                return self._gathered(step)
            case "Slice":
                return self._sliced(step)
            case "Concat":
                return self._joined(step)
            case "Cast" | "Identity" | "Squeeze" | "Unsqueeze" if (
                step.attributes.get("to", ir.DataType.INT64) in _EXACT
            ):
                return self.of(step.inputs[0])
        return None

    def _gathered(self, step: Step) -> Sizes | None:
        sizes, places = self.of(step.inputs[0]), _second(step)
        if sizes is None or places is None or not isinstance(places.constant, np.ndarray) or places.constant.ndim > 1:
            return None
        chosen = places.constant.reshape(-1).tolist()
        return tuple(sizes[at] for at in chosen) if all(-len(sizes) <= at < len(sizes) for at in chosen) else None

    def _sliced(self, step: Step) -> Sizes | None:
        sizes, bounds = self.of(step.inputs[0]), [self.of(each) for each in step.inputs[1:3]]
        steps = step.inputs[4] if len(step.inputs) > 4 else None
        stride = (1,) if steps is None else self.of(steps)
        numbers = [each[0] for each in (*bounds, stride) if each is not None and len(each) == 1]
        if sizes is None or len(numbers) != 3 or not all(isinstance(each, int) for each in numbers) or numbers[2] == 0:
            return None
        return sizes[slice(*map(_within, numbers))]

    def _joined(self, step: Step) -> Sizes | None:
        parts = [self.of(each) or _unknown(each) for each in step.inputs]
        return None if None in parts else tuple(size for part in parts for size in part or ())


def _second(step: Step) -> Value | None:
    return step.inputs[1] if len(step.inputs) > 1 else None


def _shape(value: Value | None) -> Sizes | None:
    return None if value is None or value.type is None else value.type.shape


def _unknown(value: Value | None) -> Sizes | None:
    """So many elements, of which nothing is known."""
    shape = _shape(value)
    return (None,) * shape[0] if shape is not None and len(shape) == 1 and isinstance(shape[0], int) else None


def _within(bound: int | str | None) -> int:
    """A bound as Python slices by it; ONNX has the largest numbers for an open end."""
    assert isinstance(bound, int)
    return max(-_MOST * 2, min(bound, _MOST * 2))


def _kept(given: Sizes | None, axis: int) -> int | str | None:
    return None if given is None or axis >= len(given) else given[axis]


def _rest(given: Sizes, others: Sequence[int | str | None]) -> int | str | None:
    """What is left of a product of sizes without others: a number, or one name."""
    if None in given or None in others or 0 in given or 0 in others:
        return None
    left, gone = Counter(filter(_is_name, given)), Counter(filter(_is_name, others))
    names = list((left - gone).elements())
    number, by = (prod(size for size in sizes if isinstance(size, int)) for sizes in (given, others))
    if gone - left or number % by or len(names) > 1 or (names and number != by):
        return None
    return names[0] if names else number // by


def _is_name(size: int | str | None) -> bool:
    return isinstance(size, str)
