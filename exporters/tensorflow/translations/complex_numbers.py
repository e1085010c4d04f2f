"""Arithmetic of complex numbers, which are pairs of reals along a last axis that TensorFlow's shapes do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder, element
from entrepot.exporters.functions.circular import atan2
from entrepot.exporters.functions.terms import Term, choose
from entrepot.exporters.tensorflow.dtypes import onnx_type
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.table import rules, translates

Parts = tuple[Term, Term]


def parts_of(build: Builder, pair: Any) -> Parts:
    """The real and the imaginary part."""
    real, imaginary = (build.op("Gather", pair, build.constant(np.array(at)), axis=-1) for at in (0, 1))
    return Term(build, real), Term(build, imaginary)


def pair_of(build: Builder, real: Any, imaginary: Any) -> Any:
    """Both parts, as one value."""
    values = [each.value if isinstance(each, Term) else each for each in (real, imaginary)]
    return build.op("Concat", *(build.op("Unsqueeze", each, [-1]) for each in values), axis=-1)


def _of_one(*names: str) -> Callable[[Callable[[Parts], Parts]], Callable[[Parts], Parts]]:
    def enter(formula: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
        @translates(*names, pairs=True)
        def translate(node: Node, build: Builder, x: Any) -> Any:
            return pair_of(build, *formula(parts_of(build, x)))

        return formula

    return enter


def _of_two(*names: str) -> Callable[[Callable[[Parts, Parts], Parts]], Callable[[Parts, Parts], Parts]]:
    def enter(formula: Callable[[Parts, Parts], Parts]) -> Callable[[Parts, Parts], Parts]:
        @translates(*names, pairs=True)
        def translate(node: Node, build: Builder, x: Any, y: Any) -> Any:
            return pair_of(build, *formula(parts_of(build, x), parts_of(build, y)))

        return formula

    return enter


@translates("Complex", pairs=True)
def from_parts(node: Node, build: Builder, real: Any, imaginary: Any) -> Any:
    """Of two real tensors, which may be of different shapes."""
    shape = build.op("Shape", build.op("Add", real, imaginary))
    return pair_of(build, *(build.op("Expand", each, shape) for each in (real, imaginary)))


@translates("Real", "Imag", pairs=True)
def part_of(node: Node, build: Builder, x: Any) -> Any:
    """One part."""
    return parts_of(build, x)[int(node.op == "Imag")].value


@translates("ComplexAbs", "Abs", pairs=True)
def size(node: Node, build: Builder, x: Any) -> Any:
    """The distance from 0."""
    return _size(parts_of(build, x)).value


@translates("Angle", pairs=True)
def angle(node: Node, build: Builder, x: Any) -> Any:
    """The direction from 0."""
    real, imaginary = parts_of(build, x)
    return atan2(build, imaginary.value, real.value)


def _size(z: Parts) -> Term:
    one, two = z[0].abs(), z[1].abs()
    large = one.at_least(two)
    safe = choose((large == 0) | large.isinf(), 1.0, large)
    first, second = one / safe, two / safe
    value = safe * (first * first + second * second).sqrt()
    return choose((large == 0) | large.isinf(), large, value)


@_of_one("Conj")
def _conjugate(z: Parts) -> Parts:
    return z[0], -z[1]


@_of_one("Neg")
def _negative(z: Parts) -> Parts:
    return -z[0], -z[1]


@_of_one("Exp")
def _exponential(z: Parts) -> Parts:
    size = z[0].exp()
    return size * z[1].cos(), size * z[1].sin()


@_of_one("Log")
def _logarithm(z: Parts) -> Parts:
    build = z[0].build
    return _size(z).log(), Term(build, atan2(build, z[1].value, z[0].value))


@_of_one("Square")
def _square(z: Parts) -> Parts:
    return _times(z, z)


@_of_one("Reciprocal", "Inv")
def _reciprocal(z: Parts) -> Parts:
    below = z[0] * z[0] + z[1] * z[1]
    return z[0] / below, -z[1] / below


@_of_one("Sqrt")
def _root(z: Parts) -> Parts:
    size = _size(z)
    large = ((size + z[0].abs()) / 2).sqrt()
    small = z[1].abs() / choose(large == 0, 1.0, 2 * large)
    imaginary = choose(z[0] < 0, large, small)
    return choose(z[0] < 0, small, large), choose(z[1] < 0, -imaginary, imaginary)


@_of_two("Mul")
def _times(a: Parts, b: Parts) -> Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


@_of_two("RealDiv", "Div")
def _quotient(a: Parts, b: Parts) -> Parts:
    below = b[0] * b[0] + b[1] * b[1]
    return (a[0] * b[0] + a[1] * b[1]) / below, (a[1] * b[0] - a[0] * b[1]) / below


@_of_two("Add", "AddV2")
def _sum(a: Parts, b: Parts) -> Parts:
    return a[0] + b[0], a[1] + b[1]


@_of_two("Sub")
def _difference(a: Parts, b: Parts) -> Parts:
    return a[0] - b[0], a[1] - b[1]


@_of_two("SquaredDifference")
def _squared_difference(a: Parts, b: Parts) -> Parts:
    """conj(a - b) (a - b)."""
    real, imaginary = _difference(a, b)
    return real * real + imaginary * imaginary, real * 0.0


@_of_two("Pow")
def _power(a: Parts, b: Parts) -> Parts:
    real, imaginary = _exponential(_times(b, _logarithm(a)))
    nothing = (a[0] == 0) & (a[1] == 0)
    whole = (b[0] == 0) & (b[1] == 0)
    return choose(nothing, choose(whole, 1.0, real * 0.0), real), choose(nothing, 0.0, imaginary)


@translates("Equal", "NotEqual", pairs=True)
def equal(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Both parts."""
    first, second = parts_of(build, x), parts_of(build, y)
    same = (first[0] == second[0]) & (first[1] == second[1])
    return same.value if node.op == "Equal" else (~same).value


