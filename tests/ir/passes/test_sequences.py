"""Passes over sequences that are taken apart, and over types that are those of other values."""

from __future__ import annotations

import pytest

from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.ir.passes.settle_types import SettleTypes
from entrepot.ir.passes.unpack_sequences import UnpackSequences
from tests.ir.passes.forms import check, model, shown

X, Y = "float[n, 5] x", "float[] y"


def number(**named: int) -> str:
    return " ".join(f"{name} = Constant<value_int = {value}>()" for name, value in named.items()) + " "


def numbers(**named: list[int]) -> str:
    return " ".join(f"{name} = Constant<value_ints = {value}>()" for name, value in named.items()) + " "


UNPACKED = [
    (
        number(k=2, i=1, j=-1)
        + "s = SplitToSequence<axis = 1>(x, k) a = SequenceAt(s, i) b = SequenceAt(s, j) y = Concat<axis = 1>(b, a)",
        "s_part, s_part_1, s_part_2 = Split(x, [2, 2, 1]) axis=1; y = Concat(s_part_2, s_part_1) axis=1",
    ),
    (
        numbers(k=[1, 4]) + number(i=1) + "s = SplitToSequence<axis = -1>(x, k) a = SequenceAt(s, i) y = Neg(a)",
        "s_part, s_part_1 = Split(x, [1, 4]) axis=-1; y = Neg(s_part_1)",
    ),
    (
        number(i=4) + "s = SplitToSequence<axis = 1, keepdims = 0>(x) a = SequenceAt(s, i) y = Neg(a)",
        "s_part, s_part_1, s_part_2, s_part_3, s_part_4 = Split(x, [1, 1, 1, 1, 1]) axis=1; "
        "s_part_9 = Squeeze(s_part_4, [1]); y = Neg(s_part_9)",
    ),
    (
        number(i=1)
        + "n = Shape<end = 1>(x) w = Shape<start = 1>(x) r = Sub(w, n) k = Concat<axis = 0>(n, r) "
        + "s = SplitToSequence<axis = 1>(x, k) a = SequenceAt(s, i) y = Neg(a)",
        "n = Shape(x) end=1; w = Shape(x) start=1; r = Sub(w, n); k = Concat(n, r) axis=0; "
        "s_part, s_part_1 = Split(x, k) axis=1; y = Neg(s_part_1)",
    ),
    (number(i=0) + "s = SequenceConstruct(x, x) a = SequenceAt(s, i) y = Neg(a)", "y = Neg(x)"),
]

PACKED = [
    number(k=2, i=0) + "s = SplitToSequence(x, k) a = SequenceAt(s, i) y = Neg(a)",  # how many parts depends on n
    number(k=2, i=0) + "s = SplitToSequence<axis = 1>(x, k) y = SequenceAt(s, i)",  # a graph output
    number(k=2)
    + "z = Size(x) s = SplitToSequence<axis = 1>(x, k) e = Sub(z, z) a = SequenceAt(s, e) y = Neg(a)",  # which, too
    number(k=2, i=0)
    + "s = SplitToSequence<axis = 1>(x, k) a = SequenceAt(s, i) l = SequenceLength(s) f = CastLike(l, a) y = Mul(a, f)",
]


def cleaned(source):
    result = UnpackSequences()(source)
    DropUnused()(source)
    return result


@pytest.mark.parametrize(("body", "expected"), UNPACKED)
def test_known_parts_become_values(body, expected):
    check(cleaned, model(body, X, Y), expected)


@pytest.mark.parametrize("body", PACKED)
def test_sequences_whose_parts_are_not_all_known_stay(body):
    check(UnpackSequences(), model(body, X, "float[n, q] y"), None, sizes=(2, 1))


@pytest.mark.parametrize(
    ("body", "inputs", "outputs", "expected"),
    [
        ("y = CastLike(x, k)", "float[n] x, int32[m] k", "int32[n] y", "y = Cast(x) to=6"),
        ("a = Shape(k) y = CastLike(x, a)", "float[n] x, float[m] k", "int64[n] y", "a = Shape(k); y = Cast(x) to=7"),
        (
            "y = CastLike<saturate = 0>(x, k)",
            "float[n] x, float8e4m3fn[m] k",
            "float8e4m3fn[n] y",
            "y = Cast(x) saturate=0 to=17",
        ),
    ],
)
def test_a_type_that_is_known_is_stated(body, inputs, outputs, expected):
    source = model(body, inputs, outputs)
    assert SettleTypes()(source.ir).modified
    assert shown(source.ir.graph) == expected
