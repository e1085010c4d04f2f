"""Files of opsets 1 to 8, judged by NumPy: no runtime has kernels for most of them any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from entrepot.ir.opset.convert import can_convert, convert_opset, raise_to_hub
from tests.ir.opset.evaluate import assert_near, checked, parse, run

Array = np.ndarray[Any, Any]


def f32(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(np.float32)


X = f32(2, 3, 4, 5)
M = f32(3, 4)


class Legacy(NamedTuple):
    opset: int
    body: str
    signature: str
    feeds: tuple[Array, ...]
    expected: Callable[..., Any]
    stored: str = ""


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def channels(bias: list[float]) -> Array:
    return np.array(bias, np.float32).reshape(-1, 1, 1)


def reshaped(shape: str) -> str:
    return f"float[2,3,4,5] x) => (float[{shape}] y"


SAME4 = reshaped("2,3,4,5")
TWO = "float[2,3,4,5] a, float[{b}] b) => (float[2,3,4,5] y"

CASES = {
    "in-place hint": Legacy(1, "y = Relu<consumed_inputs = [0]>(x)", SAME4, (X,), lambda x: np.maximum(x, 0)),
    "old selu": Legacy(1, "y = Selu(x)", SAME4, (X,), lambda x: 1.0507 * np.where(x > 0, x, 1.6732 * (np.exp(x) - 1))),
    "add at an axis": Legacy(
        1,
        "y = Add<broadcast = 1, axis = 1>(a, b)",
        TWO.format(b="3"),
        (X, f32(3)),
        lambda a, b: a + b[:, None, None],
    ),
    "sub at two axes": Legacy(
        6,
        "y = Sub<broadcast = 1, axis = 1>(a, b)",
        TWO.format(b="3,4"),
        (X, f32(3, 4)),
        lambda a, b: a - b[..., None],
    ),
    "mul at the end": Legacy(
        6, "y = Mul<broadcast = 1>(a, b)", TWO.format(b="4,5"), (X, f32(4, 5)), lambda a, b: a * b
    ),
    "div with axis -1": Legacy(
        6, "y = Div<broadcast = 1, axis = -1>(a, b)", TWO.format(b="5"), (X, f32(5)), lambda a, b: a / b
    ),
    "pow of equal shapes": Legacy(1, "y = Pow(a, b)", TWO.format(b="2,3,4,5"), (np.abs(X), X), lambda a, b: a**b),
    "greater at an axis": Legacy(
        1,
        "y = Greater<broadcast = 1, axis = 0>(a, b)",
        "float[2,3] a, float[2] b) => (bool[2,3] y",
        (f32(2, 3), f32(2)),
        lambda a, b: a > b[:, None],
    ),
    "softmax flattens": Legacy(
        1, "y = Softmax(x)", SAME4, (X,), lambda x: softmax(x.reshape(2, -1), 1).reshape(x.shape)
    ),
    "softmax flattens without a known rank": Legacy(
        6,
        "t = Reshape(x, s) y = Softmax<axis = 2>(t)",
        "float[120] x, int64[N] s) => (float[2,3,4,5] y",
        (X.ravel(), np.array(X.shape)),
        lambda x, s: softmax(x.reshape(6, -1), 1).reshape(s),
    ),
    "hardmax flattens": Legacy(
        1,
        "y = Hardmax<axis = 1>(x)",
        "float[2,2,2] x) => (float[2,2,2] y",
        (np.arange(8, dtype=np.float32).reshape(2, 2, 2),),
        lambda x: np.eye(4, dtype=np.float32)[[3, 3]].reshape(2, 2, 2),
    ),
    "reshape by attribute": Legacy(
        1, "y = Reshape<shape = [0, -1]>(x)", reshaped("2,60"), (X,), lambda x: x.reshape(2, 60)
    ),
    "cast by name": Legacy(
        1, 'y = Cast<to = "INT32">(x)', "float[3,4] x) => (int32[3,4] y", (M * 9,), lambda x: x.astype(np.int32)
    ),
    "cast by lower-case name": Legacy(
        1, 'y = Cast<to = "double">(x)', "float[3,4] x) => (double[3,4] y", (M,), lambda x: x.astype(np.float64)
    ),
    "concat without an axis": Legacy(
        1,
        "y = Concat(a, b)",
        "float[2,3] a, float[2,3] b) => (float[2,6] y",
        (f32(2, 3), f32(2, 3)),
        lambda a, b: np.concatenate([a, b], 1),
    ),
    "tile one axis": Legacy(
        1,
        "y = Tile(x, t, i)",
        "float[3,4] x) => (float[3,8] y",
        (M,),
        lambda x: np.tile(x, (1, 2)),
        "float[1] t = {2}, float[1] i = {1}",
    ),
    "pad renamed": Legacy(
        1,
        "y = Pad<paddings = [1, 0, 0, 2], value = 1.5>(x)",
        "float[3,4] x) => (float[4,6] y",
        (M,),
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=1.5),
    ),
    "pad in the element type": Legacy(
        2,
        "y = Pad<pads = [1, 0, 0, 2], value = 1.5>(x)",
        "double[3,4] x) => (double[4,6] y",
        (M.astype(np.float64),),
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=1.5),
    ),
    "split without an axis": Legacy(
        1,
        "y, z = Split<split = [1, 2]>(x)",
        "float[3,4] x) => (float[1,4] y, float[2,4] z",
        (M,),
        lambda x: [x[:1], x[1:]],
    ),
    "split by a stored input": Legacy(
        1,
        "y, z = Split<axis = 1>(x, s)",
        "float[3,4] x) => (float[3,1] y, float[3,3] z",
        (M,),
        lambda x: [x[:, :1], x[:, 1:]],
        "float[2] s = {1, 3}",
    ),
    "slice by attributes": Legacy(
        1,
        "y = Slice<starts = [1, -3], ends = [100, -1], axes = [0, 1]>(x)",
        "float[3,4] x) => (float[2,2] y",
        (M,),
        lambda x: x[1:, -3:-1],
    ),
    "top k by attribute": Legacy(
        1,
        "y, i = TopK<k = 2>(x)",
        "float[3,4] x) => (float[3,2] y, int64[3,2] i",
        (M,),
        lambda x: [-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2]],
    ),
    "clip bounds in the element type": Legacy(
        6,
        "y = Clip<min = -0.5, max = 0.5>(x)",
        "float16[3,4] x) => (float16[3,4] y",
        (M.astype(np.float16),),
        lambda x: np.clip(x, -0.5, 0.5),
    ),
    "prelu per channel": Legacy(
        6,
        "y = PRelu(x, s)",
        SAME4,
        (X,),
        lambda x: np.where(x < 0, x * channels([0.1, 0.2, 0.3]), x),
        "float[3] s = {0.1, 0.2, 0.3}",
    ),
    "gemm broadcast": Legacy(
        6,
        "y = Gemm<broadcast = 1, alpha = 2.0>(a, b, c)",
        "float[3,4] a, float[4,2] b, float[2] c) => (float[3,2] y",
        (M, f32(4, 2), f32(2)),
        lambda a, b, c: 2 * a @ b + c,
    ),
    "batch norm in inference": Legacy(
        6,
        "y = BatchNormalization<is_test = 1, epsilon = 0.0>(x, s, b, m, v)",
        SAME4,
        (X,),
        lambda x: (x - channels([1, 2, 3])) / np.sqrt(channels([4, 9, 16])) * channels([1, 2, 3]) + channels([0, 1, 2]),
        "float[3] s = {1, 2, 3}, float[3] b = {0, 1, 2}, float[3] m = {1, 2, 3}, float[3] v = {4, 9, 16}",
    ),
    "batch norm per activation": Legacy(
        7,
        "y = BatchNormalization<spatial = 0, epsilon = 0.0>(x, s, s, m, v)",
        "float[2,3] x) => (float[2,3] y",
        (f32(2, 3),),
        lambda x: (x - np.float32([1, 2, 3])) / np.float32([2, 3, 4]) * np.float32([1, 1, 2]) + np.float32([1, 1, 2]),
        "float[3] s = {1, 1, 2}, float[3] m = {1, 2, 3}, float[3] v = {4, 9, 16}",
    ),
    "dropout in inference": Legacy(6, "y = Dropout<is_test = 1, ratio = 0.3>(x)", SAME4, (X,), lambda x: x),
    "upsample by height and width": Legacy(
        1,
        'y = Upsample<height_scale = 2.0, width_scale = 3.0, mode = "nearest">(x)',
        reshaped("2,3,8,15"),
        (X,),
        lambda x: x.repeat(2, 2).repeat(3, 3),
    ),
    "upsample by scales": Legacy(
        7,
        "y = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(x)",
        reshaped("2,3,8,10"),
        (X,),
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
    "norm pooling with a float p": Legacy(
        1,
        "y = GlobalLpPool<p = 2.0>(x)",
        reshaped("2,3,1,1"),
        (X,),
        lambda x: np.sqrt((x**2).sum((2, 3), keepdims=True)),
    ),
    "affine": Legacy(1, "y = Affine<alpha = 2.0, beta = 1.0>(x)", SAME4, (X,), lambda x: 2 * x + 1),
    "image scaler": Legacy(
        6,
        "y = ImageScaler<scale = 2.0, bias = [0.5, 1.0, 1.5]>(x)",
        SAME4,
        (X,),
        lambda x: 2 * x + channels([0.5, 1, 1.5]),
    ),
    "crop by border": Legacy(
        6, "y = Crop<border = [1, 0, 2, 1]>(x)", reshaped("2,3,3,2"), (X,), lambda x: x[:, :, :3, 1:3]
    ),
    "crop by size": Legacy(
        6, "y = Crop<border = [1, 2, 0, 0], scale = [2, 3]>(x)", reshaped("2,3,2,3"), (X,), lambda x: x[:, :, 2:4, 1:4]
    ),
    "parametric softplus": Legacy(
        6,
        "y = ParametricSoftplus<alpha = 0.5, beta = 2.0>(x)",
        SAME4,
        (X,),
        lambda x: 0.5 * np.log(np.exp(2 * x) + 1),
    ),
    "scaled tanh": Legacy(6, "y = ScaledTanh<alpha = 0.5, beta = 2.0>(x)", SAME4, (X,), lambda x: 0.5 * np.tanh(2 * x)),
    "scale": Legacy(6, "y = Scale<scale = 3.0>(x)", SAME4, (X,), lambda x: 3 * x),
    "thresholded relu": Legacy(
        6, "y = ThresholdedRelu<alpha = 0.5>(x)", SAME4, (X,), lambda x: np.where(x > 0.5, x, 0)
    ),
    "constant fill": Legacy(
        6, "y = ConstantFill<value = 2.5, shape = [2, 3]>()", ") => (float[2,3] y", (), lambda: np.full((2, 3), 2.5)
    ),
    "scan over a batch": Legacy(
        8,
        "y, z = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] o)"
        " { t = Add(s, e) o = Identity(t) }>(, i, x)",
        "float[3,2] i, float[3,5,2] x) => (float[3,2] y, float[3,5,2] z",
        (f32(3, 2), f32(3, 5, 2)),
        lambda i, x: [i + x.sum(1), i[:, None] + x.cumsum(1)],
    ),
    "unread mask of dropout": Legacy(7, "y, m = Dropout(x)", SAME4, (X,), lambda x: x),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", [9, 13, 20])
def test_a_legacy_file_means_the_same_at_a_newer_opset(name: str, target: int) -> None:
    case = CASES[name]
    model = parse(case.body, case.opset, case.signature, stored=case.stored, ir_version=4)
    results = run(convert_opset(model, target), *case.feeds)
    expected = case.expected(*case.feeds)
    for have, want in zip(results, expected if isinstance(expected, list) else [expected], strict=True):
        assert_near(have, want)


@pytest.mark.parametrize("name", CASES)
def test_a_legacy_file_is_valid_at_the_hub(name: str) -> None:
    case = CASES[name]
    checked(raise_to_hub(parse(case.body, case.opset, case.signature, stored=case.stored, ir_version=4)))


REFUSED = {
    "unknown rank at an axis": (
        6,
        "t = Reshape(a, s) y = Add<broadcast = 1, axis = 1>(t, b)",
        "float[120] a, int64[N] s, float[3] b) => (float[2,3,4,5] y",
        "rank",
    ),
    "sequence lengths of a scan": (
        8,
        "y = Scan<num_scan_inputs = 1, body = b (float[2] e) => (float[2] o) { o = Identity(e) }>(n, x)",
        "int64[3] n, float[3,5,2] x) => (float[3,5,2] y",
        "sequence_lens",
    ),
    "a call into another library": (
        6,
        'y = ATen<operator = "frob">(x)',
        "float[2] x) => (float[2] y",
        "another library",
    ),
    "a norm of no whole number": (1, "y = GlobalLpPool<p = 1.5>(x)", reshaped("2,3,1,1"), "p=1.5"),
    "a type that does not exist": (1, 'y = Cast<to = "FLOAT7">(x)', "float[2] x) => (float[2] y", "no element type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_newer_form_is_refused_with_the_reason(name: str) -> None:
    opset, body, signature, reason = REFUSED[name]
    (blocker,) = can_convert(parse(body, opset, signature), 13)
    assert reason in str(blocker)
