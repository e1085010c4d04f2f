"""Numbers rounded to steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.terms import Term, choose
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import rank_of, scalar
from entrepot.exporters.tensorflow.table import translates


@translates("FakeQuantWithMinMaxArgs")
def fake_quantised(node: Node, build: Builder, x: Any) -> Any:
    """Between given bounds."""
    bounds = (build.constant(np.float32(node[name])) for name in ("min", "max"))
    return _nudged(node, build, x, *bounds)


@translates("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quantised_by_inputs(node: Node, build: Builder, x: Any, low: Any, high: Any) -> Any:
    """Between bounds that are inputs, one pair for each channel or for all."""
    return _nudged(node, build, x, low, high)


def _nudged(node: Node, build: Builder, x: Any, low: Any, high: Any) -> Any:
    """Bounds are moved so that zero is one of the steps."""
    first, last = float(node["narrow_range"]), float(2 ** node["num_bits"] - 1)
    given, bottom, top = (Term(build, each) for each in (x, low, high))
    step = (top - bottom) / (last - first)
    zero = first - bottom / step
    place = choose(zero < first, first, choose(zero > last, last, (zero + 0.5).floor()))
    least, most = (first - place) * step, (last - place) * step
    inside = given.at_least(least).at_most(most)
    inverse = (last - first) / (top - bottom)
    value = ((inside - least) * inverse + 0.5).floor() * step + least
    both = (bottom == 0) & (top == 0)
    return choose(both, 0.0, value).value


@translates("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def rounded_to_steps(node: Node, build: Builder, x: Any, *inputs: Any) -> Any:
    """To steps between bounds, which may be those of the values."""
    signed, narrow = node["signed_input"], node.get("narrow_range", False)
    bits = node["num_bits"] if len(inputs) < 3 else _bits(node)
    axis = node.get("axis", -1)
    low, high = _bounds(node, build, x, inputs, axis)
    lowest = float(-(2 ** (bits - 1)) + narrow) if signed else float(narrow)
    highest = float(2 ** (bits - 1) - 1) if signed else float(2**bits - 1)
    from_low = choose(low * lowest > 0, lowest / low, np.inf)
    from_high = choose(high * highest > 0, highest / high, np.inf)
    by_low = from_low < from_high
    factor = choose(by_low, from_low, from_high)
    inverse = choose(by_low, low / lowest if lowest else low * 0.0, high / highest)
    least = choose(by_low, low, lowest * inverse)
    most = choose(by_low, highest * inverse, high)
    given = Term(build, x)
    inside = (given.at_most(most).at_least(least) if node["range_given"] else given) * factor
    mode = node.get("round_mode", "HALF_TO_EVEN")
    whole = inside.round() if mode == "HALF_TO_EVEN" else (inside + 0.5).floor()
    return (whole * inverse).value


def _bits(node: Node) -> int:
    bits = node.constant(3)
    if bits is None:
        node.refuse("takes a number of bits that varies")
    return int(np.asarray(bits))


def _bounds(node: Node, build: Builder, x: Any, inputs: Any, axis: int) -> tuple[Term, Term]:
    rank = rank_of(node)
    if not node["range_given"]:
        axes = [each for each in range(rank) if axis == -1 or each != axis]
        found = (build.op(op, x, axes, keepdims=1) for op in ("ReduceMin", "ReduceMax"))
        return tuple(Term(build, each) for each in found)  # type: ignore[return-value]
    given = inputs[:2] or [build.constant(np.array(node[name], x.dtype.numpy())) for name in ("input_min", "input_max")]
    if axis != -1:
        shape = [1] * rank
        shape[axis] = -1
        given = [build.op("Reshape", each, shape) for each in given]
    return Term(build, given[0]), Term(build, given[1])


@translates("QuantizeV2")
def quantised(node: Node, build: Builder, x: Any, low: Any, high: Any) -> Any:
    """To integers between bounds, which the result brings with it."""
    if node["axis"] != -1:
        node.refuse("along an axis has no counterpart")
    if node["mode"] != "SCALED":
        return _between(node, build, x, low, high)
    kind = np.iinfo(node.result_dtype())
    narrow = node["narrow_range"]
    lowest, highest = float(kind.min + (narrow and kind.min < 0)), float(kind.max)
    given = Term(build, x)
    bottom, top = (Term(build, scalar(build, build.op("Reshape", each, [-1]))) for each in (low, high))
    factor = choose(bottom * lowest > 0, lowest / bottom, np.inf)
    other = choose(top * highest > 0, highest / top, np.inf)
    factor = factor.at_most(other)
    least, most = lowest / factor, highest / factor
    inside = given.at_least(least).at_most(most) * factor
    mode = node["round_mode"]
    whole = inside.round() if mode == "HALF_TO_EVEN" else _away(inside)
    return build.cast(whole.value, node.result_dtype()), least.value, most.value


def _between(node: Node, build: Builder, x: Any, low: Any, high: Any) -> Any:
    """To integers of which the least and the largest are the bounds, moved apart where they are too close."""
    kind = np.iinfo(node.result_dtype())
    bottom, top = (Term(build, scalar(build, build.op("Reshape", each, [-1]))) for each in (low, high))
    apart = choose(bottom < 0, -bottom, bottom).at_least(choose(top < 0, -top, top)).at_least(1.0)
    least = bottom.at_most(0.0)
    most = top.at_least(least + apart * float(node["ensure_minimum_range"])).at_least(0.0)
    given, width = Term(build, x), float(2**kind.bits - 1)
    if node["mode"] == "MIN_COMBINED":
        steps = (given.at_least(least).at_most(most) - least) * (width / (most - least))
        whole = _away(steps - float(2 ** (kind.bits - 1)) if kind.min < 0 else steps)
    else:
        scale = width / (most - least)
        if kind.min < 0:
            whole = _away(given * scale) - _away(least * scale) + float(kind.min)
        else:  # oneDNN's kernel, which TensorFlow uses unless told not to, rounds once
            whole = _away((given - least) * scale)
        whole = whole.at_least(float(kind.min)).at_most(float(kind.max))
    return build.cast(whole.value, node.result_dtype()), least.value, most.value


def _away(x: Term) -> Term:
    return choose(x < 0, -((0.5 - x).floor()), (x + 0.5).floor())


@translates("Dequantize")
def dequantised(node: Node, build: Builder, x: Any, low: Any, high: Any) -> Any:
    """Integers as numbers between bounds."""
    if node["axis"] != -1:
        node.refuse("along an axis has no counterpart")
    kind = np.iinfo(node.dtype(0))
    given = Term(build, build.cast(x, np.float32))
    bottom, top = (Term(build, scalar(build, build.op("Reshape", each, [-1]))) for each in (low, high))
    if node["mode"] == "SCALED":
        lowest = float(kind.min + (node["narrow_range"] and kind.min < 0))
        step = top / float(kind.max)
        step = step.at_least(bottom / lowest) if kind.min < 0 else step
        value = given * step
    elif node["mode"] == "MIN_FIRST":
        step = (top - bottom) / float(2**kind.bits - 1)
        value = (given - float(kind.min)) * step + (bottom / step).round() * step
    else:
        half = float(2 ** (kind.bits - 1)) if kind.min < 0 else 0.0
        value = (given + half) * ((top - bottom) / float(2**kind.bits - 1)) + bottom
    return build.cast(value.value, node.result_dtype())
