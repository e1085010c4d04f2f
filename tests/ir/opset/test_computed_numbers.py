"""Slice, Pad, Split and Expand whose numbers are computed at run time, below the opsets where they became inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse, run

X = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)
INT64 = np.iinfo(np.int64)


def _random_slice(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[Any]:
    count = int(rng.integers(1, 4))
    axes = rng.permutation(3)[:count]
    steps = rng.choice([-3, -2, -1, 1, 2, 3], count)
    starts, ends = rng.integers(-7, 8, count), rng.integers(-7, 8, count)
    ends = np.where(rng.random(count) < 0.2, np.where(steps > 0, INT64.max, INT64.min), ends)
    return [starts, ends, np.where(rng.random(count) < 0.5, axes, axes - len(sizes)), steps]


@pytest.mark.parametrize("target", [7, 8, 9])
def test_computed_slices_take_the_same(target: int) -> None:
    inputs = "float[A,B,C] x, int64[M] s, int64[M] e, int64[M] a, int64[M] t"
    model = parse("y = Slice(x, s, e, a, t)", 13, f"{inputs}) => (float[P,Q,R] y")
    after = convert_opset(model, target)
    rng = np.random.default_rng(target)
    for _ in range(20):
        feeds = X, *_random_slice(rng, X.shape)
        np.testing.assert_array_equal(run(after, *feeds)[0], run(model, *feeds)[0], str(feeds[1:]))


@pytest.mark.parametrize("target", [7, 9])
def test_computed_bounds_of_the_first_axes_need_no_rank(target: int) -> None:
    model = parse("y = Slice(x, s, e)", 13, "float[A,B,C] x, int32[2] s, int32[2] e) => (float[P,Q,R] y")
    assert_same(model, target, X, np.array([1, -2], np.int32), np.array([-1, np.iinfo(np.int32).max], np.int32))


def test_strings_are_not_gathered_twice() -> None:
    twice = parse("z = Gather(x, i) y = Gather<axis = 1>(z, i)", 9, "string[2,2] x, int64[2] i) => (string[2,2] y")
    given = run(twice, np.array([["a", "b"], ["c", "d"]], object), np.array([0, 1]))
    assert (given[0] == "").any(), "onnxruntime has mended Gather: take the refusal out of computed_positions.sliced"
    model = parse("y = Slice(x, s, e)", 13, "string[A,B] x, int64[2] s, int64[2] e) => (string[P,Q] y")
    with pytest.raises(ConversionError, match="strings are not gathered"):
        convert_opset(model, 9)


def _padded(x: np.ndarray[Any, Any], before: Any, after: Any, mode: str) -> np.ndarray[Any, Any]:
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        x = np.take(x, range(max(0, -low), x.shape[axis] - max(0, -high)), axis)
    widths = [(max(0, low), max(0, high)) for low, high in zip(before, after, strict=True)]
    return np.pad(x, widths, mode=mode, **({"constant_values": 2.5} if mode == "constant" else {}))  # type: ignore[call-overload]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("target", [7, 9, 17, 18])
def test_computed_pads_put_the_same_beside(mode: str, target: int) -> None:
    signature = "float[A,B,C] x, int64[6] p, float v) => (float[P,Q,R] y"
    after = convert_opset(parse(f'y = Pad<mode = "{mode}">(x, p, v)', 19, signature), target)
    rng = np.random.default_rng(target)
    low, high = (0, 3) if mode == "reflect" and target > 10 else (-1, 7)  # onnxruntime's Pad reflects only once
    for _ in range(10):
        pads = rng.integers(low, high, 6)
        have = run(after, X, pads, np.array(2.5, np.float32))[0]
        np.testing.assert_array_equal(have, _padded(X, pads[:3], pads[3:], mode), str(pads))


@pytest.mark.parametrize("target", [7, 10, 13])
def test_pads_of_computed_axes_are_spread_over_all(target: int) -> None:
    inputs = "float[A,B,C] x, int64[M] p, int64[N] a"
    model = parse("y = Pad(x, p, , a)", 18, f"{inputs}) => (float[P,Q,R] y")
    assert_same(model, target, X, np.array([1, 2, 3, 4]), np.array([-1, 0]))
    assert_same(model, target, X, np.array([2, 1]), np.array([1]))


@pytest.mark.parametrize("target", [7, 9, 12])
def test_a_split_by_computed_sizes_is_slices(target: int) -> None:
    signature = "float[A,B] x, int64[3] s) => (float[A,C] a, float[A,D] b, float[A,E] c"
    model = parse("a, b, c = Split<axis = 1>(x, s)", 13, signature)
    assert_same(model, target, X[:, 0], np.array([1, 0, 3]))


@pytest.mark.parametrize("shape", [[5, 1, 4], [2, 5, 3, 4], [1], [1, 4]])
def test_a_computed_shape_is_tiled_to(shape: list[int]) -> None:
    result = ",".join("PQRS"[: max(3, len(shape))])
    model = parse("y = Expand(x, s)", 13, f"float[A,B,C] x, int64[{len(shape)}] s) => (float[{result}] y")
    assert_same(model, 7, X[:, :, :1], np.array(shape))
    assert_same(model, 7, X[:0], np.array(shape[:-3] + [1] * min(3, len(shape))))
