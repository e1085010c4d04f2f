from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_cases.case import Case, bf16, f16, f32, f64, floats, i32

SOFT = ("Softmax", "LogSoftmax", "Hardmax")
INFINITE = floats(np.inf, 1, -np.inf, np.nan, 1, 2, -np.inf, -np.inf, -np.inf).reshape(3, 3)


def positive(*shape: int) -> object:
    return f32(*shape, low=0.1, high=2)


def mixed_rms_normalization() -> Case:
    """The result has the scale's type; onnx.reference gives it the input's."""
    case = Case("RMSNormalization", f16(2, 8), f32(8))
    x, scale = (value.astype(np.float64) for value in case.inputs)
    y = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * scale
    return case.giving(y.astype(np.float32))


def narrow_mean_variance_normalization() -> Case:
    """No oracle runs it in bfloat16."""
    case = Case("MeanVarianceNormalization", bf16(2, 3, 4, 5))
    x = case.inputs[0].astype(np.float64)
    y = (x - x.mean(axis=(0, 2, 3), keepdims=True)) / (x.std(axis=(0, 2, 3), keepdims=True) + 1e-9)
    return case.giving(y.astype(case.inputs[0].dtype))


def neighbours(make: Any) -> Case:
    """onnxruntime has no kernel for other floats, and onnx.reference leaves out the last neighbour."""
    case = Case("LRN", make(2, 5, 3, 3), size=3)
    x = case.inputs[0].astype(np.float64)
    square = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = square[:, :-2] + square[:, 1:-1] + square[:, 2:]
    return case.giving((x / (1 + 1e-4 / 3 * total) ** 0.75).astype(case.inputs[0].dtype))


BATCH = [f32(3), f32(3), f32(3), positive(3)]

