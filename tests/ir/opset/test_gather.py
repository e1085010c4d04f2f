"""Triangles and gathered elements where the operators for them do not exist."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse, run


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("size", ["N", "4"])
def test_a_triangle_of_booleans_needs_no_selection_of_booleans(size: str, upper: int) -> None:
    body = f"m = Greater(x, x2) t = Trilu<upper = {upper}>(m) y = Cast<to = 6>(t)"
    model = parse(body, 20, f"float[{size},4] x, float[1] x2) => (int32[{size},4] y")
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    assert_same(model, 11, x, np.zeros(1, np.float32))


X = np.random.default_rng(1).normal(size=(3, 4, 2)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("target", [9, 10])
def test_elements_are_gathered_from_data_of_any_size(axis: int, target: int) -> None:
    model = parse(f"y = GatherElements<axis = {axis}>(x, i)", 13, "float[A,B,C] x, int64[D,E,F] i) => (float[D,E,F] y")
    size = X.shape[axis]
    indices = np.random.default_rng(2).integers(-size, size, (2, 4, 1))
    assert_same(model, target, X, indices)
    assert_same(model, target, X, indices[:, :0])


@pytest.mark.parametrize("target", [9, 10, 11])
@pytest.mark.parametrize(
    ("kind", "batch", "indices"),
    [
        ("N,1", 0, [[2], [-1]]),
        ("N,2", 0, [[2, -4], [0, 3]]),
        ("N,M,3", 0, [[[2, 3, 1], [0, 0, -1]]]),
        ("2", 0, [1, -1]),
        ("N,1", 1, [[0], [-1], [3]]),
        ("N,M,2", 1, [[[0, 1]], [[-1, 0]], [[2, -2]]]),
        ("N,M,1", 2, [[[0], [1], [0], [1]], [[0], [0], [0], [-1]], [[1], [1], [1], [1]]]),
    ],
)
def test_slices_are_gathered_from_data_of_any_size(target: int, kind: str, batch: int, indices: list[object]) -> None:
    picked = np.array(indices)
    rank = picked.ndim - 1 + X.ndim - batch - picked.shape[-1]
    result = f"float[{','.join('PQRS'[:rank])}] y" if rank else "float y"
    model = parse(f"y = GatherND<batch_dims = {batch}>(x, i)", 13, f"float[A,B,C] x, int64[{kind}] i) => ({result}")
    assert_same(model, target, X, picked)


def test_one_index_into_a_vector_gives_a_scalar() -> None:
    model = parse("y = GatherND(x, i)", 12, "float[3] x, int64[1] i) => (float y")
    assert_same(model, 10, np.array([1, 2, 3], np.float32), np.array([-1]))


def test_a_negative_index_is_counted_from_the_end_where_the_size_is_not_fixed() -> None:
    model = parse("y = Gather<axis = 1>(x, i)", 11, "float[N,M] x) => (float[N,2] y", stored="int64[2] i = {-1, 1}")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    after = convert_opset(model, 10)
    np.testing.assert_array_equal(run(after, x)[0], x[:, [-1, 1]])
    assert "Mul" in op_types(after)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("target", [7, 8])
def test_a_computed_depth_is_hot_where_it_says(axis: int, target: int) -> None:
    signature = "int64[N,2] i, int64 depth, float[2] values) => (float[A,B,C] y"
    model = parse(f"y = OneHot<axis = {axis}>(i, depth, values)", 9, signature)
    indices = np.array([[0, 3], [2, 2], [4, 9]])
    assert_same(model, target, indices, np.array(5), np.array([0, np.inf], np.float32))


def test_slices_of_nothing_are_gathered() -> None:
    model = parse("y = GatherND<batch_dims = 1>(x, i)", 12, "float[2,3,0] x, int64[2,1] i) => (float[2,0] y")
    assert_same(model, 11, np.zeros((2, 3, 0), np.float32), np.array([[1], [2]]))
