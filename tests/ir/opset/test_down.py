"""The way down, one small model per rule, judged by onnxruntime's own kernels of both opsets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from entrepot.ir.opset.convert import can_convert, convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse, run

Array = np.ndarray[Any, Any]


def f32(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


class Down(NamedTuple):
    opset: int
    targets: tuple[int, ...]
    body: str
    signature: str
    feeds: tuple[Array, ...]
    stored: str = ""


M, X = f32(3, 4), f32(2, 3, 6, 6)
SPECIAL = np.array([[0, -0.0, 1.5, -2.5], [np.inf, -np.inf, np.nan, 0.5], [2.5, -0.5, 1e30, -1e-30]], np.float32)
UNARY = "float[3,4] x) => (float[3,4] y"
TO_BOOL = "float[3,4] x) => (bool[3,4] y"
IMAGE = "float[N,3,6,6] x) => (float y"


def image(*dims: int | str) -> str:
    return f"float[2,3,6,6] x) => (float[{','.join(map(str, dims))}] y"


CASES = {
    "softmax along a middle axis": Down(13, (12, 9, 7), "y = Softmax<axis = 1>(x)", image(2, 3, 6, 6), (X,)),
    "log softmax along the first axis": Down(13, (11, 8), "y = LogSoftmax<axis = 0>(x)", UNARY, (M,)),
    "layer norm": Down(
        17, (16, 13, 11, 9, 7), "y = LayerNormalization(x, s, s)", UNARY, (M,), "float[4] s = {1, 2, 3, 4}"
    ),
    "layer norm with its statistics": Down(
        17,
        (13, 7),
        "y, m, i = LayerNormalization<axis = 0>(x, s)",
        "float[3,4] x) => (float[3,4] y, float[1,1] m, float[1,1] i",
        (M,),
        "float[3,4] s = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}",
    ),
    "layer norm in float16": Down(
        17,
        (13, 9),
        "y = LayerNormalization(x, s)",
        "float16[3,4] x) => (float16[3,4] y",
        (M.astype(np.float16),),
        "float16[4] s = {1, 2, 3, 4}",
    ),
    "rms norm": Down(23, (20, 17, 12, 7), "y = RMSNormalization(x, s)", UNARY, (M,), "float[4] s = {1, 2, 3, 4}"),
    "group norm": Down(
        21,
        (20, 17, 11, 8),
        "y = GroupNormalization<num_groups = 3>(x, s, s)",
        "float[N,3,6,6] x) => (float[N,3,6,6] y",
        (X,),
        "float[3] s = {1, 2, 3}",
    ),
    "gelu": Down(20, (18, 15, 9), "y = Gelu(x)", UNARY, (M,)),
    "gelu by polynomial": Down(20, (8, 7), "y = Gelu(x)", UNARY, (M,)),
    "gelu by tanh": Down(20, (13, 7), 'y = Gelu<approximate = "tanh">(x)', UNARY, (M,)),
    "mish": Down(18, (17, 9, 7), "y = Mish(x)", UNARY, (M,)),
    "hard swish": Down(14, (13, 9, 7), "y = HardSwish(x)", UNARY, (M,)),
    "celu": Down(12, (11, 7), "y = Celu<alpha = 2.0>(x)", UNARY, (M,)),
    "shrink": Down(9, (8, 7), "y = Shrink<bias = 0.1, lambd = 0.3>(x)", UNARY, (M,)),
    "thresholded relu": Down(10, (9, 8), "y = ThresholdedRelu<alpha = 0.2>(x)", UNARY, (M,)),
    "round half to even": Down(11, (10, 8, 7), "y = Round(x)", UNARY, (SPECIAL,)),
    "is nan": Down(9, (8, 7), "y = IsNaN(x)", TO_BOOL, (SPECIAL,)),
    "is inf": Down(10, (9, 7), "y = IsInf(x)", TO_BOOL, (SPECIAL,)),
    "is negative inf": Down(10, (9, 7), "y = IsInf<detect_positive = 0>(x)", TO_BOOL, (SPECIAL,)),
    "sign": Down(9, (8, 7), "y = Sign(x)", UNARY, (M,)),
    "asinh of both signs": Down(9, (8, 7), "y = Asinh(x)", UNARY, (M * 100,)),
    "equal floats with nan and infinities": Down(
        11, (10, 7), "y = Equal(x, z)", "float[3,4] x, float[3,4] z) => (bool[3,4] y", (SPECIAL, SPECIAL)
    ),
    "less on large int64": Down(
        9,
        (8, 7),
        "y = Less(a, b)",
        "int64[4] a, int64[4] b) => (bool[4] y",
        (np.array([2**62, -(2**62), 2**53, 5]), np.array([2**62 + 1, -(2**62) - 1, 2**53 + 1, -5])),
    ),
    "max of int64": Down(
        13,
        (11, 9),
        "y = Max(a, b)",
        "int64[2] a, int64[2] b) => (int64[2] y",
        (np.array([2**62, -1]), np.array([2**62 + 1, -2])),
    ),
    "clip of int64": Down(
        13, (11, 9), "y = Clip(x, l, h)", "int64[4] x) => (int64[4] y", (np.arange(4),), "int64 l = {1}, int64 h = {2}"
    ),
    "clip with computed bounds": Down(
        13, (10, 8), "y = Clip(x, l)", "float[3,4] x, float l) => (float[3,4] y", (M, np.array(0.1, np.float32))
    ),
    "relu of int32": Down(14, (13, 9), "y = Relu(x)", "int32[3] x) => (int32[3] y", (np.array([-1, 0, 2], np.int32),)),
    "where of infinities": Down(
        9,
        (8, 7),
        "y = Where(c, x, z)",
        "bool[3,4] c, float[3,4] x, float z) => (float[3,4] y",
        (M > 0, SPECIAL, np.array(-np.inf, np.float32)),
    ),
    "where of int64": Down(
        16,
        (8,),
        "y = Where(c, x, z)",
        "bool[2] c, int64[2] x, int64[2] z) => (int64[2] y",
        (np.array([True, False]), np.array([2**63 - 1, 3]), np.array([-(2**63), 4])),
    ),
    "floored remainder of int64": Down(
        13,
        (9,),
        "y = Mod(a, b)",
        "int64[4] a, int64[4] b) => (int64[4] y",
        (np.array([7, -7, 7, -6]), np.array([3, 3, -3, 3])),
    ),
    "pow with an integer exponent": Down(
        13, (11, 7), "y = Pow(x, e)", "float[3,4] x) => (float[3,4] y", (np.abs(M),), "int64 e = {3}"
    ),
    "last of equal maxima": Down(
        13,
        (11, 10),
        "y = ArgMax<axis = 1, select_last_index = 1>(x)",
        "float[N,4] x) => (int64[N,1] y",
        (np.array([[1, 3, 3, 0]], np.float32),),
    ),
    "smallest k": Down(
        11,
        (10,),
        "y, i = TopK<largest = 0>(x, k)",
        "float[3,4] x) => (float[3,2] y, int64[3,2] i",
        (M,),
        "int64[1] k = {2}",
    ),
    "reduce over nothing": Down(18, (17, 9), "y = ReduceSumSquare<noop_with_empty_axes = 1>(x)", UNARY, (M,)),
    "cumulative sum backwards": Down(
        14, (10, 7), "y = CumSum<reverse = 1, exclusive = 1>(x, a)", UNARY, (M,), "int64 a = {1}"
    ),
    "uneven split": Down(
        18,
        (17, 11, 9),
        "a, y = Split<axis = 1, num_outputs = 2>(x)",
        "float[2,5] x) => (float[2,3] a, float[2,2] y",
        (f32(2, 5),),
    ),
    "uneven split of an unknown size": Down(
        18,
        (17, 11, 10),
        "a, y = Split<axis = 1, num_outputs = 2>(x)",
        "float[2,N] x) => (float[2,P] a, float[2,Q] y",
        (f32(2, 5),),
    ),
    "slice with steps": Down(
        13,
        (11, 9, 7),
        "y = Slice(x, b, e, a, s)",
        "float[3,4] x) => (float[3,2] y",
        (M,),
        "int64[1] b = {-1}, int64[1] e = {-9}, int64[1] a = {-1}, int64[1] s = {-2}",
    ),
    "part of a shape": Down(15, (14, 11, 7), "y = Shape<start = -1>(x)", "float[3,4] x) => (int64[1] y", (M,)),
    "pad of some axes": Down(
        18,
        (17, 11, 9),
        "y = Pad(x, p, , a)",
        "float[3,4] x) => (float[3,7] y",
        (M,),
        "int64[2] p = {1, 2}, int64[1] a = {-1}",
    ),
    "pad that wraps": Down(
        19,
        (18, 13, 9),
        'y = Pad<mode = "wrap">(x, p)',
        "float[3,4] x) => (float[4,7] y",
        (M,),
        "int64[4] p = {1, 2, 0, 1}",
    ),
    "reshape to nothing": Down(
        14,
        (13, 9),
        "y = Reshape<allowzero = 1>(x, s)",
        "float[0,3] x) => (float[3,0] y",
        (f32(0, 3),),
        "int64[2] s = {3, 0}",
    ),
    "triangle of a fixed size": Down(14, (13, 9, 7), "y = Trilu(x)", UNARY, (M,)),
    "triangle of an unknown size": Down(
        14, (13, 11), "y = Trilu<upper = 0>(x, k)", "float[N,M] x, int64 k) => (float[N,M] y", (M, np.array(1))
    ),
    "one-hot with negative indices": Down(
        11,
        (10, 9),
        "y = OneHot(i, d, v)",
        "int64[3] i) => (float[3,4] y",
        (np.array([-1, 2, 0]),),
        "int64 d = {4}, float[2] v = {-1, 3}",
    ),
    "gather elements": Down(
        13,
        (10, 8),
        "y = GatherElements<axis = 1>(x, i)",
        "float[3,4] x, int64[3,2] i) => (float[3,2] y",
        (M, np.array([[0, -1], [1, 2], [3, 3]])),
    ),
    "gather nd with a batch": Down(
        13,
        (11, 9),
        "y = GatherND<batch_dims = 1>(x, i)",
        "float[3,4] x, int64[3,1] i) => (float[3] y",
        (M, np.array([[0], [-1], [2]])),
    ),
    "scatter elements": Down(
        13,
        (10, 9),
        "y = ScatterElements<axis = -1>(x, i, u)",
        "float[3,4] x, int64[3,1] i, float[3,1] u) => (float[3,4] y",
        (M, np.array([[0], [1], [3]]), f32(3, 1)),
    ),
    "average pooling with a ceiling": Down(
        11,
        (9, 7),
        "y = AveragePool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x)",
        image(2, 3, 3, 3),
        (X,),
    ),
    "maximum pooling with a window in the padding": Down(
        22,
        (19, 11, 9),
        "y = MaxPool<kernel_shape = [2, 2], strides = [3, 3], pads = [0, 0, 1, 1], ceil_mode = 1>(x)",
        image(2, 3, 2, 2),
        (X,),
    ),
    "nearest resize by half pixels": Down(
        13,
        (10, 9, 7),
        'y = Resize<mode = "nearest", coordinate_transformation_mode = "half_pixel">(x, , s)',
        image(2, 3, 12, 9),
        (X,),
        "float[4] s = {1, 1, 2, 1.5}",
    ),
    "resize that repeats, of unknown size": Down(
        19,
        (13, 10, 9, 7),
        'y = Resize<mode = "nearest">(x, , s)',
        "float[2,3,H,W] x) => (float[2,3,P,Q] y",
        (X,),
        "float[4] s = {1, 1, 2, 3}",
    ),
    "linear resize with aligned corners": Down(
        13,
        (10, 7),
        'y = Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , , s)',
        image(2, 3, 9, 4),
        (X,),
        "int64[4] s = {2, 3, 9, 4}",
    ),
    "cubic resize": Down(
        13, (9,), 'y = Resize<mode = "cubic">(x, , s)', image(2, 3, 12, 3), (X,), "float[4] s = {1, 1, 2, 0.5}"
    ),
    "depth to space by columns": Down(
        13,
        (10, 7),
        'y = DepthToSpace<blocksize = 2, mode = "CRD">(x)',
        "float[2,8,3,3] x) => (float[2,2,6,6] y",
        (f32(2, 8, 3, 3),),
    ),
    "grid sample by gathering, of unknown size": Down(
        16,
        (15, 12, 11),
        "y = GridSample(x, g)",
        "float[N,3,H,W] x, float[N,2,2,2] g) => (float[N,3,2,2] y",
        (X, f32(2, 2, 2, 2)),
    ),
    "nearest grid sample to the border, corners aligned": Down(
        16,
        (15, 9),
        'y = GridSample<mode = "nearest", padding_mode = "border", align_corners = 1>(x, g)',
        "float[2,3,6,6] x, float[2,2,2,2] g) => (float[2,3,2,2] y",
        (X, f32(2, 2, 2, 2)),
    ),
    "grid sample": Down(
        20,
        (19, 16),
        'y = GridSample<mode = "cubic">(x, g)',
        "float[2,3,6,6] x, float[2,2,2,2] g) => (float[2,3,2,2] y",
        (X, f32(2, 2, 2, 2)),
    ),
    "fourier transform of a real signal, half of it": Down(
        17,
        (16, 11, 8),
        "y = DFT<axis = 1, onesided = 1>(x)",
        "float[2,8,1] x) => (float[2,5,2] y",
        (f32(2, 8, 1),),
    ),
    "fourier transform, inverse and padded": Down(
        20,
        (17, 13, 9),
        "y = DFT<inverse = 1>(x, n, a)",
        "float[2,6,2] x) => (float[2,8,2] y",
        (f32(2, 6, 2),),
        "int64 n = {8}, int64 a = {1}",
    ),
    "fourier transform of windows": Down(
        17,
        (16, 9),
        "y = STFT(x, step, w)",
        "float[2,L,1] x) => (float[2,F,5,2] y",
        (f32(2, 32, 1),),
        "int64 step = {4}, float[8] w = {0.1, 0.2, 0.5, 1, 1, 0.5, 0.2, 0.1}",
    ),
    "quantise per axis": Down(
        13,
        (12, 10, 9),
        "y = QuantizeLinear<axis = 0>(x, s, z)",
        "float[3,4] x) => (uint8[3,4] y",
        (M,),
        "float[3] s = {0.1, 0.2, 0.01}, uint8[3] z = {0, 128, 255}",
    ),
    "dequantise per axis": Down(
        13,
        (12, 9),
        "y = DequantizeLinear<axis = 1>(x, s)",
        "int8[3,4] x) => (float[3,4] y",
        (np.arange(-6, 6, dtype=np.int8).reshape(3, 4),),
        "float[4] s = {0.1, 0.2, 0.01, 1}",
    ),
    "quantise to 16 bits": Down(
        21,
        (19, 13),
        "y = QuantizeLinear(x, s, z)",
        "float[3,4] x) => (int16[3,4] y",
        (M,),
        "float s = {0.001}, int16 z = {7}",
    ),
    "integer product": Down(
        10,
        (9, 8),
        "y = MatMulInteger(a, b, z)",
        "uint8[2,3] a, int8[3,2] b) => (int32[2,2] y",
        (np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(-3, 3, dtype=np.int8).reshape(3, 2)),
        "uint8 z = {3}",
    ),
    "gemm without a bias": Down(
        11, (9, 7), "y = Gemm<transB = 1>(a, b)", "float[3,4] a, float[2,4] b) => (float[3,2] y", (M, f32(2, 4))
    ),
    "einsum": Down(
        12,
        (11, 9),
        'y = Einsum<equation = "bij,kj->bik">(a, b)',
        "float[2,3,4] a, float[5,4] b) => (float[2,3,5] y",
        (f32(2, 3, 4), f32(5, 4)),
    ),
    "range by a loop": Down(
        11,
        (10, 9),
        "y = Range(a, b, c)",
        "int64 a, int64 b, int64 c) => (int64[N] y",
        (np.array(1), np.array(8), np.array(3)),
    ),
    "cast like": Down(
        15, (14, 9), "y = CastLike(x, z)", "float[3,4] x, int32[1] z) => (int32[3,4] y", (M, np.zeros(1, np.int32))
    ),
    "dropout without training": Down(13, (11, 9), "y = Dropout(x, r)", UNARY, (M,), "float r = {0.4}"),
    "batch norm in training": Down(
        15,
        (13, 9),
        "y, m, v = BatchNormalization<training_mode = 1>(x, s, s, s, s)",
        "float[2,3,6,6] x) => (float[2,3,6,6] y, float[3] m, float[3] v",
        (X,),
        "float[3] s = {1, 2, 3}",
    ),
    "a tensor out of an open sequence": Down(
        11,
        (10, 9),
        "s = SequenceConstruct(x, z) y = SequenceAt(s, i)",
        "float[3,4] x, float[3,4] z) => (float[3,4] y",
        (M, f32(3, 4)),
        "int64 i = {-1}",
    ),
    "the element of what is not optional": Down(18, (16, 15), "y = OptionalGetElement(x)", UNARY, (M,)),
    "scan along a negative axis": Down(
        11,
        (10, 9),
        "f, y = Scan<num_scan_inputs = 1, scan_input_axes = [-1],"
        " body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) { t = Add(s, e) o = Identity(t) }>(i, x)",
        "float[3,4] x) => (float[3] f, float[4,3] y",
        (M,),
        "float[3] i = {0, 0, 0}",
    ),
    "attention with a mask and a cache": Down(
        23,
        (20, 17, 13),
        "y, k2, v2 = Attention(q, k, v, m, pk, pv)",
        "float[2,2,3,4] q, float[2,2,3,4] k, float[2,2,3,4] v, float[3,5] m, float[2,2,2,4] pk, float[2,2,2,4] pv)"
        " => (float[2,2,3,4] y, float[2,2,5,4] k2, float[2,2,5,4] v2",
        (f32(2, 2, 3, 4), f32(2, 2, 3, 4), f32(2, 2, 3, 4), f32(3, 5), f32(2, 2, 2, 4), f32(2, 2, 2, 4)),
    ),
    "rotary embedding": Down(
        23,
        (21, 17, 12),
        "y = RotaryEmbedding(x, c, s)",
        "float[1,2,3,4] x, float[1,3,2] c, float[1,3,2] s) => (float[1,2,3,4] y",
        (f32(1, 2, 3, 4), f32(1, 3, 2), f32(1, 3, 2)),
    ),
}


@pytest.mark.parametrize(
    ("name", "target"), [(name, target) for name, case in CASES.items() for target in case.targets]
)
def test_the_older_form_computes_the_same(name: str, target: int) -> None:
    case = CASES[name]
    model = parse(case.body, case.opset, case.signature, stored=case.stored)
    atol = 2e-2 if "float16" in name else 1e-4 if "fourier" in name else 1e-5
    back = convert_opset(assert_same(model, target, *case.feeds, atol=atol), case.opset)
    assert_same(model, case.opset, *case.feeds)
    assert back.opset == case.opset


REFUSED = {
    "a stepless unknown axis": (18, 17, "y = ReduceSum(x, a)", "float[3,4] x, int64[1] a) => (float[3,4] y", None),
    "dilated average": (
        19,
        18,
        "y = AveragePool<kernel_shape = [2], dilations = [2]>(x)",
        "float[1,1,N] x) => (float[1,1,M] y",
        "not fixed",
    ),
    "trigonometry before opset 7": (7, 6, "y = Sin(x)", UNARY, "trigonometric"),
    "regions by half pixels": (
        16,
        15,
        "y = RoiAlign(x, r, b)",
        "float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y",
        "regions",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_older_version_cannot_say_is_refused_with_the_reason(name: str) -> None:
    opset, target, body, signature, reason = REFUSED[name]
    blockers = can_convert(parse(body, opset, signature), target)
    assert bool(blockers) is (reason is not None)
    assert reason is None or reason in str(blockers[0])


def test_no_deprecated_operator_is_written() -> None:
    model = parse(
        "y = GroupNormalization<num_groups = 3>(x, s, s)", 21, image(2, 3, 6, 6), stored="float[3] s = {1, 2, 3}"
    )
    assert "GroupNormalization" not in op_types(convert_opset(model, 20))


def test_batch_first_recurrence_is_transposed() -> None:
    signature = "float[{}] x, float[1,8,4] w, float[1,8,2] r) => (float[{}] y, float[{}] h"
    x, w, r = f32(3, 5, 4), f32(1, 8, 4), f32(1, 8, 2)
    body = "y, h = LSTM<hidden_size = 2{}>(x, w, r)"
    batch_first = parse(body.format(", layout = 1"), 14, signature.format("3,5,4", "3,5,1,2", "3,1,2"))
    time_first = parse(body.format(""), 14, signature.format("5,3,4", "5,1,3,2", "1,3,2"))
    y, h = run(convert_opset(batch_first, 13), x, w, r)
    want_y, want_h = run(time_first, x.swapaxes(0, 1).copy(), w, r)
    np.testing.assert_array_equal(y, want_y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(h, want_h.swapaxes(0, 1))


def test_batch_norm_of_mixed_types_is_computed_in_float() -> None:
    signature = "float16[2,3,6,6] x) => (float16[2,3,6,6] y"
    stored = "float16[3] s = {1, 2, 3}, float[3] m = {0, 1, 2}"
    model = parse("y = BatchNormalization(x, s, s, m, m)", 15, signature, stored=stored)
    for target in (14, 13, 7):
        assert_same(model, target, X.astype(np.float16), atol=2e-2)


def test_an_operator_that_makes_a_newer_type_makes_an_older_one_and_casts() -> None:
    model = parse("y = EyeLike<dtype = 16>(x)", 22, "float[3,4] x) => (bfloat16[3,4] y")
    after = convert_opset(model, 20)
    assert op_types(after) == ["EyeLike", "Cast"]
    assert after.ir.graph.node(0).attributes["dtype"].value == 1


def test_a_body_is_not_wrapped_in_casts() -> None:
    body = "y = If(c) <then_branch = a () => (p) { p = Identity(x) }, else_branch = b () => (q) { q = Identity(x) }>"
    model = parse(body, 13, "bool c, bfloat16[2] x) => (bfloat16[2] y")
    blockers = can_convert(model, 11)
    assert any("If of opset 11 does not take element type bfloat16" in str(blocker) for blocker in blockers)


@pytest.mark.parametrize("scale", [0.3, 0.6, 1.3, 1.7])
@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_the_nearest_element_at_an_odd_scale_is_the_runtimes(scale: float, nearest: str, coordinates: str) -> None:
    size = int(8 * np.float32(scale))
    kind = f'mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{nearest}"'
    signature = f"float[1,1,8,8] x) => (float[1,1,{size},{size}] y"
    model = parse(f"y = Resize<{kind}>(x, , s)", 13, signature, stored=f"float[4] s = {{1, 1, {scale}, {scale}}}")
    assert_same(model, 9, f32(1, 1, 8, 8))
