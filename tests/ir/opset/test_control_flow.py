"""If, Loop and Scan themselves; what is inside them is converted like everything else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from entrepot.ir.opset.schemas import histories
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


BODIES = {
    "If": "c = Constant<value = bool {1}>() "
    "y = If(c) <then_branch = t () => (a) { a = Relu(x) }, else_branch = e () => (b) { b = Neg(x) }>",
    "Loop": "n = Constant<value = int64 {3}>() c = Constant<value = bool {1}>() "
    "y = Loop(n, c, x) <body = b (int64 i, bool k, float[2,3] v) => (l, w) { l = Identity(k) w = Add(v, x) }>",
    "Scan": "z = Constant<value = float[3] {1, 2, 3}>() s, y = Scan"
    "<num_scan_inputs = 1, body = b (float[3] v, float[3] r) => (w, o) { w = Add(v, r) o = Mul(w, r) }>(z, x)",
}


def _steps() -> list[tuple[str, int, int]]:
    versions = {name: [version for version in histories()["", name] if 9 <= version <= 26] for name in BODIES}
    return [(name, *pair) for name in BODIES for pair in itertools.pairwise([9, *versions[name]]) if pair[0] < pair[1]]


@pytest.mark.parametrize(("name", "older", "newer"), _steps())
def test_every_step_of_an_operator_with_bodies_goes_both_ways(name: str, older: int, newer: int) -> None:
    for start, stop in ((newer, older), (older, newer)):
        model = parse(BODIES[name], start, "float[2,3] x) => (float[2,3] y", ir_version=4)
        assert_same(model, stop, X)
