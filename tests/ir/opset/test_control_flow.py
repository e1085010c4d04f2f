"""If, Loop and Scan themselves; what is inside them is converted like everything else."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.evaluate import assert_same, parse

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def test_a_loop_that_carries_nothing_hands_a_number_around_below_opset_11() -> None:
    model = parse(
        "y = Loop(turns, on) <body = b (int64 i, bool c) => (k, z) { k = Identity(c) z = Relu(x) }>",
        13,
        "float[2,3] x) => (float[N,2,3] y",
        stored="int64 turns = {3}, bool on = {1}",
    )
    assert_same(model, 9, X)


def test_a_loop_without_condition_gets_one_below_opset_11() -> None:
    model = parse(
        "y = Loop(turns, , x) <body = b (int64 i, bool c, v) => (k, z) { k = Identity(c) z = Add(v, x) }>",
        13,
        "float[2,3] x) => (float[2,3] y",
        stored="int64 turns = {3}",
    )
    assert_same(model, 9, X)