@translates("Cast", pairs=True)
def cast(node: Node, build: Builder, x: Any) -> Any:
    """Of real numbers, to real numbers, or between precisions."""
    source, target = node.dtype(0), node["DstT"]
    wide = onnx_type(np.dtype(target))
    if source.kind != "c":
        real = build.cast(x, wide)
        return pair_of(build, real, build.op("Sub", real, real))
    if np.dtype(target).kind == "c":
        return build.op("Identity", x) if x.dtype == wide else build.cast(x, wide)
    return build.cast(parts_of(build, x)[0].value, element(np.dtype(target)))


@translates("AddN", pairs=True)
def add_all(node: Node, build: Builder, *values: Any) -> Any:
    """One after the other."""
    return build.op("Sum", *values)


@translates("OnesLike", pairs=True)
def ones_like(node: Node, build: Builder, x: Any) -> Any:
    """1 + 0i."""
    zero = build.op("Mul", x, build.constant(0, x.dtype))
    return build.op("Add", zero, build.constant([1, 0], x.dtype))


@translates("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", pairs=True)
def bilinear(node: Node, build: Builder, *values: Any) -> Any:
    """Products of the parts; an adjoint is conjugate as well."""
    if len(values) != 2:
        node.refuse("of more than two complex tensors has no counterpart")
    plain = rules()[node.op].function
    pairs = [_conjugated(node, build, at, value) for at, value in enumerate(values)]
    product = [[Term(build, plain(node, build, one.value, two.value)) for two in pairs[1]] for one in pairs[0]]
    return pair_of(build, product[0][0] - product[1][1], product[0][1] + product[1][0])


def _conjugated(node: Node, build: Builder, at: int, value: Any) -> Parts:
    real, imaginary = parts_of(build, value)
    return (real, -imaginary) if node.get(("adj_x", "adj_y")[at], False) else (real, imaginary)
