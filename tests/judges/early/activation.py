"""Functions of one tensor, element by element, and those that flatten to a matrix first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from tests.judges.early.use import Array, CannotJudgeError, Use, meaning

ELEMENTWISE: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Exp": np.exp,
    "Floor": np.floor,
    "Log": np.log,
    "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Sqrt": np.sqrt,
    "Tanh": np.tanh,
}

HINTED = ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Tanh")


@meaning(*HINTED, since=(1, 6))
@meaning("Softplus", "Softsign")
def elementwise(use: Use, x: Array) -> Array:
    """A function of one element; ``consumed_inputs`` only allows working in place."""
    return ELEMENTWISE[use.node.op_type](x).astype(x.dtype)


@meaning("Elu", since=(1, 6))
def elu(use: Use, x: Array) -> Array:
    """Exponential below zero."""
    return np.where(x < 0, use["alpha"] * np.expm1(x), x).astype(x.dtype)


@meaning("Selu", since=(1, 6))
def selu(use: Use, x: Array) -> Array:
    """The defaults of alpha and gamma are those of the version's schema."""
    alpha, gamma = use["alpha"], use["gamma"]
    return (gamma * np.where(x > 0, x, alpha * np.exp(x) - alpha)).astype(x.dtype)


@meaning("LeakyRelu", since=(1, 6))
def leaky_relu(use: Use, x: Array) -> Array:
    """Flatter below zero."""
    return np.where(x < 0, use["alpha"] * x, x).astype(x.dtype)


@meaning("HardSigmoid", since=(1, 6))
def hard_sigmoid(use: Use, x: Array) -> Array:
    """A line between 0 and 1."""
    return np.maximum(0, np.minimum(1, use["alpha"] * x + use["beta"])).astype(x.dtype)


@meaning("PRelu", since=(1, 6))
def prelu(use: Use, x: Array, slope: Array) -> Array:
    """One slope for all, or one for each channel; nothing else is said, so nothing else is allowed."""
    if slope.size == 1:
        return np.where(x < 0, slope.reshape(()) * x, x)
    use.needs(slope.ndim == 1 and x.ndim > 1 and slope.size == x.shape[1], f"slope {slope.shape} for {x.shape}")
    return np.where(x < 0, slope.reshape(-1, *[1] * (x.ndim - 2)) * x, x)


@meaning("Clip", since=(1, 6))
def clip(use: Use, x: Array) -> Array:
    """Between bounds; absent ones are the limits of the element type."""
    limits = np.finfo(x.dtype)
    low, high = (use[name] for name in ("min", "max"))
    low = limits.min if low is None else max(low, limits.min)
    high = limits.max if high is None else min(high, limits.max)
    inner = np.minimum(np.maximum(x, np.array(low, x.dtype)), np.array(high, x.dtype))
    # the default bounds are meant as none: what they do to infinities differs by runtime
    given = {item.name for item in use.node.attribute}
    if np.isinf(x).any() and not {"min", "max"} <= given:
        raise CannotJudgeError("infinities against a default bound of Clip")
    return inner


@meaning("Cast", since=(1, 6))
def cast(use: Use, x: Array) -> Array:
    """To a type by its name in the enumeration of types, from version 6 on by its number."""
    known = onnx.TensorProto.DataType
    to = use["to"]
    if use.since == 1:
        use.needs(to in known.keys(), f"to={to!r} is not in DataType")  # noqa: SIM118 - not a dict
        to = known.Value(to)
    return x.astype(onnx.helper.tensor_dtype_to_np_dtype(to))


@meaning("Softmax", "LogSoftmax", "Hardmax")
def flattened(use: Use, x: Array) -> Array:
    """Over everything from ``axis`` on, taken as one row."""
    axis = use.axis(x.ndim, past=1)
    rows = x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))
    if not x.size:
        return x
    if use.node.op_type == "Hardmax":
        return (np.arange(rows.shape[1]) == rows.argmax(1)[:, None]).astype(x.dtype).reshape(x.shape)
    shifted = rows - rows.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    result = np.exp(shifted) / total if use.node.op_type == "Softmax" else shifted - np.log(total)
    return result.astype(x.dtype).reshape(x.shape)
