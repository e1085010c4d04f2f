"""If, Loop and Scan themselves; what is inside them is converted like everything else."""

from __future__ import annotations

import numpy as np
import pytest

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


def _scan(*attributes: str) -> str:
    body = "<body = b (s, a, c) => (t, u, v) { t = Add(s, a) u = Mul(t, c) v = Sub(t, a) }"
    return f"f, y, z = Scan <{body[1:]}, {', '.join(('num_scan_inputs = 2', *attributes))}> (x0, x1, x2)"


@pytest.mark.parametrize(
    "attributes",
    [
        ["scan_input_axes = [0, 0]"],
        ["scan_input_axes = [1, -1]", "scan_output_axes = [0, -1]"],
        ["scan_input_directions = [0, 1]", "scan_output_directions = [1, 0]"],
        ["scan_input_axes = [1, 0]", "scan_input_directions = [1, 0]", "scan_output_directions = [0, 1]"],
    ],
)
@pytest.mark.parametrize("target", [7, 8, 9])
def test_a_scan_of_any_axes_and_directions_is_a_loop(attributes: list[str], target: int) -> None:
    model = parse(
        _scan(*attributes), 11, "float[3] x0, float[A,B] x1, float[C,D] x2) => (float[3] f, float[E,F] y, float[G,H] z"
    )
    axes = attributes[0].partition("[")[2].split("]")[0] if "input_axes" in attributes[0] else "0, 0"
    rng = np.random.default_rng(target)
    items = [rng.normal(size=(5, 3)).astype(np.float32) for _ in range(2)]
    arrays = [item if int(axis) == 0 else item.T.copy() for item, axis in zip(items, axes.split(","), strict=True)]
    assert_same(model, target, rng.normal(size=3).astype(np.float32), *arrays)


def test_a_scan_that_carries_nothing_hands_a_number_around() -> None:
    body = "y = Scan <num_scan_inputs = 1, body = b (a) => (c) { c = Neg(a) }> (x)"
    assert_same(parse(body, 11, "float[2,3] x) => (float[2,3] y"), 7, X)
