"""Sequences below the opsets that have them."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse, run


def test_a_map_over_a_sequence_needs_no_written_types() -> None:
    model = parse(
        "s = SequenceConstruct(x, x) m = SequenceMap(s) <body = b (t) => (u) { u = Neg(t) }>"
        " one = Constant<value_int = 1>() y = SequenceAt(m, one)",
        17,
        "float[2,3] x) => (float[2,3] y",
    )
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(convert_opset(model, 13), x)[0], -x)


THREE = "s = SequenceConstruct(a, b, c)"
TENSORS = [np.full((size, 2), size, np.float32) for size in (1, 2, 3)]
INPUTS = "float[1,2] a, float[2,2] b, float[3,2] c"


@pytest.mark.parametrize("position", [0, 2, -1, -3])
@pytest.mark.parametrize("target", [7, 10])
def test_a_tensor_at_a_computed_position(position: int, target: int) -> None:
    model = parse(f"{THREE} y = SequenceAt(s, p)", 11, f"{INPUTS}, int64 p) => (float[N,2] y")
    assert_same(model, target, *TENSORS, np.array(position))


@pytest.mark.parametrize("edit", ["SequenceInsert(s, a, p)", "SequenceErase(s, p)"])
@pytest.mark.parametrize("position", [0, 1, 2, -1, -2, -3])
def test_a_sequence_edited_at_a_computed_position(edit: str, position: int) -> None:
    body = f"{THREE} t = {edit} y = ConcatFromSequence<axis = 0>(t) n = SequenceLength(t)"
    model = parse(body, 11, f"{INPUTS}, int32 p) => (float[N,2] y, int64 n")
    assert_same(model, 10, *TENSORS, np.array(position, np.int32))


@pytest.mark.parametrize("split", ["", "2", "3", "[1,0,4]"])
@pytest.mark.parametrize("stored", [True, False])
def test_a_sequence_split_off_a_tensor(split: str, *, stored: bool) -> None:
    kind = "int64[3]" if "[" in split else "int64"
    take = "t = SplitToSequence<axis = -1>(x, p)" if split else "t = SplitToSequence<axis = -1, keepdims = 0>(x)"
    body = f"{take} y = SequenceAt(t, at) n = SequenceLength(t)"
    stores = {"int64 at": "1"} | ({f"{kind} p": split.strip("[]")} if split and (stored or kind == "int64") else {})
    given = f", {kind} p" if split and not stored and kind != "int64" else ""
    result = "float[3,N] y" if split else "float[3] y"
    values = ", ".join(f"{name} = {{{value}}}" for name, value in stores.items())
    model = parse(body, 11, f"float[3,5] x{given}) => ({result}, int64 n", stored=values)
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    assert_same(model, 9, x, *([np.array([1, 0, 4])] if given else []))


def test_an_identical_sequence_is_another_one() -> None:
    body = f"{THREE} t = Identity(s) u = SequenceInsert(t, a) y = ConcatFromSequence<axis = 0>(t) n = SequenceLength(s)"
    model = parse(body, 14, f"{INPUTS}) => (float[N,2] y, int64 n")
    assert_same(model, 12, *TENSORS)
    model = parse(body.replace(" u = SequenceInsert(t, a)", ""), 14, f"{INPUTS}) => (float[N,2] y, int64 n")
    assert_same(model, 9, *TENSORS)


@pytest.mark.parametrize("target", [16, 13])
def test_a_map_reads_what_is_around_it(target: int, caplog: pytest.LogCaptureFixture) -> None:
    model = parse(
        "k = Neg(x) s = SequenceConstruct(x, x) m = SequenceMap(s) <body = b (float[2,3] t) => (float[2,3] u)"
        " { v = Add(t, k) u = Mul(v, two) }> one = Constant<value_int = 1>() y = SequenceAt(m, one)",
        17,
        "float[2,3] x) => (float[2,3] y",
        stored="float two = {2}",
    )
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(convert_opset(model, target), x)[0], np.zeros((2, 3)))
    assert not caplog.records


@pytest.mark.parametrize("time", [0, 1])
@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("target", [7, 9])
def test_sequences_are_reversed_by_their_lengths(time: int, rank: int, target: int) -> None:
    axes = ",".join("ABCD"[:rank])
    body = f"y = ReverseSequence<time_axis = {time}, batch_axis = {1 - time}>(x, n)"
    model = parse(body, 10, f"float[{axes}] x, int64[N] n) => (float[{axes}] y")
    x = np.random.default_rng(0).normal(size=(5, 5, 2, 3)[:rank]).astype(np.float32)
    assert_same(model, target, x, np.array([1, 2, 3, 5, 4]))
