"""What is rounded on the way to a result: the sizes of the terms behind it, times how often they are rounded.

Sums of products are linear in each input, so the case itself, run by an oracle on the absolute values of its inputs,
says ``Σ|a||b|``, and run on ones it says how many terms there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.judges import learnt
from tests.judges.oracle import by_onnxruntime, by_reference
from tests.op_cases.case import Case

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Use:
    """A case in float64: its inputs, its attributes with the defaults, and what an oracle computes."""

    case: Case
    inputs: Sequence[Any]
    attributes: dict[str, Any]
    outputs: Sequence[Any]


SUMS = {
    "AveragePool": lambda c: math.prod(c.attributes["kernel_shape"]),
    "Col2Im": lambda c: int(np.prod(c.inputs[2])),
    "Conv": lambda c: c.inputs[1][0].size + 1,
    "ConvTranspose": lambda c: c.inputs[1].size // c.inputs[1].shape[1] + 1,
    "CumSum": lambda c: max(c.inputs[0].shape),
    "Einsum": lambda c: max(x.size for x in c.inputs),
    "Gemm": lambda c: c.inputs[0].shape[1 - c.attributes.get("transA", 0)] + 3,
    "GlobalAveragePool": lambda c: math.prod(c.inputs[0].shape[2:]),
    "MatMul": lambda c: c.inputs[0].shape[-1],
    "Mean": lambda c: len(c.inputs),
    "ReduceL1": lambda c: c.inputs[0].size,
    "ReduceMean": lambda c: c.inputs[0].size,
    "ReduceSum": lambda c: c.inputs[0].size,
    "Sum": lambda c: len(c.inputs),
}
"""Operators that are linear in each of their inputs, and how many terms a sum of theirs has at most."""


def sum_of_magnitudes(case: Case) -> Any:
    """n times Σ|a||b|, accumulated in float64."""
    names = ("alpha", "beta")
    positive = {key: abs(value) if key in names else value for key, value in case.attributes.items()}
    floats = {n: x for n, x in enumerate(case.inputs) if x is not None and x.dtype.kind in "fV"}
    inputs = {n: np.nan_to_num(np.abs(x.astype(np.float64)), nan=0.0, posinf=0.0) for n, x in floats.items()}
    if not inputs or any(not x.size for x in inputs.values()):
        return 0.0
    wide = case.feeding(inputs).giving()
    wide.attributes = positive
    answers = by_reference(wide) if "reference" in case.oracles or case.expected is not None else None
    if answers is None:
        answers = by_onnxruntime(wide.feeding({n: x.astype(np.float32) for n, x in inputs.items()}))
    if answers is None:
        return 0.0
    return terms(SUMS[case.op_type](case)) * np.asarray(answers[0], np.float64)


def terms(n: int) -> float:
    """Roundings that add up in a sum of n: all of a few; of many, eight times what random signs leave of them."""
    return min(n, 4 * math.sqrt(n))


def _size(x: Any) -> float:
    """The largest finite magnitude."""
    finite = np.abs(np.asarray(x))[np.isfinite(x)]
    return float(finite.max()) if finite.size else 0.0


def _positive_terms(use: Use) -> list[Any]:
    """Sums of squares and products of many: a relative error for each term."""
    return [(terms(use.inputs[0].size) + 2) * np.abs(use.outputs[0])]


def _kernel_norm(use: Use) -> list[Any]:
    return [(math.prod(use.attributes["kernel_shape"]) + 8) * np.abs(use.outputs[0])]


def _logarithm(use: Use) -> list[Any]:
    """The logarithm of a sum, whose relative error becomes an absolute one; exponents are as exact as their size."""
    x = use.inputs[0]
    return [x.size + 2 * _size(x) + 4 * np.abs(np.nan_to_num(use.outputs[0]))]


def _softmax(use: Use) -> list[Any]:
    x = use.inputs[0]
    return [(x.shape[-1] + 2 * _size(x) + 8) * np.abs(use.outputs[0])]


def _log_softmax(use: Use) -> list[Any]:
    x = use.inputs[0]
    return [x.shape[-1] + 4 * _size(x) + 4 + 0 * y for y in use.outputs]


def _loss(use: Use) -> list[Any]:
    scores, weights = use.inputs[0], use.inputs[2] if len(use.inputs) > 2 else 1.0
    whole = use.inputs[1].size if use.attributes["reduction"] in (b"sum", "sum") else 1
    each = (scores.shape[1] + use.inputs[1].size + 4 * _size(scores) + 4) * _size(weights)
    return [each * whole, each]


def _picked_loss(use: Use) -> list[Any]:
    """A weighted mean or sum of elements that are only picked."""
    count = 1 if use.attributes["reduction"] in (b"none", "none") else use.inputs[1].size
    whole = count if use.attributes["reduction"] in (b"sum", "sum") else 1
    weight = _size(use.inputs[2]) if len(use.inputs) > 2 else 1.0
    return [(2 * terms(count) + 2) * _size(use.inputs[0]) * weight * whole]


def _scattered(use: Use) -> list[Any]:
    """Updates that meet at one place: products lose a rounding each, sums one of the size of their largest."""
    if use.attributes["reduction"] in (b"mul", "mul"):
        return [use.inputs[1].size * np.abs(use.outputs[0])]
    if use.attributes["reduction"] in (b"add", "add"):
        return [terms(use.inputs[1].size) * (_size(use.inputs[0]) + _size(use.inputs[2]))]
    return [0.0]


def _batch_normalization(use: Use) -> list[Any]:
    x, scale, bias, mean, var = use.inputs
    rows = x.size // scale.size if use.attributes["training_mode"] else 1
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    centre, spread = (x.mean(axes), x.var(axes)) if use.attributes["training_mode"] else (mean, var)
    column = (1, -1, *(1,) * (x.ndim - 2))
    scale, bias, centre, spread = (v.reshape(column) for v in (scale, bias, centre, spread))
    sigma = np.sqrt(spread + use.attributes["epsilon"])
    main = (terms(rows) + 4) * ((np.abs(x) + np.abs(centre)) * np.abs(scale) / sigma + np.abs(bias))
    return [main, rows * _size(x) + np.abs(mean), rows * _size(x) ** 2 + np.abs(var)]


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float, *, centred: bool = True) -> tuple[Array, Array]:
    """Σ of what is rounded in (x - mean) / deviation by two passes, and the deviation itself."""
    n = math.prod(x.shape[axis] for axis in axes)
    size = np.abs(x).mean(axes, keepdims=True) if centred else 0.0
    moment = x.var(axes, keepdims=True) if centred else (x * x).mean(axes, keepdims=True)
    sigma = np.sqrt(moment + epsilon)
    y = (x - x.mean(axes, keepdims=True) if centred else x) / sigma
    return (terms(n) + 4) * ((np.abs(x) + size) / sigma + np.abs(y)), sigma


def _layer_normalization(use: Use) -> list[Any]:
    x, scale, *bias = use.inputs
    axis = use.attributes["axis"] % x.ndim
    axes = tuple(range(axis, x.ndim))
    n = math.prod(x.shape[axis:])
    main, sigma = _normalized(x, axes, use.attributes["epsilon"])
    offset = np.abs(bias[0]) if bias and bias[0] is not None else 0.0
    return [
        main * np.abs(scale) + offset,
        n * np.abs(x).mean(axes, keepdims=True),
        main.max(axes, keepdims=True) / sigma,
    ]


def _rms_normalization(use: Use) -> list[Any]:
    x, scale = use.inputs
    axes = tuple(range(use.attributes["axis"] % x.ndim, x.ndim))
    return [_normalized(x, axes, use.attributes["epsilon"], centred=False)[0] * np.abs(scale)]


def _instance_normalization(use: Use) -> list[Any]:
    x, scale, bias = use.inputs
    column = (1, -1, *(1,) * (x.ndim - 2))
    main, _ = _normalized(x, tuple(range(2, x.ndim)), use.attributes["epsilon"])
    return [main * np.abs(scale.reshape(column)) + np.abs(bias.reshape(column))]


def _group_normalization(use: Use) -> list[Any]:
    x, scale, bias = use.inputs
    groups = x.reshape(x.shape[0], use.attributes["num_groups"], -1)
    main = _normalized(groups, (2,), use.attributes["epsilon"])[0].reshape(x.shape)
    column = (1, -1, *(1,) * (x.ndim - 2))
    return [main * np.abs(scale.reshape(column)) + np.abs(bias.reshape(column))]


def _mean_variance_normalization(use: Use) -> list[Any]:
    axes = tuple(use.case.attributes.get("axes", (0, 2, 3)))
    return [_normalized(use.inputs[0], axes, 0.0)[0]]


def _neighbours(use: Use) -> list[Any]:
    """(bias + alpha · mean of squares) ** beta: a relative error of each square, and of the power."""
    return [(use.attributes["size"] + 8) * np.abs(use.outputs[0])]


def _attention(use: Use) -> list[Any]:
    """Scores are at most the product of two lengths, and the exponential makes their error relative; then a sum."""
    q, k, v = use.inputs[:3]
    depth = q.shape[-1] // max(use.attributes.get("q_num_heads", 1), 1) if q.ndim == 3 else q.shape[-1]
    scale = use.attributes.get("scale") or 1 / math.sqrt(depth)
    mask = use.inputs[3] if len(use.inputs) > 3 and use.inputs[3] is not None else 0.0
    longest = [np.sqrt((x * x).sum(-1)).max(initial=0) for x in (q, k)]
    score = scale * math.prod(longest) + _size(mask)
    return [(k.shape[-2] + 2 * score) * _size(v), _size(k), _size(v), (k.shape[-2] + 2 * score)]


def _rotary(use: Use) -> list[Any]:
    return [4 * _size(use.inputs[0]) * max(map(_size, use.inputs[1:3]))]


def _recurrent(use: Use) -> list[Any]:
    """Steps times what each of them adds up, damped by the slope of a sigmoid, which is a quarter at most."""
    x, w, r = use.inputs[:3]
    bias = _size(use.inputs[3]) if len(use.inputs) > 3 and use.inputs[3] is not None else 0.0
    added = _size(x) * np.abs(w).sum(-1).max() + np.abs(r).sum(-1).max() + 2 * bias
    return [max(x.shape[:2]) * (added + 4) / 4]


def _transform(use: Use) -> list[Any]:
    """Sums over the signal (of products with sines, as exact as their angles of up to 2π), of the window too."""
    x, given = use.inputs[0], [v for v in use.inputs[2:] if v is not None]
    windows = [v for v in given if v.ndim]
    lengths = [v.size for v in windows] + [int(v) for v in given if not v.ndim]
    n = max(lengths) if use.case.op_type == "STFT" else max(*x.shape, *use.outputs[0].shape)
    return [(terms(n) + 2 * math.pi) * n * _size(x) * max(map(_size, windows), default=1.0)]


def _sampled(use: Use) -> list[Any]:
    """Interpolation: coordinates are as exact as they are large, weights sum to a few, and both meet the values."""
    x = use.inputs[0]
    longest = max([*x.shape, *use.outputs[0].shape, 1])
    return [16 * longest * max(_size(x), abs(use.attributes.get("extrapolation_value", 0.0)))]


def _deformed(use: Use) -> list[Any]:
    x, w, offset = use.inputs[:3]
    bias = _size(use.inputs[3]) if len(use.inputs) > 3 and use.inputs[3] is not None else 0.0
    mask = _size(use.inputs[4]) if len(use.inputs) > 4 else 1.0
    n = w[0].size
    products = 2 * n * (np.abs(x).sum() / max(x.size, 1)) * np.abs(w).mean() * mask
    return [(terms(n) + 4 * (max(x.shape[2:]) + _size(offset))) * products + bias]


def _grid(use: Use) -> list[Any]:
    return [8 * np.abs(use.inputs[0]).sum(-1).max()]


def _pooled_region(use: Use) -> list[Any]:
    return [16 * max(use.inputs[0].shape[2:]) * _size(use.inputs[0]) * (1 + 0 * use.outputs[0])]


def _determinant(use: Use) -> list[Any]:
    """Hadamard's bound, times the roundings of an elimination."""
    x = use.inputs[0]
    return [x.shape[-1] ** 2 * np.sqrt((x * x).sum(-1)).prod(-1)]