CASES = [
    *(Case(op, make(2, 3, 4)) for op in SOFT for make in (f16, bf16)),
    *(Case(op, make(2, 3, 4)) for op in SOFT for make in (f32, f64)),
    *(Case(op, f32(2, 3, 4), axis=axis) for op in SOFT for axis in (0, 1, -2)),
    *(
        Case(op, f32(2, 3, low=500, high=1000)).held_to("onnxruntime", why="onnx.reference takes the logarithm of zero")
        for op in SOFT
    ),
    *(Case(op, f32(0, 3)).giving(np.zeros((0, 3), np.float32)) for op in SOFT),
    *(Case(op, f32(3, 0)).giving(np.zeros((3, 0), np.float32)) for op in SOFT),
    Case("Softmax", INFINITE).giving(np.full((3, 3), np.nan, np.float32)),
    Case("Hardmax", floats(1, 3, 3, 3, 0, 2).reshape(2, 3)),
    Case("BatchNormalization", f32(2, 3, 4, 5), *BATCH),
    Case("BatchNormalization", f32(2, 3), *BATCH, epsilon=0.1),
    Case("BatchNormalization", f64(2, 3, 4), f64(3), f64(3), f64(3), f64(3, low=0.1, high=2), epsilon=0.125),
    Case("BatchNormalization", f32(2, 3, 4, 5), *BATCH, training_mode=1, momentum=0.7).outputs(3),
    *(
        Case("BatchNormalization", make(2, 3, 4), make(3), make(3), make(3), make(3, low=0.1, high=2))
        for make in (f16, bf16)
    ),
    Case("BatchNormalization", f32(0, 3, 4), *BATCH).giving(np.zeros((0, 3, 4), np.float32)),
    Case("InstanceNormalization", f32(2, 3, 4, 5), f32(3), f32(3)),
    Case("InstanceNormalization", f64(2, 3, 4), f64(3), f64(3), epsilon=0.125),
    *(Case("InstanceNormalization", make(2, 3, 8), make(3), make(3)) for make in (f16, bf16)),
    Case("GroupNormalization", f32(2, 4, 3, 3), f32(4), f32(4), num_groups=2),
    Case("GroupNormalization", f64(2, 4, 3), f64(4), f64(4), num_groups=4, epsilon=0.1),
    Case("GroupNormalization", f32(2, 4, 3), f32(4), f32(4), num_groups=1, stash_type=1),
    *(Case("GroupNormalization", make(2, 4, 8), make(4), make(4), num_groups=2) for make in (f16, bf16)),
    Case("LayerNormalization", f32(2, 3, 4), f32(4)),
    Case("LayerNormalization", f32(2, 3, 4), f32(4), f32(4)).outputs(3),
    Case("LayerNormalization", f32(2, 3, 4), f32(3, 4), f32(3, 4), axis=1, epsilon=0.1).outputs(3),
    Case("LayerNormalization", f32(2, 3, 4), f32(2, 3, 4), axis=0),
    Case("LayerNormalization", f32(2, 3, 4), f32(4), f32(4), axis=-2),
    Case("LayerNormalization", f64(2, 3), f64(3), f64(3)),
    *(Case("LayerNormalization", make(2, 8), make(8), make(8)) for make in (f16, bf16)),
    Case("LayerNormalization", f32(2, 8), f32(8), stash_type=16),
    Case("LayerNormalization", f32(0, 4), f32(4)).giving(np.zeros((0, 4), np.float32)),
    Case("LayerNormalization", f32(3, 64, low=1000, high=1001), f32(64)),
    Case("RMSNormalization", f32(2, 3, 4), f32(4)),
    Case("RMSNormalization", f32(2, 3, 4), f32(3, 4), axis=1, epsilon=0.1),
    Case("RMSNormalization", f64(2, 3), f64(3)),
    *(Case("RMSNormalization", make(2, 8), make(8)) for make in (f16, bf16)),
    mixed_rms_normalization(),
    Case("RMSNormalization", f32(2, 8), f32(8), stash_type=1),
    *(Case("LpNormalization", make(2, 3, 4)) for make in (f32, f64)),
    *(Case("LpNormalization", make(2, 3, 4)) for make in (f16, bf16)),
    Case("LpNormalization", f32(2, 3, 4), axis=1, p=1).held_to("onnxruntime", why="onnx.reference forgets the signs"),
    Case("LpNormalization", np.zeros((2, 3), np.float32)).giving(np.zeros((2, 3), np.float32)),
    Case("MeanVarianceNormalization", f32(2, 3, 4, 5)),
    Case("MeanVarianceNormalization", f32(2, 3, 4), axes=[1, 2]),
    Case("MeanVarianceNormalization", f16(2, 3, 4, 5)),
    narrow_mean_variance_normalization(),
    *(
        Case("LRN", f32(2, 5, 3, 3), **given).held_to("onnxruntime", why="onnx.reference leaves out the last neighbour")
        for given in (
            {"size": 3},
            {"size": 5, "alpha": 0.1, "beta": 0.5, "bias": 2.0},
            {"size": 7, "alpha": 0.5},
            {"size": 13},
        )
    ),
    *(neighbours(make) for make in (f64, f16, bf16)),
    Case("Dropout", f32(2, 3)).outputs(2),
    Case("Dropout", f32(2, 3), np.array(0.9, np.float32), np.array(False)).outputs(2),
    Case("Dropout", f32(2, 3), np.array(0.0, np.float32), np.array(True)).outputs(2),
    Case("Dropout", f32(2, 3), np.array(0.5, np.float32), np.array(True), seed=7).held_to(
        "reference", why="onnxruntime draws from another generator"
    ),
    *(Case("Dropout", make(2, 3)) for make in (f64, f16, bf16)),
    *(
        Case("NegativeLogLikelihoodLoss", f32(3, 4), labels, *weight, reduction=how)
        for how in ("none", "sum", "mean")
        for weight in ((), (f32(4, low=0.1),))
        for labels in (i32(3, low=0, high=3),)
    ),
    Case("NegativeLogLikelihoodLoss", f32(2, 4, 3), np.array([[0, 1, 2], [3, -7, 0]]), ignore_index=-7),
    Case("NegativeLogLikelihoodLoss", f32(2, 4, 3), np.array([[0, 1, 2], [3, 2, 0]]), f32(4, low=0.1), ignore_index=2),
    *(
        Case("SoftmaxCrossEntropyLoss", f32(3, 4), labels, *weight, reduction=how).outputs(2)
        for how in ("none", "sum", "mean")
        for weight in ((), (f32(4, low=0.1),))
        for labels in (i32(3, low=0, high=3),)
    ),
    Case("SoftmaxCrossEntropyLoss", f32(2, 4, 3), np.array([[0, 1, 2], [3, -7, 0]]), ignore_index=-7),
    *(
        Case(op, make(3, 4), np.array([0, 3, 1]))
        for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
        for make in (f64, f16, bf16)
    ),
]
