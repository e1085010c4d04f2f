"""Operators of com.microsoft, which onnxruntime alone defines and judges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.op_cases.case import _fill as filled
from tests.op_cases.case import bools, f16, f32, i8, i32, ints, u8

DOMAIN = "com.microsoft"


@dataclass(frozen=True)
class Contributed:
    """One use of one operator.

    Attributes:
        op_type: Its name.
        inputs: By position; ``None`` for an absent one.
        attributes: By name.
        outputs: How many outputs the node names.
        stored: Positions of the inputs that are weights of the file.
        told: Whether the file says the shapes of its inputs.
        compared: Of each output, the part that has a meaning: a cache may hold anything behind its positions.
    """

    op_type: str
    inputs: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    stored: tuple[int, ...] = ()
    told: bool = True
    compared: Any = None

    def named(self, count: int) -> Contributed:
        """The node names this many outputs."""
        return replace(self, outputs=count)

    def storing(self, *positions: int) -> Contributed:
        """These inputs are weights."""
        return replace(self, stored=positions)

    def up_to(self, positions: int) -> Contributed:
        """Caches are compared up to a position."""
        return replace(self, compared=positions)

    def feeds(self) -> dict[str, Any]:
        """What a run is given."""
        present = {f"i{n}": value for n, value in enumerate(self.inputs) if value is not None}
        return {name: value for name, value in present.items() if int(name[1:]) not in self.stored}

    def model(self, opset: int = 21) -> onnx.ModelProto:
        """A model of this one node."""
        names = [f"i{n}" if value is not None else "" for n, value in enumerate(self.inputs)]
        outputs = [f"o{n}" for n in range(self.outputs)]
        node = helper.make_node(self.op_type, names, outputs, name="node", domain=DOMAIN, **self.attributes)
        kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in self.feeds().items()}
        inputs = [
            helper.make_tensor_value_info(name, kinds[name], value.shape if self.told else [None] * value.ndim)
            for name, value in self.feeds().items()
        ]
        weights = [onnx.numpy_helper.from_array(self.inputs[n], f"i{n}") for n in self.stored]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph([node], "case", inputs, results, weights)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def __str__(self) -> str:
        shapes = ["-" if value is None else "x".join(map(str, value.shape)) or "()" for value in self.inputs]
        given = [f"{name}={value}" for name, value in self.attributes.items()]
        return f"{self.op_type}({', '.join(shapes + given)})"


def ms(op_type: str, *inputs: Any, **attributes: Any) -> Contributed:
    """A case; draws are filled in."""
    values = tuple(filled(value, f"{op_type}/{n}") for n, value in enumerate(inputs))
    return Contributed(op_type, values, attributes)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


FUSED = [
    ms("Gelu", f32(2, 5)),
    ms("BiasGelu", f32(2, 3, 4), f32(4)),
    ms("FastGelu", f32(2, 3)),
    ms("FastGelu", f32(2, 3), f32(3)),
    ms("QuickGelu", f32(2, 3)),
    ms("QuickGelu", f32(2, 3), alpha=1.0),
    ms("FusedMatMul", f32(2, 3, 4), f32(2, 4, 5), alpha=0.5),
    ms("FusedMatMul", f32(2, 4, 3), f32(5, 4), transA=1, transB=1),
    ms("FusedMatMul", f32(3, 2, 4), f32(2, 4, 5), transBatchA=1),
    ms("FusedMatMul", f32(4, 2, 3), f32(5, 2, 4), transA=1, transBatchA=1, transB=1, transBatchB=1),
    ms("TransposeMatMul", f32(2, 4, 3), f32(2, 5, 4), transA=1, transB=1, alpha=2.0),
    ms("FusedGemm", f32(2, 3), f32(3, 4), f32(4), activation="Relu"),
    ms("FusedGemm", f32(3, 2), f32(4, 3), transA=1, transB=1, alpha=2.0, activation="LeakyRelu", activation_alpha=0.2),
    ms("FusedConv", f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(3), activation="Relu", pads=[1, 1, 1, 1]),
    ms("FusedConv", f32(1, 2, 5, 5), f32(2, 1, 3, 3), None, f32(1, 2, 3, 3), activation="Relu", group=2),
    ms("FusedConv", f32(1, 2, 5, 5), f32(3, 2, 2, 2), activation="Clip", activation_params=[-1.0, 2.0], strides=[2, 2]),
    ms("FusedConv", f32(1, 2, 5), f32(3, 2, 3), activation="LeakyRelu", activation_params=[0.3], auto_pad="SAME_UPPER"),
    ms("FusedConv", f32(1, 2, 5, 5), f32(3, 2, 3, 3), activation="HardSigmoid", activation_params=[0.3, 0.4]),
    ms("FusedConv", f32(1, 2, 5, 5), f32(3, 2, 3, 3), activation="Tanh", dilations=[2, 2], kernel_shape=[3, 3]),
    ms("FusedConv", f32(1, 2, 5, 5), f32(3, 2, 3, 3), activation="Sigmoid"),
]
NORMS = [
    ms("SkipLayerNormalization", f32(2, 3, 4), f32(2, 3, 4), f32(4), f32(4)),
    ms("SkipLayerNormalization", f32(2, 3, 4), f32(2, 3, 4), f32(4), None, f32(4), epsilon=0.1),
    ms("SkipLayerNormalization", f32(2, 3, 4), f32(3, 4), f32(4), f32(4), f32(4)),
    ms("SkipSimplifiedLayerNormalization", f32(2, 3, 4), f32(2, 3, 4), f32(4), epsilon=1e-6),
    ms("SkipSimplifiedLayerNormalization", f32(2, 3, 4), f32(2, 3, 4), f32(4), f32(4)),
    ms("SkipLayerNormalization", f16(2, 3, 4), f16(2, 3, 4), f16(4), f16(4), f16(4)),
]
WORDS = (i32(2, 3, low=0, high=5), i32(2, 3, low=0, high=1), f32(6, 4), f32(5, 4), f32(2, 4), f32(4), f32(4))
NORMS += [
    ms("EmbedLayerNormalization", *WORDS, i32(2, 3, low=0, high=1)).named(2),
    ms("EmbedLayerNormalization", *WORDS, None, i32(2, 3, low=0, high=4), epsilon=0.1).named(2),
    ms("EmbedLayerNormalization", WORDS[0], None, *WORDS[2:4], None, *WORDS[5:]).named(3),
]
TABLES = [u8(6, 4), u8(5, 4), u8(2, 4), u8(4), u8(4)]
NORMS += [
    ms(
        "QEmbedLayerNormalization",
        *WORDS[:2],
        *TABLES,
        i32(2, 3, low=0, high=1),
        *map(scale, (0.1, 0.2, 0.3, 0.4, 0.5)),
        *map(zero, (3, 4, 5, 1, 2)),
    ).named(2)
]

X, W, B = f32(2, 3, 8), f32(8, 24), f32(24)
PAST = f32(2, 2, 2, 5, 4)
ATTENTION = [
    ms("Attention", X, W, B, num_heads=2),
    ms("Attention", X, W, B, num_heads=2, unidirectional=1, scale=0.3),
    ms("Attention", X, W, B, ints(2, 3, dtype=np.int32), num_heads=2),
    ms("Attention", X, W, B, ints(3, 2, 1, 0, dtype=np.int32), num_heads=2),
    ms("Attention", X, W, B, np.array([[1, 1, 0], [0, 1, 1]], np.int32), num_heads=2, mask_filter_value=-5.0),
    ms("Attention", X, W, B, i32(2, 3, 3, low=0, high=1), num_heads=2),
    ms("Attention", X, W, B, None, None, f32(2, 2, 3, 3), num_heads=2),
    ms("Attention", X, W, B, None, None, f32(1, 1, 3, 3), num_heads=2, unidirectional=1),
    ms("Attention", X, f32(8, 20), f32(20), num_heads=2, qkv_hidden_sizes=[8, 8, 4]),
    ms("Attention", X, W, B, None, PAST, num_heads=2, unidirectional=1).named(2),
    ms("Attention", X, W, B, i32(2, 8, low=0, high=1), PAST, num_heads=2).named(2),
    ms("Attention", X, W, B, np.array([[0, 0, 0], [0, 1, 1]], np.int32), num_heads=2, unidirectional=1),
    ms("QAttention", u8(2, 3, 8), i8(8, 24), B, scale(0.1), scale(0.02), None, zero(4), zero(1, np.int8), num_heads=2),
    ms(
        "QAttention", u8(2, 3, 8), u8(8, 24), B, scale(0.1), f32(24, low=0.01, high=0.05), i32(2, 3, low=0, high=1)
    ).storing(1, 4),
]
ATTENTION[-1] = replace(ATTENTION[-1], attributes={"num_heads": 2})
KEPT = np.array([[[1, 0, 1, 0, 0], [0, 0, 0, 0, 2], [1, 1, 0, 1, 1]]] * 2, np.int32)
Q, K, V = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 12)
ATTENTION += [
    ms("MultiHeadAttention", Q, K, V, num_heads=2),
    ms("MultiHeadAttention", Q, K, V, f32(28), num_heads=2, scale=0.2),
    ms("MultiHeadAttention", Q, K, V, None, ints(5, 2, dtype=np.int32), num_heads=2),
    ms("MultiHeadAttention", Q, K, V, None, i32(2, 5, low=0, high=1), num_heads=2, mask_filter_value=-3.0),
    ms("MultiHeadAttention", Q, K, V, None, KEPT, f32(1, 2, 3, 5), num_heads=2),
    ms("MultiHeadAttention", Q, f32(2, 3, 8), f32(2, 3, 8), num_heads=2, unidirectional=1).named(3),
    ms("MultiHeadAttention", Q, f32(2, 2, 5, 4), f32(2, 2, 5, 4), num_heads=2),
    ms(
        "MultiHeadAttention",
        *(Q, f32(2, 3, 8), f32(2, 3, 8), f32(24), None, None, f32(2, 2, 4, 4), f32(2, 2, 4, 4)),
        num_heads=2,
    ).named(3),
]
COS, SIN = f32(9, 2, low=-1, high=1), f32(9, 2, low=-1, high=1)
CACHES = (f32(2, 2, 4, 16), f32(2, 2, 4, 16))
ANGLES = (f32(9, 8, low=-1, high=1), f32(9, 8, low=-1, high=1))
GROUPS = {"num_heads": 4, "kv_num_heads": 2}


EACH = ints(4, 2, dtype=np.int32)


def count(total: int) -> np.ndarray:
    return np.array(total, np.int32)


ATTENTION += [
    ms("RotaryEmbedding", f32(2, 3, 8), ints(4), COS, SIN),
    ms("RotaryEmbedding", f32(2, 3, 8), ints(0, 1, 2, 5, 3, 4).reshape(2, 3), COS, SIN, interleaved=1),
    ms("RotaryEmbedding", f32(2, 2, 3, 4), ints(2), COS, SIN),
    ms(
        "RotaryEmbedding",
        *(f32(2, 3, 12), ints(0, 1, 2, 5, 3, 4).reshape(2, 3), COS, SIN),
        rotary_embedding_dim=4,
        num_heads=2,
    ),
    ms(
        "GroupQueryAttention",
        *(f32(1, 2, 64), f32(1, 2, 32), f32(1, 2, 32), f32(1, 2, 4, 16), f32(1, 2, 4, 16)),
        *(ints(5, dtype=np.int32), count(6)),
        **GROUPS,
    ).named(3),
    ms("GroupQueryAttention", f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), *CACHES, EACH, count(5), **GROUPS)
    .named(3)
    .up_to(3),
    ms(
        "GroupQueryAttention",
        *(f32(2, 1, 128), None, None, *CACHES, EACH, count(5), *ANGLES),
        **GROUPS,
        do_rotary=1,
        rotary_interleaved=1,
        scale=0.4,
    )
    .named(3)
    .up_to(3),
    ms(
        "GroupQueryAttention",
        *(f32(2, 3, 64), f32(2, 3, 32), f32(2, 3, 32), None, None, ints(2, 2, dtype=np.int32), count(3)),
        *ANGLES,
        **GROUPS,
        do_rotary=1,
        local_window_size=2,
        softcap=2.0,
    ).named(3),
]

U, S, Z = u8(2, 3, 4, low=0, high=255), scale(0.02), zero(120)
QUANTISED = [
    ms("QuantizeLinear", f32(2, 3), S, np.array(30000, np.uint16)),
    ms("QuantizeLinear", f32(2, 3), f32(3, low=0.1, high=1), ints(1, 2, 3, dtype=np.int8), axis=1),
    ms("DequantizeLinear", i8(2, 3), S),
    ms("DequantizeLinear", np.array([[1, -30000]], np.int16), S, np.array(5, np.int16)),
    ms("QLinearAdd", U, S, Z, u8(3, 4, low=0, high=255), scale(0.03), zero(3), scale(0.05), zero(128)),
    ms("QLinearAdd", i8(2, 3), S, zero(0, np.int8), i8(3), scale(0.03), zero(3, np.int8), scale(0.05)),
    ms("QLinearMul", U, S, Z, u8(3, 4, low=0, high=255), scale(0.03), zero(3), scale(0.2), zero(128)),
    ms("QLinearSigmoid", U, S, Z, scale(1 / 256), zero(0)),
    ms("QLinearSigmoid", i8(2, 3), scale(0.4), zero(1, np.int8), scale(1 / 256), zero(-128, np.int8)),
    ms("QLinearLeakyRelu", U, S, Z, S, Z, alpha=0.3).storing(1, 2, 3, 4),
    ms("QLinearSoftmax", U, S, Z, scale(1 / 256), zero(0), axis=-1, opset=13).storing(1, 2, 3, 4),
    ms("QLinearSoftmax", U, S, Z, scale(1 / 256), zero(0), axis=1, opset=12).storing(1, 2, 3, 4),
    ms("QLinearConcat", scale(0.05), Z, U, S, Z, U, scale(0.07), zero(9), axis=-1).storing(0, 1, 3, 4, 6, 7),
    ms("QLinearWhere", bools(2, 3, 4), U, S, Z, U, scale(0.05), zero(3), scale(0.03), zero(100)).storing(
        2, 3, 5, 6, 7, 8
    ),
    ms("QLinearGlobalAveragePool", u8(2, 3, 4, 5, low=0, high=255), S, Z, scale(0.01), zero(110)),
    ms("QLinearGlobalAveragePool", u8(2, 4, 5, 3, low=0, high=255), S, Z, scale(0.01), zero(110), channels_last=1),
    ms("QLinearAveragePool", u8(1, 2, 5, 5, low=0, high=255), S, Z, S, Z, kernel_shape=[2, 2], strides=[2, 2]),
    ms(
        "QLinearAveragePool",
        *(u8(1, 5, 5, 2, low=0, high=255), S, Z, S, Z),
        kernel_shape=[3, 3],
        pads=[1, 1, 1, 1],
        count_include_pad=1,
        channels_last=1,
    ),
    ms(
        "QLinearConv",
        *(u8(1, 5, 5, 2), S, zero(4), i8(3, 2, 3, 3), S, zero(0, np.int8), scale(0.01), zero(100), i32(3)),
        channels_last=1,
        pads=[1, 1, 1, 1],
    ).storing(1, 2, 3, 4, 5, 6, 7),
    ms("QGemm", u8(2, 3), S, zero(3), i8(3, 4), S, zero(1, np.int8), i32(4)),
    ms("QGemm", u8(2, 3), S, zero(3), u8(4, 3), S, zero(1), i32(4), scale(0.001), zero(100), transB=1, alpha=2.0),
    ms("QGemm", i8(2, 3), S, zero(3, np.int8), i8(3, 4), f32(4, low=0.01, high=0.1), i8(4)).storing(3, 4, 5),
    ms("DynamicQuantizeMatMul", f32(2, 3, 4), i8(4, 5), scale(0.1), zero(1, np.int8), f32(5)),
    ms("DynamicQuantizeMatMul", f32(2, 3, 4), u8(4, 5), f32(5, low=0.1, high=0.2), u8(5)).storing(1, 2, 3),
    ms("MatMulIntegerToFloat", u8(2, 3, 4), i8(4, 5), scale(0.1), scale(0.2), zero(3), zero(1, np.int8), f32(5)),
    ms("MatMulIntegerToFloat", u8(2, 4), u8(4, 5), scale(0.1), f32(5, low=0.1, high=0.2)),
]
BYTES = u8(5, 2, 8, low=0, high=255)
ROWS = i32(2, 3, low=0, high=4)
BLOCKS = [
    ms("MatMulNBits", f32(2, 32), BYTES, f32(10), K=32, N=5, block_size=16).storing(1, 2),
    ms("MatMulNBits", f32(2, 3, 27), BYTES, f32(10), u8(5, low=0, high=255), K=27, N=5, block_size=16).storing(1, 2, 3),
    ms("MatMulNBits", f32(2, 27), BYTES, f32(10), f32(10), None, f32(5), K=27, N=5, block_size=16).storing(1, 2, 3),
    ms(
        "MatMulNBits", f32(2, 32), u8(5, 2, 16, low=0, high=255), f32(5, 2), u8(5, 2), K=32, N=5, block_size=16, bits=8
    ).storing(1, 2, 3),
    ms("GatherBlockQuantized", u8(5, 16, low=0, high=255), ROWS, f32(5, 2), block_size=16).storing(0, 2),
    ms(
        "GatherBlockQuantized",
        *(u8(5, 24, low=0, high=255), ROWS, f32(5, 3), u8(5, 2, low=0, high=255)),
        block_size=16,
        bits=4,
        quantize_axis=1,
        gather_axis=0,
    ).storing(0, 2, 3),
]
BLOCKS += [
    ms("MatMulBnb4", f32(2, 32), u8(5 * 16, low=0, high=255), f32(10), K=32, N=5, block_size=16, quant_type=kind)
    for kind in (0, 1)
]
LSTM = [f32(4, 2, 3), i8(1, 3, 20), i8(1, 5, 20), f32(1, 40), None, None, None, None]
SCALES = [f32(1, low=0.01, high=0.02), i8(1, low=0, high=0), f32(1, low=0.02, high=0.03), i8(1, low=0, high=0)]
BOTH = [f32(4, 2, 3), u8(2, 3, 20), u8(2, 5, 20), None, None, f32(2, 2, 5), f32(2, 2, 5), None]
SAME = np.full((2, 20), 7, np.uint8)
EACH_GATE = [f32(2, 20, low=0.01, high=0.1), SAME, f32(2, 20, low=0.01, high=0.1), SAME]
RECURRENT = [
    ms("DynamicQuantizeLSTM", *LSTM, *SCALES, hidden_size=5).storing(1, 2, 8, 9, 10, 11).named(3),
    ms("DynamicQuantizeLSTM", *LSTM, *SCALES, hidden_size=5, direction="reverse").storing(1, 2, 8, 9, 10, 11).named(3),
    ms("DynamicQuantizeLSTM", *BOTH, *EACH_GATE, hidden_size=5, direction="bidirectional")
    .storing(1, 2, 8, 9, 10, 11)
    .named(3),
]
OLDER = [
    ms("Trilu", f32(3, 4), ints(1).reshape(()), upper=0),
    ms("Range", ints(2).reshape(()), ints(9).reshape(())),
    ms("Range", scale(1), scale(3), scale(0.5)),
    ms("GatherND", f32(2, 3), ints(1, 0, dtype=np.int32).reshape(1, 2)),
    ms("ExpandDims", f32(2, 3), ints(1, dtype=np.int32).reshape(())),
    ms("Pad", f32(2, 3), ints(1, 0, 0, 2), scale(1.5).reshape(1)),
    ms("Pad", f32(2, 3), ints(1, 0, 1, 2), mode="reflect"),
    ms("GridSample", f32(1, 2, 4, 4), f32(1, 3, 3, 2, low=-1, high=1), mode="bilinear", padding_mode="border"),
    ms("CDist", f32(3, 4), f32(5, 4), metric="euclidean"),
    ms("CDist", f32(3, 4), f32(5, 4)),
]
CONTRIBUTED = [*FUSED, *NORMS, *ATTENTION, *QUANTISED, *BLOCKS, *RECURRENT, *OLDER]
