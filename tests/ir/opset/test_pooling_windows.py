"""Windows that older pooling cannot cut, against the definition computed in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse, run

Window = dict[str, Any]
SIZES = {1: (11,), 2: (7, 9), 3: (5, 4, 6)}


def drawn(seed: int) -> Window:
    """A random window that fits its axes, with less padding than its length as runtimes demand."""
    rng = np.random.default_rng(seed)
    axes = seed % 3 + 1
    kernel = rng.integers(1, 4, axes)
    dilations = rng.integers(1, 3, axes) if axes < 3 else np.array([1, 2, 1])
    pads = [int(rng.integers(0, size)) for size in [*kernel, *kernel]]
    return {
        "kernel_shape": kernel.tolist(),
        "dilations": np.where(SIZES[axes] > dilations * (kernel - 1), dilations, 1).tolist(),
        "strides": rng.integers(1, 4, axes).tolist(),
        "pads": pads,
        "ceil_mode": int(rng.integers(2)),
    }


def starts(window: Window, axis: int, size: int) -> list[int]:
    count = len(window["kernel_shape"])
    before, after = window["pads"][axis], window["pads"][count + axis]
    extent = window["dilations"][axis] * (window["kernel_shape"][axis] - 1) + 1
    free = size + before + after - extent
    stride = window["strides"][axis]
    steps = -(-free // stride) if window["ceil_mode"] else free // stride
    return [step * stride - before for step in range(steps + 1) if step * stride < size + before or step == 0]


def pooled(op_type: str, x: np.ndarray, window: Window, *, include: int = 0, p: int = 2) -> np.ndarray:
    """The definition, element by element."""
    axes = range(x.ndim - 2)
    rows = [starts(window, axis, x.shape[axis + 2]) for axis in axes]
    y = np.empty((*x.shape[:2], *(len(row) for row in rows)))
    for place in itertools.product(*(range(len(row)) for row in rows)):
        y[(..., *place)] = one(op_type, x, window, [rows[axis][place[axis]] for axis in axes], include, p)
    return y.astype(x.dtype)


def one(op_type: str, x: np.ndarray, window: Window, corner: list[int], include: int, p: int) -> np.ndarray:
    found, count, sizes = [], 0, x.shape[2:]
    ends = window["pads"][len(sizes) :]
    for step in itertools.product(*(range(length) for length in window["kernel_shape"])):
        at = [c + d * s for c, d, s in zip(corner, window["dilations"], step, strict=True)]
        inside = all(0 <= i < size for i, size in zip(at, sizes, strict=True))
        count += inside or (bool(include) and all(i < n + e for i, n, e in zip(at, sizes, ends, strict=True)))
        if inside:
            found.append(x[(..., *at)].astype(np.float64))
    if op_type == "MaxPool":
        return np.max(found, 0)
    if op_type == "LpPool":
        return np.sum(np.abs(found) ** p, 0) ** (1 / p)
    return np.sum(found, 0) / count


def model_of(op_type: str, x: np.ndarray, y: np.ndarray, opset: int = 22, **attributes: Any) -> Model:
    written = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    signature = f"float[{','.join(map(str, x.shape))}] x) => (float[{','.join(map(str, y.shape))}] y"
    return parse(f"y = {op_type}<{written}>(x)", opset, signature)


def agrees(op_type: str, window: Window, targets: tuple[int, ...], **more: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, *SIZES[len(window["kernel_shape"])])).astype(np.float32)
    truth = pooled(op_type, x, window, include=more.get("count_include_pad", 0), p=more.get("p", 2))
    if not np.isfinite(truth).all():  # a window that holds padding only
        return
    model = model_of(op_type, x, truth, **window, **more)
    for target in targets:
        (have,) = run(convert_opset(model, target), x)
        np.testing.assert_allclose(have, truth, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("include", [0, 1])
def test_means_of_any_window_are_kept(seed: int, include: int) -> None:
    agrees("AveragePool", drawn(seed), (18, 10, 8), count_include_pad=include)


@pytest.mark.parametrize("seed", range(24))
def test_norms_of_any_window_are_kept(seed: int) -> None:
    agrees("LpPool", drawn(seed), (17, 8), p=seed % 2 + 1)


@pytest.mark.parametrize("seed", [seed for seed in range(24) if seed % 3 < 2])
def test_maxima_of_any_window_are_kept(seed: int) -> None:
    agrees("MaxPool", drawn(seed), (12, 9, 7))


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_dilated_windows_are_padded_alike(pad: str) -> None:
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 20)
    extent = {"SAME_UPPER": [1, 2], "SAME_LOWER": [2, 1], "VALID": [0, 0]}[pad]  # 7 windows of 5, one per 3 elements
    window = {"kernel_shape": [3], "dilations": [2], "strides": [3], "pads": extent, "ceil_mode": 0}
    truth = pooled("AveragePool", x, window)
    model = model_of("AveragePool", x, truth, kernel_shape=[3], dilations=[2], strides=[3], auto_pad=f'"{pad}"')
    (have,) = run(convert_opset(model, 18), x)
    np.testing.assert_allclose(have, truth, rtol=1e-5)


def test_what_is_not_a_number_stays_in_its_windows() -> None:
    x = np.array([[[1, np.nan, 3, np.inf, 5, 6, 7]]], np.float32)
    window = {"kernel_shape": [2], "dilations": [2], "strides": [1], "pads": [1, 1], "ceil_mode": 0}
    truth = pooled("AveragePool", x, window)
    (have,) = run(convert_opset(model_of("AveragePool", x, truth, **window), 18), x)
    np.testing.assert_allclose(have, truth)


def test_rounding_up_stays_padding_where_padding_does_not_count() -> None:
    model = parse("y = AveragePool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)", 11,
                  "float[1,1,5] x) => (float[1,1,3] y")  # fmt: skip
    after = assert_same(model, 9, np.arange(5, dtype=np.float32).reshape(1, 1, 5))
    assert op_types(after) == ["AveragePool"]


def test_windows_of_unknown_sizes_are_refused() -> None:
    model = parse("y = LpPool<kernel_shape = [2], dilations = [2]>(x)", 18, "float[1,1,N] x) => (float[1,1,M] y")
    with pytest.raises(ConversionError, match="not fixed"):
        convert_opset(model, 17)


def test_a_declared_window_of_padding_is_refused_going_up() -> None:
    written = "kernel_shape = [3], pads = [0, 2], strides = [2], ceil_mode = 1"
    model = parse(f"y = MaxPool<{written}>(x)", 12, "float[1,1,8] x) => (float[1,1,5] y")
    with pytest.raises(ConversionError, match="one of the 5 windows"):
        convert_opset(model, 22)
    model.ir.graph.outputs[0].shape = None
    assert op_types(convert_opset(model, 22)) == ["MaxPool"]


@pytest.mark.parametrize("size", [6, 7])
def test_rounding_up_without_padding_is_refused_where_it_matters(size: int) -> None:
    written = 'kernel_shape = [3], strides = [2], ceil_mode = 1, auto_pad = "VALID"'
    model = parse(f"y = AveragePool<{written}>(x)", 22, f"float[1,1,{size}] x) => (float[1,1,3] y")
    if size == 6:
        with pytest.raises(ConversionError, match="not settled"):
            convert_opset(model, 9)
    else:
        assert_same(model, 9, np.arange(7, dtype=np.float32).reshape(1, 1, 7))


def test_no_padding_is_written_where_there_is_none_to_count() -> None:
    model = parse(
        "y = AveragePool<kernel_shape = [3], count_include_pad = 1>(x)", 7, "float[1,1,9] x) => (float[1,1,7] y"
    )
    assert op_types(convert_opset(model, 6)) == ["AveragePool"]
