"""Functions of ``keras.ops`` that look at one element at a time, and those that reduce, search or sort."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from tests.export_cases.keras.case import Given, model

STEPS = Given((None, 4))
FIXED = Given((3, 4))
ABOVE_ZERO = Given((None, 4), positive=True)
WHOLE = Given((None, 4), "int32", most=9)
TRUTH = Given((None, 4), "bool")


def _affine(before: Any, now: Any) -> Any:
    return before[0] * now[0], now[0] * before[1] + now[1]


def function(family: str, title: str, call: Callable[..., Any], *given: Given | tuple[int | None, ...]) -> None:
    """A functional model of one call."""
    inputs = tuple(each if isinstance(each, Given) else Given(each) for each in given)

    def build() -> keras.Model:
        tensors = [keras.Input(each.shape, dtype=each.dtype) for each in inputs]
        return keras.Model(tensors if len(tensors) > 1 else tensors[0], call(*tensors))

    model(family, title, *inputs)(build)


each = partial(function, "elementwise")
OF_FLOATS = (
    "abs", "absolute", "angle", "arccos", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "celu", "conj",
    "copy", "cos", "cosh", "deg2rad", "elu", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fabs", "floor", "gelu",
    "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "i0", "imag", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "leaky_relu", "log_sigmoid", "log_softmax", "logical_not", "nan_to_num",
    "negative", "ones_like", "rad2deg", "ravel", "real", "reciprocal", "relu", "relu6", "round", "selu", "sigmoid",
    "sign", "signbit", "silu", "sin", "sinc", "sinh", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "square", "squareplus", "stop_gradient", "tan", "tanh", "tanh_shrink", "trunc",
    "zeros_like",
)  # fmt: skip
OF_POSITIVES = ("arccosh", "log", "log10", "log1p", "log2", "rsqrt", "sqrt")
OF_INTEGERS = (
    "abs", "bitwise_invert", "bitwise_not", "ceil", "conj", "cos", "exp", "expm1", "floor", "isfinite", "isnan",
    "log1p", "logical_not", "negative", "ones_like", "ravel", "real", "round", "sign", "signbit", "sin",
    "sqrt", "square", "tanh", "trunc", "zeros_like",
)  # fmt: skip
for name in OF_FLOATS:
    each(f"{name} of floats", getattr(ops, name), STEPS)
for name in OF_POSITIVES:
    each(f"{name} of floats", getattr(ops, name), ABOVE_ZERO)
for name in OF_INTEGERS:
    each(f"{name} of integers", getattr(ops, name), WHOLE)
for name in ("abs", "exp", "gelu", "log_softmax", "sigmoid", "sign", "softplus", "tanh"):
    each(f"{name} in half", getattr(ops, name), Given((None, 4), "float16"))
    each(f"{name} in double", getattr(ops, name), Given((None, 4), "float64"))
each("gelu exact", partial(ops.gelu, approximate=False), STEPS)
each("round to decimals", partial(ops.round, decimals=2), STEPS)
each("clip of floats", lambda x: ops.clip(x, -0.5, 0.7), STEPS)
each("clip of integers", lambda x: ops.clip(x, 2, 5), WHOLE)
each("threshold of floats", lambda x: ops.threshold(x, 0.1, -2.0), STEPS)
each("nan_to_num with numbers", lambda x: ops.nan_to_num(ops.log(x), nan=1.0, posinf=2.0, neginf=3.0), STEPS)
each("cast to integers", lambda x: ops.cast(x * 3, "int32"), STEPS)
each("cast to truth", lambda x: ops.cast(x, "bool"), WHOLE)
each("cast to half and back", lambda x: ops.cast(ops.cast(x, "bfloat16"), "float32"), STEPS)
each("saturate_cast to bytes", lambda x: ops.saturate_cast(x * 200, "uint8"), STEPS)
each("saturate_cast of integers", lambda x: ops.saturate_cast(x * 50, "int8"), WHOLE)
each("full_like of floats", lambda x: ops.full_like(x, 3.5), STEPS)
each("view as integers", lambda x: ops.view(x, "int32"), STEPS)
each("kaiser window", lambda x: x * ops.kaiser(4, 5.0), STEPS)
for name in ("bartlett", "blackman", "hamming", "hanning"):
    each(f"{name} window", lambda x, name=name: x * getattr(ops, name)(4), STEPS)

TWO_FLOATS = (
    "add", "arctan2", "divide", "divide_no_nan", "equal", "floor_divide", "fmax", "fmin", "fmod", "greater",
    "greater_equal", "heaviside", "hypot", "isclose", "less", "less_equal", "logaddexp", "logaddexp2", "maximum",
    "minimum", "mod", "multiply", "nextafter", "not_equal", "subtract", "true_divide",
)  # fmt: skip
TWO_INTEGERS = (
    "add", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "divide", "equal",
    "floor_divide", "fmod", "gcd", "greater", "lcm", "left_shift", "less", "maximum", "minimum", "mod", "multiply",
    "not_equal", "right_shift", "subtract", "true_divide",
)  # fmt: skip
for name in TWO_FLOATS:
    each(f"{name} of two", getattr(ops, name), STEPS, STEPS)
    each(f"{name} broadcast", getattr(ops, name), (3, 4), (1, 4))
    if name not in ("heaviside", "hypot"):  # these take arrays alone
        each(f"{name} with a number", lambda x, name=name: getattr(ops, name)(x, 0.5), STEPS)
for name in TWO_INTEGERS:
    each(f"{name} of integers", lambda x, y, name=name: getattr(ops, name)(x, y + 1), WHOLE, WHOLE)
    if name not in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"):  # these take arrays alone
        each(f"{name} with an integer", lambda x, name=name: getattr(ops, name)(x, 3), WHOLE)
for name in ("logical_and", "logical_or", "logical_xor"):
    each(f"{name} of truths", getattr(ops, name), TRUTH, TRUTH)
    each(f"{name} of floats", getattr(ops, name), STEPS, STEPS)
each("power of floats", ops.power, ABOVE_ZERO, STEPS)
each("power with a number", lambda x: x**3 + ops.power(ops.abs(x), 1.5), STEPS)
each("power of integers", lambda x: ops.power(x, 2), WHOLE)
each("floor_divide of negative integers", lambda x: (x - 4) // 3, WHOLE)
each("mod of negative integers", lambda x: (x - 4) % 3, WHOLE)
each("ldexp of floats", ops.ldexp, STEPS, WHOLE)
each("integers and floats", lambda x, y: x * y + ops.maximum(x, y), WHOLE, STEPS)
each("truths and floats", lambda x, y: x * y, TRUTH, STEPS)
each("operators", lambda x, y: abs(-x) / (y + 2.0) - x @ ops.transpose(y, (0, 2, 1)) @ y, STEPS, STEPS)
each("where of three", ops.where, TRUTH, STEPS, STEPS)
each("where with numbers", lambda x: ops.where(x > 0, x, 1.5), STEPS)
each("select of floats", lambda x: ops.select([x > 1, x > 0], [x * 2, x - 1], 7.0), STEPS)
each("isin of integers", lambda x: ops.isin(x, [1, 4, 7]), WHOLE)
each("allclose of two", lambda x: ops.cast(ops.allclose(x, x + 1e-9), "float32") + x, STEPS)
each("psnr of images", lambda x, y: ops.psnr(x, y, 2.0) + x, (3, 4), (3, 4))
each(
    "binary_crossentropy of floats", lambda x, y: ops.binary_crossentropy(ops.sigmoid(x), ops.sigmoid(y)), STEPS, STEPS
)
each("categorical_crossentropy of logits", partial(ops.categorical_crossentropy, from_logits=True), ABOVE_ZERO, STEPS)
each("sparse_categorical_crossentropy of logits",
     lambda x, y: ops.sparse_categorical_crossentropy(x, y, from_logits=True),
     Given((None,), "int32", most=4), STEPS)  # fmt: skip

over = partial(function, "reductions")
REDUCING = ("amax", "amin", "max", "mean", "min", "prod", "std", "sum", "var", "logsumexp", "median", "ptp", "norm")
for name in REDUCING:
    over(f"{name} of steps", lambda x, name=name: getattr(ops, name)(x, axis=1), STEPS)
    over(f"{name} kept", lambda x, name=name: getattr(ops, name)(x, axis=-1, keepdims=True), STEPS)
    if name not in ("median", "norm"):
        over(f"{name} of two axes", lambda x, name=name: getattr(ops, name)(x, axis=(1, 2)), STEPS)
        over(f"{name} of all", lambda x, name=name: x + getattr(ops, name)(x), STEPS)
for name in ("max", "mean", "min", "prod", "std", "sum", "var", "ptp"):
    over(f"{name} of integers", lambda x, name=name: getattr(ops, name)(x, axis=1), WHOLE)
for name in ("any", "all"):
    over(f"{name} of truths", lambda x, name=name: getattr(ops, name)(x, axis=1), TRUTH)
    over(f"{name} of floats", lambda x, name=name: getattr(ops, name)(x > 0, axis=-1, keepdims=True), STEPS)
for name in ("argmax", "argmin", "nanargmax", "nanargmin"):
    over(f"{name} of steps", lambda x, name=name: getattr(ops, name)(x, axis=1), STEPS)
    over(f"{name} kept", lambda x, name=name: getattr(ops, name)(x, axis=-1, keepdims=True), STEPS)
for name in ("nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"):
    over(f"{name} of steps", lambda x, name=name: getattr(ops, name)(ops.log(x), axis=1), STEPS)
    over(f"{name} of all", lambda x, name=name: x + getattr(ops, name)(ops.log(x)), STEPS)
for name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
    over(f"{name} of steps", lambda x, name=name: getattr(ops, name)(x, axis=1), STEPS)
    over(f"{name} of the last axis", lambda x, name=name: getattr(ops, name)(x, axis=-1), STEPS)
for name in ("max", "min"):
    over(f"{name} with not a number", lambda x, name=name: getattr(ops, name)(ops.log(x), axis=-1), STEPS)
    over(f"{name} with a beginning", lambda x, name=name: getattr(ops, name)(x, axis=-1, initial=0.3), STEPS)
over("average weighted", lambda x: ops.average(x, axis=-1, weights=np.array([1, 2, 3, 4], np.float32)), STEPS)
over("average of steps", lambda x: ops.average(x, axis=1), STEPS)
over("count_nonzero of integers", lambda x: ops.count_nonzero(x, axis=1), WHOLE)
over("moments of steps", lambda x: ops.moments(x, axes=[1]), STEPS)
over("moments kept", lambda x: ops.moments(x, axes=[1, 2], keepdims=True), STEPS)
for method in ("linear", "lower", "higher", "midpoint", "nearest"):
    over(f"quantile {method}", lambda x, method=method: ops.quantile(x, [0.2, 0.7], axis=1, method=method), STEPS)
over("percentile of the last axis", lambda x: ops.percentile(x, 30.0, axis=-1), STEPS)
over("nanquantile of steps", lambda x: ops.nanquantile(ops.log(x), 0.4, axis=1), STEPS)
over("nanpercentile of the last axis", lambda x: ops.nanpercentile(ops.log(x), 30.0, axis=-1), STEPS)
for order in (1, 2, 3, float("inf")):
    over(f"norm of order {order}", lambda x, order=order: ops.norm(x, ord=order, axis=-1), STEPS)
    if isinstance(order, int):
        over(f"normalize of order {order}", lambda x, order=order: ops.normalize(x, axis=-1, order=order), STEPS)
over("norm of matrices", lambda x: ops.norm(x, ord="fro", axis=(1, 2)), STEPS)
for order in (1, float("inf"), "nuc", 2):
    over(f"norm of matrices by {order}", lambda x, order=order: ops.norm(x, ord=order, axis=(1, 2)), FIXED)
over("layer_normalization of steps", lambda x: ops.layer_normalization(x, axis=-1), STEPS)
over("rms_normalization of steps", lambda x: ops.rms_normalization(x, axis=-1), STEPS)
over("sort of steps", lambda x: ops.sort(x, axis=1), STEPS)
over("sort of integers", lambda x: ops.sort(x, axis=-1), WHOLE)
over("argsort of steps", lambda x: ops.argsort(x, axis=1), STEPS)
over("argsort of integers", ops.argsort, WHOLE)
over("top_k of floats", lambda x: ops.top_k(x, 2), STEPS)
over("top_k of integers", lambda x: ops.top_k(x, 2)[0], WHOLE)
over("in_top_k of floats", lambda x, y: ops.in_top_k(x, y, 2), Given((), "int32", most=4), (4,))
over("searchsorted of floats", lambda x: ops.searchsorted(ops.array([-1.0, 0.0, 1.0]), ops.ravel(x)), STEPS)
over("searchsorted right", lambda x: ops.searchsorted(ops.array([1, 3, 5]), ops.ravel(x), side="right"), WHOLE)
over("digitize of floats", lambda x: ops.digitize(x, np.array([-1, 0, 1], np.float32)), STEPS)
over("bincount of rows", lambda x: ops.bincount(x, minlength=9), Given((None,), "int32", most=9))
for name in ("segment_max", "segment_min", "segment_prod", "segment_sum"):
    over(f"{name} of rows", lambda x, y, name=name: getattr(ops, name)(y, x, num_segments=5),
         Given((), "int32", most=5), (4,))  # fmt: skip
over("trapezoid of steps", lambda x: ops.trapezoid(x, axis=1), STEPS)
over("trapezoid with a step", lambda x: ops.trapezoid(x, dx=0.5, axis=-1), STEPS)
over("diff of steps", lambda x: ops.diff(x, axis=1), STEPS)
over("diff twice", lambda x: ops.diff(x, n=2, axis=-1), STEPS)
over("associative_scan of sums", lambda x: ops.associative_scan(lambda a, b: a + b, x, axis=1), FIXED)
over("associative_scan of steps", lambda x: ops.associative_scan(lambda a, b: a * b, x, axis=1), STEPS)
over("associative_scan backwards", lambda x: ops.associative_scan(_affine, (ops.sigmoid(x), x), True, axis=1)[1], STEPS)
over("corrcoef of all", ops.corrcoef, (4,))