def _count_up(use: Use) -> list[Any]:
    """Start and steps, which may be added one after the other."""
    return [np.size(use.outputs[0]) * max(_size(use.inputs[0]), _size(use.inputs[1]))]


def _window(_use: Use) -> list[Any]:
    return [2 * math.pi + 2]


def _step(use: Use) -> list[Any]:
    """A step of an optimizer: a few operations on each of its states."""
    states = max(map(_size, use.inputs[2:]))
    return [16 * (states + states**2)]


COMPOSED: dict[str, Callable[[Use], list[Any]]] = {
    **dict.fromkeys(("Adagrad", "Adam", "Momentum"), _step),
    **dict.fromkeys(("CumProd", "ReduceProd", "ReduceL2", "ReduceSumSquare", "GlobalLpPool"), _positive_terms),
    **dict.fromkeys(("DFT", "STFT"), _transform),
    **dict.fromkeys(("GridSample", "Resize"), _sampled),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), _window),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), _logarithm),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _recurrent),
    **dict.fromkeys(("LinearClassifier", "LinearRegressor"), learnt.linear),
    **dict.fromkeys(("SVMClassifier", "SVMRegressor"), learnt.machines),
    **dict.fromkeys(("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"), learnt.trees),
    **dict.fromkeys(("ScatterElements", "ScatterND"), _scattered),
    "AffineGrid": _grid,
    "Attention": _attention,
    "BatchNormalization": _batch_normalization,
    "DeformConv": _deformed,
    "Det": _determinant,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LRN": _neighbours,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _log_softmax,
    "LpNormalization": _positive_terms,
    "LpPool": _kernel_norm,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "NegativeLogLikelihoodLoss": _picked_loss,
    "Normalizer": learnt.normalised,
    "RMSNormalization": _rms_normalization,
    "Range": _count_up,
    "RoiAlign": _pooled_region,
    "RotaryEmbedding": _rotary,
    "Softmax": _softmax,
    "SoftmaxCrossEntropyLoss": _loss,
}
"""Operators of several steps, and the sizes of what each step rounds."""
