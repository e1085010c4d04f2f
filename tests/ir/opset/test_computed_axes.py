"""Axes that are computed at run time, below the opsets where they became inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
X = np.random.default_rng(0).uniform(0.5, 2, (3, 1, 4, 2)).astype(np.float32)


def _reduction(kind: str, keepdims: int, noop: int, result: str, axes: str = "M", dtype: str = "float") -> Any:
    body = f"y = Reduce{kind}<keepdims = {keepdims}, noop_with_empty_axes = {noop}>(x, axes)"
    made = f"{dtype}[{result}]" if result else dtype
    return parse(body, 18, f"{dtype}[A,B,C,D] x, int64[{axes}] axes) => ({made} y")


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("target", [7, 11, 17])
def test_computed_axes_are_reduced_one_by_one(kind: str, target: int) -> None:
    rng = np.random.default_rng(target)
    for count in (1, 2, 4):
        axes = rng.permutation(4)[:count]
        axes = np.where(rng.random(count) < 0.5, axes, axes - 4)
        assert_same(_reduction(kind, 1, 0, "P,Q,R,S"), target, X, axes)
        left = ",".join("PQRS"[: 4 - count])
        assert_same(_reduction(kind, 0, 0, left, str(count)), target, X, axes)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("noop", [0, 1])
def test_no_axes_at_all_are_all_axes_or_none(kind: str, noop: int) -> None:
    signed = X - 1 if kind in ("L1", "L2", "SumSquare") else X
    assert_same(_reduction(kind, 1, noop, "P,Q,R,S"), 10, signed, np.zeros(0, np.int64))


@pytest.mark.parametrize("kind", ["Mean", "L2", "Sum", "Max"])
def test_integers_are_rounded_once(kind: str) -> None:
    values = np.random.default_rng(1).integers(-9, 9, (3, 1, 4, 2)).astype(np.int32)
    assert_same(_reduction(kind, 1, 0, "P,Q,R,S", dtype="int32"), 12, values, np.array([0, -1]))


def test_reducing_named_axes_needs_the_rank() -> None:
    model = parse("y = ReduceMax(x, axes)", 18, "float x, int64[1] axes) => (float y")
    next(iter(model.ir.graph.inputs)).shape = None
    with pytest.raises(ConversionError, match="rank of its input is unknown"):
        convert_opset(model, 17)


@pytest.mark.parametrize("target", [7, 10, 12])
@pytest.mark.parametrize("axes", [[1], [-2], [3, 1], [-4, -1]])
def test_computed_axes_are_squeezed(target: int, axes: list[int]) -> None:
    result = ",".join("PQR"[: 4 - len(axes)])
    model = parse("y = Squeeze(x, axes)", 13, f"float[A,B,C,D] x, int64[{len(axes)}] axes) => (float[{result}] y")
    x = np.ones([1 if axis in [item % 4 for item in axes] else 3 for axis in range(4)], np.float32)
    assert_same(model, target, x, np.array(axes))


@pytest.mark.parametrize("target", [7, 10, 12])
@pytest.mark.parametrize("axes", [[0], [-1], [2, 0], [-1, 1, -3]])
def test_computed_axes_are_put_in(target: int, axes: list[int]) -> None:
    result = ",".join("PQRST"[: 2 + len(axes)])
    model = parse("y = Unsqueeze(x, axes)", 13, f"float[A,B] x, int64[{len(axes)}] axes) => (float[{result}] y")
    assert_same(model, target, X[:, 0, :, 0], np.array(axes))


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_a_computed_axis_is_cumulated(operator: str, exclusive: int, reverse: int) -> None:
    body = f"y = {operator}<exclusive = {exclusive}, reverse = {reverse}>(x, axis)"
    model = parse(body, 26, "float[3,1,4,2] x, int64 axis) => (float[3,1,4,2] y")
    for axis in (-4, 1, 2, -1):
        for target in (7, 10) if operator == "CumSum" else (7, 25):
            assert_same(model, target, X, np.array(axis))


def test_a_slice_counts_computed_axes_from_the_front() -> None:
    model = parse("y = Slice(x, s, e, a)", 13, "float[A,B] x, int32[M] s, int32[M] e, int32[M] a) => (float[C,D] y")
    start, end, axes = (np.array(item, np.int32) for item in ([1, 0], [4, 2], [-1, 0]))
    assert_same(model, 10, X[:, 0, :, 0], start, end, axes)
