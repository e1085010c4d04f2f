"""Natives and prepared kernels agree with the shared meaning on drawn inputs, not only on the cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from entrepot.runtime.kernels.table import shared
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native, prepared

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
BOUNDS = st.one_of(st.integers(-7, 7), st.sampled_from([-(2**63), 2**63 - 1]))


def by_meaning(op_type: str, since: int, *inputs: Any, **attributes: Any) -> Any:
    return shared.get("", op_type, since).function(NUMPY, *inputs, **attributes)


def by_native(op_type: str, since: int, *inputs: Any, **attributes: Any) -> Any:
    return native.get("", op_type, since).function(*inputs, **attributes)


def by_prepared(op_type: str, since: int, *inputs: Any, **attributes: Any) -> Any:
    views = tuple(InputView(f"i{n}", x if n else None, x.dtype, x.shape) for n, x in enumerate(inputs))
    kernel = prepared.get("", op_type, since).function(NodeView(op_type, views, since=since, attributes=attributes))
    return by_native(op_type, since, *inputs, **attributes) if kernel is None else kernel(*inputs)


def counted(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


@given(SHAPES, st.data())
def test_slice_is_the_same_by_index_by_view_and_by_flip(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    starts, ends = (np.array([data.draw(BOUNDS) for _ in axes]) for _ in range(2))
    steps = np.array([data.draw(st.sampled_from([1, 2, 3, -1, -2, 7])) for _ in axes])
    signed = np.array([axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes])
    inputs = (counted(shape), starts, ends, signed, steps)
    expected = by_meaning("Slice", 13, *inputs)
    np.testing.assert_array_equal(by_native("Slice", 13, *inputs), expected)
    np.testing.assert_array_equal(by_prepared("Slice", 13, *inputs), expected)


@given(SHAPES, st.data())
def test_reshape_and_back_is_the_identity(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = counted(shape)
    flat = by_native("Reshape", 25, x, np.array([x.size]), allowzero=1)
    wanted = np.array(
        [-1 if data.draw(st.booleans()) and n == 0 and 0 not in shape else size for n, size in enumerate(shape)]
    )
    for run in (by_meaning, by_native, by_prepared):
        np.testing.assert_array_equal(run("Reshape", 25, flat, wanted, allowzero=1), x)


@given(SHAPES, st.data())
def test_unsqueeze_then_squeeze_is_the_identity(shape: tuple[int, ...], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    rank = len(shape) + count
    axes = np.array(
        data.draw(
            st.lists(st.integers(-rank, rank - 1), min_size=count, max_size=count, unique_by=lambda axis: axis % rank)
        )
    )
    x = counted(shape)
    expected = np.expand_dims(x, tuple(axes))
    for run in (by_meaning, by_prepared if native.find("", "Unsqueeze", 25) else by_meaning):
        wide = run("Unsqueeze", 25, x, axes)
        np.testing.assert_array_equal(wide, expected)
        np.testing.assert_array_equal(by_meaning("Squeeze", 25, wide, axes), x)


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(128, 300)), elements=st.integers(-5, 5)),
    st.integers(1, 15),
    st.booleans(),
)
def test_top_k_by_partition_keeps_the_order_of_equal_entries(x: np.ndarray, count: int, largest: bool) -> None:
    inputs = (x, np.array([count]))
    for got, wanted in zip(
        by_native("TopK", 24, *inputs, largest=int(largest)),
        by_meaning("TopK", 24, *inputs, largest=int(largest)),
        strict=True,
    ):
        np.testing.assert_array_equal(got, wanted)


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=5), st.data())
def test_gather_elements_by_place_in_memory_is_gather_elements(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    reach = tuple(data.draw(st.integers(0, 6 if n == axis % len(shape) else size)) for n, size in enumerate(shape))
    size = shape[axis]
    indices = data.draw(hnp.arrays(np.int64, reach, elements=st.integers(-size, size - 1)))
    inputs = (counted(shape), indices)
    np.testing.assert_array_equal(
        by_native("GatherElements", 13, *inputs, axis=axis), by_meaning("GatherElements", 13, *inputs, axis=axis)
    )


@given(SHAPES, st.data())
def test_padding_and_cutting_the_same_off_is_the_identity(shape: tuple[int, ...], data: st.DataObject) -> None:
    widths = np.array([data.draw(st.integers(0, 3)) for _ in range(2 * len(shape))])
    x = counted(shape)
    for run in (by_meaning, by_prepared if native.find("", "Pad", 25) else by_meaning):
        np.testing.assert_array_equal(by_meaning("Pad", 25, run("Pad", 25, x, widths), -widths), x)
