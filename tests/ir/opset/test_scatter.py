"""Values placed by index, and combined with what is there, where older versions cannot."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse

REDUCTIONS = ("add", "mul", "max", "min")


def indices_of(rng: np.random.Generator, size: int, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-size, size, shape)


def elements(
    shape: tuple[int, ...], picked: tuple[int, ...], axis: int, reduction: str, *, open_sizes: bool
) -> tuple[str, str]:
    free = iter("ABCDEF")
    data = ",".join(next(free) if open_sizes else str(size) for size in shape)
    places = ",".join(next(free) if open_sizes and other != axis else str(s) for other, s in enumerate(picked))
    signature = f"float[{data}] x, int64[{places}] i, float[{places}] u) => (float[{data}] y"
    return f'y = ScatterElements<axis = {axis}, reduction = "{reduction}">(x, i, u)', signature


@pytest.mark.parametrize("target", [7, 9, 12, 14, 17])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_elements_of_the_same_place_are_combined(seed: int, reduction: str, target: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 5, 3))
    axis = int(rng.integers(3))
    picked = tuple(int(rng.integers(1, 7)) if a == axis else int(rng.integers(1, s + 1)) for a, s in enumerate(shape))
    body, signature = elements(shape, picked, axis, reduction, open_sizes=seed > 0 and target >= 9)
    x, updates = (rng.normal(size=size).astype(np.float32) for size in (shape, picked))
    assert_same(parse(body, 18, signature), target, x, indices_of(rng, shape[axis], picked), updates)


@pytest.mark.parametrize("target", [7, 10, 12, 14, 17])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_slices_of_the_same_place_are_combined(depth: int, reduction: str, target: int) -> None:
    rng = np.random.default_rng(depth)
    shape, lead = (3, 2, 4), (2, 3)
    tail = shape[depth:]
    places = np.stack([indices_of(rng, size, lead) for size in shape[:depth]], -1)
    updates = rng.normal(size=lead + tail).astype(np.float32)
    sizes = ",".join(map(str, lead + tail))
    signature = f"float[3,2,4] x, int64[2,3,{depth}] i, float[{sizes}] u) => (float[3,2,4] y"
    model = parse(f'y = ScatterND<reduction = "{reduction}">(x, i, u)', 18, signature)
    assert_same(model, target, rng.normal(size=shape).astype(np.float32), places, updates)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_what_is_not_a_number_stays_where_it_is(op_type: str, reduction: str) -> None:
    places = "int64[4]" if op_type == "ScatterElements" else "int64[4,1]"
    signature = f"float[5] x, {places} i, float[4] u) => (float[5] y"
    model = parse(f'y = {op_type}<reduction = "{reduction}">(x, i, u)', 18, signature)
    x = np.array([np.inf, 1, 2, np.nan, 3], np.float32)
    updates = np.array([np.nan, -np.inf, 5, 6], np.float32)
    i = np.array([1, 2, -1, 4]).reshape((4, 1) if op_type == "ScatterND" else 4)
    assert_same(model, 15, x, i, updates)


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize("known", [False, True])
def test_elements_are_placed_before_anything_placed_them(known: bool, target: int) -> None:
    i = np.array([[2, -1, 0], [0, 1, -3]])
    stored = f"int64[2,3] i = {{{','.join(map(str, i.ravel()))}}}" if known else ""
    given = "" if known else ", int64[2,3] i"
    model = parse("y = ScatterElements<axis = 1>(x, i, u)", 13, f"float[3,4] x{given}, float[2,3] u) => (float[3,4] y",
                  stored=stored)  # fmt: skip
    rng = np.random.default_rng(0)
    x, updates = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
    after = assert_same(model, target, *((x, updates) if known else (x, i, updates)))
    assert ("Scatter" in op_types(after)) == (target >= 9)


@pytest.mark.parametrize(
    ("kind", "reduction"), [*((k, r) for k in ("int32", "int64", "double") for r in ("add", "max")), ("bool", "add")]
)
def test_other_element_types_are_combined(kind: str, reduction: str) -> None:
    dtype = np.dtype(kind)
    model = parse(f'y = ScatterElements<reduction = "{reduction}">(x, i, u)', 18,
                  f"{kind}[3] x, int64[5] i, {kind}[5] u) => ({kind}[3] y")  # fmt: skip
    x, updates = np.array([1, 0, 0]).astype(dtype), np.array([1, 0, 1, 0, 0]).astype(dtype)
    assert_same(model, 15, x, np.array([0, 1, 1, 2, -3]), updates)


def test_no_updates_change_nothing() -> None:
    model = parse('y = ScatterElements<reduction = "add">(x, i, u)', 16,
                  "float[3] x, int64[0] i, float[0] u) => (float[3] y")  # fmt: skip
    x, nothing = np.array([1, 2, 3], np.float32), np.zeros(0, np.float32)
    for target in (13, 10, 8):
        assert_same(model, target, x, nothing.astype(np.int64), nothing)


@pytest.mark.parametrize("target", [17, 15, 10])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_open_number_of_elements_is_placed_one_by_one(reduction: str, target: int) -> None:
    rng = np.random.default_rng(0)
    body = f'y = ScatterElements<axis = 1, reduction = "{reduction}">(x, i, u)'
    model = parse(body, 18, "float[A,5] x, int64[B,N] i, float[B,N] u) => (float[A,5] y")
    x, updates = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5), (2, 9)))
    after = assert_same(model, target, x, indices_of(rng, 5, (2, 9)), updates)
    assert ("Loop" in op_types(after)) == (target < 16 or reduction in ("max", "min"))


@pytest.mark.parametrize("target", [15, 10])
@pytest.mark.parametrize("kind", ["float", "int64", "bool"])
def test_an_open_number_of_slices_is_placed_one_by_one(kind: str, target: int) -> None:
    dtype = np.dtype({"float": "f4"}.get(kind, kind))
    signature = f"{kind}[4,3] x, int64[N,1] i, {kind}[N,3] u) => ({kind}[4,3] y"
    model = parse('y = ScatterND<reduction = "add">(x, i, u)', 18, signature)
    x, updates = np.ones((4, 3)).astype(dtype), np.arange(18).reshape(6, 3).astype(dtype)
    assert_same(model, target, x, np.array([[0], [-1], [0], [3], [2], [0]]), updates)


def test_too_many_updates_to_meet_in_pairs_are_placed_one_by_one() -> None:
    model = parse('y = ScatterElements<reduction = "add">(x, i, u)', 16,
                  "float[9] x, int64[5000] i, float[5000] u) => (float[9] y")  # fmt: skip
    after = assert_same(model, 15, np.zeros(9, np.float32), np.arange(5000) % 9, np.ones(5000, np.float32))
    assert "Loop" in op_types(after)


@pytest.mark.parametrize("target", [8, 7])
def test_maxima_are_put_back_before_anything_placed_them(target: int) -> None:
    how = "kernel_shape = [2, 2], strides = [2, 2]"
    model = parse(f"y = MaxUnpool<{how}>(m, i)", 11, "float[1,1,1,2] m, int64[1,1,1,2] i) => (float[1,1,2,4] y")
    assert_same(model, target, np.array([[[[1, 2]]]], np.float32), np.array([[[[5, 3]]]]))


def test_an_output_shape_for_maxima_is_refused() -> None:
    signature = "float[1,1,1,2] m, int64[1,1,1,2] i, int64[4] s) => (float[1,1,3,5] y"
    model = parse("y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(m, i, s)", 11, signature)
    with pytest.raises(ConversionError, match="output_shape"):
        convert_opset(model, 8)


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_of_open_sizes_are_placed_before_anything_placed_them(axis: int, target: int) -> None:
    rng = np.random.default_rng(axis)
    body = f"y = ScatterElements<axis = {axis}>(x, i, u)"
    model = parse(body, 13, "float[A,B,4] x, int64[C,D,E] i, float[C,D,E] u) => (float[A,B,4] y")
    x, updates = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 2, 4), (2, 2, 3)))
    order = np.argsort(rng.random((2, 2, 3)), axis)  # places of their own: which of two is the last is not agreed on
    assert_same(model, target, x, order - (order > 0) * x.shape[axis], updates)
