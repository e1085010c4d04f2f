"""Functions of one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder, element
from entrepot.exporters.functions import circular, exponentials
from entrepot.exporters.tensorflow.node import Node, Shape
from entrepot.exporters.tensorflow.numeric import computed, is_float, is_signed, number, where
from entrepot.exporters.tensorflow.table import translates

_DIRECT = {
    "Ceil": "Ceil", "Cos": "Cos", "Exp": "Exp", "Floor": "Floor", "Log": "Log", "Rint": "Round",
    "Sigmoid": "Sigmoid", "Sin": "Sin", "Sqrt": "Sqrt", "Tanh": "Tanh", "IsNan": "IsNaN", "IsInf": "IsInf",
    "LogicalNot": "Not",
}  # fmt: skip
_IN_DOUBLE = {
    "Acos": circular.acos, "Acosh": circular.acosh, "Asin": circular.asin, "Asinh": circular.asinh,
    "Atan": circular.atan, "Atanh": circular.atanh, "Cosh": circular.cosh, "Sinh": circular.sinh,
    "Tan": circular.tan, "Expm1": exponentials.expm1, "Log1p": exponentials.log1p,
}  # fmt: skip


def _direct(name: str, op: str) -> None:
    @translates(name)
    def translate(node: Node, build: Builder, x: Any) -> Any:
        return computed(build, op, x)


def _spelled(name: str, function: Any) -> None:
    @translates(name)
    def translate(node: Node, build: Builder, x: Any) -> Any:
        return function(build, x)


for _name, _op in _DIRECT.items():
    _direct(_name, _op)
for _name, _function in _IN_DOUBLE.items():
    _spelled(_name, _function)


@translates("Abs")
def absolute(node: Node, build: Builder, x: Any) -> Any:
    """Of the smallest integer itself."""
    return computed(build, "Abs", x)


@translates("Neg")
def negated(node: Node, build: Builder, x: Any) -> Any:
    """Of integers around zero as well."""
    if is_float(x) or is_signed(x):
        return computed(build, "Neg", x)
    return computed(build, "Sub", number(build, 0, x), x)


@translates("Sign")
def sign(node: Node, build: Builder, x: Any) -> Any:
    """NaN of NaN, which onnxruntime (1.31) takes for 0."""
    value = computed(build, "Sign", x)
    return where(build, computed(build, "IsNaN", x), x, value) if is_float(x) else value


@translates("Square")
def square(node: Node, build: Builder, x: Any) -> Any:
    """x²."""
    return computed(build, "Mul", x, x)


@translates("Rsqrt")
def rsqrt(node: Node, build: Builder, x: Any) -> Any:
    """1 / sqrt(x)."""
    return computed(build, "Reciprocal", computed(build, "Sqrt", x))


@translates("Inv", "Reciprocal")
def reciprocal(node: Node, build: Builder, x: Any) -> Any:
    """1 / x; of integers truncated."""
    if is_float(x):
        return computed(build, "Reciprocal", x)
    return computed(build, "Div", number(build, 1, x), x)


@translates("Round")
def rounded(node: Node, build: Builder, x: Any) -> Any:
    """To the nearest, halves to the even one; integers are whole."""
    return computed(build, "Round", x) if is_float(x) else build.op("Identity", x)


@translates("IsFinite")
def is_finite(node: Node, build: Builder, x: Any) -> Any:
    """Neither NaN nor infinite."""
    return build.op("Not", build.op("Or", computed(build, "IsNaN", x), computed(build, "IsInf", x)))


@translates("Atan2")
def atan2(node: Node, build: Builder, y: Any, x: Any) -> Any:
    """The angle of a point, in all four quadrants and at zeros of either sign."""
    return circular.atan2(build, y, x)


@translates("LogicalAnd", "LogicalOr")
def logical(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Of Booleans."""
    return build.op(node.op.removeprefix("Logical"), x, y)


@translates("ToBool")
def to_bool(node: Node, build: Builder, x: Any) -> Any:
    """A scalar that is not 0, or a tensor that is not empty."""
    if node.shape(0) == ():
        return build.cast(x, np.bool_)
    return build.op("Greater", build.op("Size", x), 0)


@translates("Greater", "GreaterEqual", "Less", "LessEqual")
def compared(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Of numbers."""
    return computed(build, node.op.replace("Equal", "OrEqual"), x, y)


@translates("Equal", "NotEqual")
def equal(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Of anything."""
    if not node["incompatible_shape_error"] and not _fit(node.shape(0), node.shape(1)):
        return node.refuse("of shapes that may not fit, where that is no error, has no counterpart")
    same = computed(build, "Equal", x, y)
    return same if node.op == "Equal" else build.op("Not", same)


def _fit(one: Shape, two: Shape) -> bool:
    """Whether two shapes can be broadcast, as far as they are known."""
    if one == () or two in ((), one):
        return True
    if one is None or two is None:
        return False
    pairs = zip(one[::-1], two[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


@translates("ApproximateEqual")
def nearly_equal(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Closer than a tolerance."""
    gap = computed(build, "Abs", computed(build, "Sub", x, y))
    return computed(build, "Less", gap, number(build, node["tolerance"], x))


@translates("Select")
def select(node: Node, build: Builder, condition: Any, yes: Any, no: Any) -> Any:
    """A condition for each element, or for each row."""
    shapes = node.shape(0), node.shape(1)
    if shapes[0] is None or shapes[1] is None:
        return node.refuse("the rank of its condition is not known")
    if len(shapes[0]) == 1 and len(shapes[1]) > 1:
        condition = build.op("Unsqueeze", condition, list(range(1, len(shapes[1]))))
    return where(build, condition, yes, no)


@translates("SelectV2")
def select_with_broadcasting(node: Node, build: Builder, condition: Any, yes: Any, no: Any) -> Any:
    """A condition for each element."""
    return where(build, condition, yes, no)


@translates("Cast")
def cast(node: Node, build: Builder, x: Any) -> Any:
    """Towards zero."""
    return build.op("Identity", x) if x.dtype == element(node["DstT"]) else build.cast(x, element(node["DstT"]))


@translates("OnesLike", "ZerosLike")
def filled_like(node: Node, build: Builder, x: Any) -> Any:
    """A tensor of the same shape."""
    value = np.array([int(node.op == "OnesLike")], x.dtype.numpy())
    return build.op("ConstantOfShape", build.shape(x), value=_tensor(value, x))


def _tensor(value: Any, like: Any) -> Any:
    import onnx_ir

    return onnx_ir.tensor(value, dtype=like.dtype)
