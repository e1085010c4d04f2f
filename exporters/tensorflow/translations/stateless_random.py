"""Random numbers that depend on a seed alone, by their generator, Philox 4x32-10.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.terms import Term
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import int64, reshaped
from entrepot.exporters.tensorflow.table import translates

_WEYL, _TIMES = (0x9E3779B9, 0xBB67AE85), (0xD2511F53, 0xCD9E8D57)
_SCRAMBLE = (0x3EC8F720, 0x02461E29)
_LOW = 0xFFFFFFFF


class _Words:
    """Arithmetic of 32 bits in numbers of 64."""

    def __init__(self, build: Builder) -> None:
        self._build = build

    def number(self, value: int) -> Any:
        """A constant."""
        return self._build.constant(np.array(value, np.uint64))

    def low(self, x: Any) -> Any:
        """The lower half."""
        return self._build.op("BitwiseAnd", x, self.number(_LOW))

    def high(self, x: Any) -> Any:
        """The upper half."""
        return self._build.op("BitShift", x, self.number(32), direction="RIGHT")

    def xor(self, *values: Any) -> Any:
        """Bit by bit."""
        return functools.reduce(lambda one, other: self._build.op("BitwiseXor", one, other), values)

    def halves(self, x: Any) -> list[Any]:
        """Both, the lower one first."""
        return [self.low(x), self.high(x)]


def philox(build: Builder, counter: list[Any], key: list[Any]) -> list[Any]:
    """Four words for each counter of four words, by a key of two."""
    words = _Words(build)
    for _ in range(10):
        first = build.op("Mul", counter[0], words.number(_TIMES[0]))
        second = build.op("Mul", counter[2], words.number(_TIMES[1]))
        counter = [
            words.xor(words.high(second), counter[1], key[0]), words.low(second),
            words.xor(words.high(first), counter[3], key[1]), words.low(first),
        ]  # fmt: skip
        key = [words.low(build.op("Add", each, words.number(step))) for each, step in zip(key, _WEYL, strict=True)]
    return counter


def _scrambled(build: Builder, seed: Any) -> tuple[Any, Any]:
    """The key and the upper half of the counter that a seed stands for."""
    words = _Words(build)
    given = [build.cast(_element(build, int64(build, seed), at), np.uint64) for at in (0, 1)]
    counter = [half for each in given for half in words.halves(each)]
    mixed = philox(build, counter, [words.number(each) for each in _SCRAMBLE])
    return _together(build, mixed[0], mixed[1]), _together(build, mixed[2], mixed[3])


def _together(build: Builder, low: Any, high: Any) -> Any:
    shifted = build.op("BitShift", high, _Words(build).number(32), direction="LEFT")
    return build.op("BitwiseOr", low, shifted)


def _element(build: Builder, vector: Any, at: int) -> Any:
    return build.op("Gather", vector, build.constant(np.array(at)))


@translates("StatelessRandomGetKeyCounter")
def key_and_counter(node: Node, build: Builder, seed: Any) -> Any:
    """What a seed stands for."""
    key, upper = _scrambled(build, seed)
    zero = build.constant(np.zeros(1, np.uint64))
    counter = build.op("Concat", zero, build.op("Reshape", upper, [1]), axis=0)
    return build.op("Reshape", key, [1]), counter


@translates("StatelessRandomGetAlg")
def algorithm(node: Node, build: Builder) -> Any:
    """Philox."""
    return build.constant(np.array(1, np.int32))


@translates("StatelessRandomGetKeyCounterAlg")
def key_counter_and_algorithm(node: Node, build: Builder, seed: Any) -> Any:
    """Both."""
    return (*key_and_counter(node, build, seed), algorithm(node, build))


@translates(
    "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessRandomUniformIntV2",
    "StatelessRandomUniformFullIntV2", "StatelessTruncatedNormalV2",
)  # fmt: skip
def by_key(node: Node, build: Builder, shape: Any, key: Any, counter: Any, alg: Any, *bounds: Any) -> Any:
    """Uniform and normal numbers from a key."""
    if node.constant(3) is None or int(np.asarray(node.constant(3))) not in (1, 3):
        node.refuse("by another generator than Philox has no counterpart")
    lower, upper = _element(build, counter, 0), _element(build, counter, 1)
    return _filled(node, build, shape, _element(build, key, 0), lower, upper, bounds)


@translates(
    "StatelessRandomUniform", "StatelessRandomNormal", "StatelessRandomUniformInt", "StatelessRandomUniformFullInt",
    "StatelessTruncatedNormal",
)  # fmt: skip
def by_seed(node: Node, build: Builder, shape: Any, seed: Any, *bounds: Any) -> Any:
    """Uniform and normal numbers from a seed."""
    key, upper = _scrambled(build, seed)
    return _filled(node, build, shape, key, _Words(build).number(0), upper, bounds)


def _filled(node: Node, build: Builder, shape: Any, key: Any, lower: Any, upper: Any, bounds: Sequence[Any]) -> Any:
    """The words of each counter as elements: four of 32 bits, or two of 64."""
    kind = node.result_dtype()
    if kind.kind == "f" and kind != np.float32:
        node.refuse(f"of {kind} has no counterpart")
    if "Truncated" in node.op:
        return _truncated(node, build, shape, key, lower, upper)
    words, sizes = _Words(build), int64(build, shape)
    each = 4 if kind.itemsize == 4 else 2
    count = build.op("ReduceProd", sizes, keepdims=0)
    groups = build.op("Div", build.op("Add", count, each - 1), each)
    places = build.op("Add", build.cast(build.op("Range", 0, groups, 1), np.uint64), lower)
    found = philox(build, [*words.halves(places), *words.halves(upper)], words.halves(key))
    if each == 2:
        found = [_together(build, found[at], found[at + 1]) for at in (0, 2)]
    columns = _floats(node, build, found) if kind.kind == "f" else _integers(build, found, kind, bounds)
    rows = build.op("Concat", *(build.op("Unsqueeze", column, [1]) for column in columns), axis=1)
    flat = build.op("Slice", build.op("Reshape", rows, [-1]), [0], build.op("Reshape", count, [1]))
    return reshaped(build, flat, sizes)


_ROUNDS = 8
"""Counters for each four results; that of 32 normal numbers less than four are near zero does not happen."""
_APART = 256


def _truncated(node: Node, build: Builder, shape: Any, key: Any, lower: Any, upper: Any) -> Any:
    """Of normal numbers, the first that are not further than two from zero, four at a time."""
    words, sizes = _Words(build), int64(build, shape)
    count = build.op("ReduceProd", sizes, keepdims=0)
    groups = build.op("Div", build.op("Add", count, 3), 4)
    starts = build.op("Mul", build.op("Range", 0, groups, 1), _APART)
    places = build.op("Add", build.op("Unsqueeze", starts, [1]), build.constant(np.arange(_ROUNDS)))
    counter = build.op("Add", build.cast(places, np.uint64), lower)
    columns = _floats(node, build, philox(build, [*words.halves(counter), *words.halves(upper)], words.halves(key)))
    every = build.op("Concat", *(build.op("Unsqueeze", column, [2]) for column in columns), axis=2)
    rows = build.op("Reshape", every, [-1, 4 * _ROUNDS])
    near = build.op("Less", build.op("Abs", rows), build.constant(np.float32(2)))
    order = build.constant(np.arange(4 * _ROUNDS))
    _, first = build.op("TopK", build.op("Where", near, order, 4 * _ROUNDS), [4], outputs=2, axis=1, largest=0)
    chosen = build.op("Reshape", build.op("GatherElements", rows, first, axis=1), [-1])
    return reshaped(build, build.op("Slice", chosen, [0], build.op("Reshape", count, [1])), sizes)


def _floats(node: Node, build: Builder, words: Sequence[Any]) -> list[Any]:
    shares = [_share(build, each) for each in words]
    if "Normal" in node.op:
        shares = [each for at in (0, 2) for each in _normal(shares[at], shares[at + 1])]
    return [each.value for each in shares]


def _integers(build: Builder, words: Sequence[Any], kind: np.dtype[Any], bounds: Sequence[Any]) -> list[Any]:
    """All of their bits, or what is left by division, from a lower bound on."""
    if bounds:
        low, high = (build.cast(build.cast(each, np.int64), np.uint64) for each in bounds)
        width = build.op("Sub", high, low)
        width = width if kind.itemsize == 8 else _Words(build).low(width)
        words = [build.op("Add", build.op("Mod", each, width), low) for each in words]
    if kind.itemsize == 8:
        return [build.cast(each, kind) for each in words]
    short = [build.cast(_Words(build).low(each), np.int64) for each in words]
    if kind.kind == "i":
        short = [build.op("Sub", each, build.op("Mul", build.op("Div", each, 2**31), 2**32)) for each in short]
    return [build.cast(each, kind) for each in short]


def _share(build: Builder, word: Any) -> Term:
    """The lower 23 bits as a number between 0 and 1."""
    bits = build.op("BitwiseAnd", word, _Words(build).number(0x7FFFFF))
    return Term(build, build.cast(build.cast(bits, np.int64), np.float32)) / float(2**23)


def _normal(first: Term, second: Term) -> tuple[Term, Term]:
    """Two numbers of a normal distribution, by Box and Muller."""
    angle = second * (2 * math.pi)
    size = (first.at_least(1e-7).log() * -2.0).sqrt()
    return angle.sin() * size, angle.cos() * size
