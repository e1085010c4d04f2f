from __future__ import annotations

import numpy as np

from tests.op_cases.case import NUMBERS, Case, bf16, bools, f16, f32, f64, floats, i8, i32, i64, ints, u8
from tests.op_cases.shape import MANY, ODD, WORDS

REDUCTIONS = ("none", "add", "mul", "max", "min")
NO_DUPLICATES = ints(0, 2, 1, 1, 0, 2).reshape(2, 3)
DUPLICATES = ints(0, 0, 1, 1, 1, -1).reshape(2, 3)

CASES = [
    *(Case("Gather", make(3, 4), ints(0, -1, 2, 0)) for make in MANY),
    *(Case("Gather", x, ints(1, 0)) for x in ODD[:-1]),
    Case("Gather", WORDS, ints(1, 0)).held_to("reference", why="onnxruntime gives only the first string of a slice"),
    *(Case("Gather", f32(3, 4, 5), i64(2, 3, low=-3, high=2), axis=axis) for axis in (0, 1, -1)),
    Case("Gather", f32(3, 4), np.array(1)),
    Case("Gather", f32(3), np.array(-1)),
    Case("Gather", f32(3, 4), i32(2, low=0, high=2)),
    Case("Gather", f32(3, 4), ints()),
    Case("Gather", f32(0, 4), ints(1), axis=1),
    *(Case("GatherElements", make(3, 3), NO_DUPLICATES) for make in MANY),
    *(Case("GatherElements", f32(3, 4), i64(2, 3, low=-3, high=2), axis=axis) for axis in (0, 1, -1)),
    Case("GatherElements", f32(3, 4), i32(3, 4, low=0, high=2)),
    Case("GatherElements", f32(4), ints(2, 0)),
    Case("GatherElements", f32(3, 0), np.zeros((0, 0), np.int64)),
    Case("GatherElements", WORDS, ints(1, 0, 1).reshape(1, 3)),
    *(Case("GatherND", make(3, 4), ints(0, 1, 2, -1).reshape(2, 2)) for make in MANY),
    Case("GatherND", f32(3, 4), ints(1, 0).reshape(2, 1)),
    Case("GatherND", f32(2, 3, 4), ints(1, 0).reshape(2, 1), batch_dims=1),
    Case("GatherND", f32(2, 2, 4), ints(1, 0, 3, 2).reshape(2, 2, 1), batch_dims=2),
    Case("GatherND", f32(2, 3, 4, 5), i64(2, 3, 2, low=0, high=2), batch_dims=1),
    Case("GatherND", f32(3), ints(1)),
    Case("GatherND", f32(3, 4), np.zeros((0, 2), np.int64)),
    Case("GatherND", WORDS, ints(0, 1).reshape(1, 2)),
    *(Case("ScatterElements", make(3, 3), NO_DUPLICATES, make(2, 3)) for make in MANY),
    *(
        Case("ScatterElements", f32(3, 4), DUPLICATES, f32(2, 3), axis=axis, reduction=r)
        for axis in (0, 1, -1)
        for r in REDUCTIONS[1:]
    ),
    *(
        Case("ScatterElements", make(3, 3), DUPLICATES, make(2, 3), reduction=r)
        for make in (f64, f16, bf16, i8, i32, i64)
        for r in REDUCTIONS[1:]
    ),
    Case("ScatterElements", f32(4), ints(1, -1), f32(2)),
    Case("ScatterElements", f32(3, 2), np.zeros((0, 2), np.int64), f32(0, 2)),
    Case("ScatterElements", f32(4), ints(1, 1, 1), floats(1, 2, 3)),
    Case("ScatterElements", floats(1, 2), ints(0), floats(np.nan), reduction="max").giving(floats(np.nan, 2)),
    *(Case("ScatterND", make(4, 2), ints(1, 3).reshape(2, 1), make(2, 2)) for make in MANY),
    *(
        Case("ScatterND", make(4), ints(1, 3, 1).reshape(3, 1), make(3), reduction=r)
        for make in (f32, f64, f16, bf16, i32, i64)
        for r in REDUCTIONS[1:]
    ),
    Case("ScatterND", f32(2, 3), ints(0, -1, 1, 0).reshape(2, 2), f32(2)),
    Case("ScatterND", f32(2, 3, 4), i64(1, 2, 1, low=0, high=1), f32(1, 2, 3, 4), reduction="add"),
    Case("ScatterND", f32(3), np.zeros((0, 1), np.int64), f32(0)),
    Case("ScatterND", WORDS, ints(0, 1).reshape(1, 2), np.array(["z"], object)),
    *(Case("TensorScatter", make(2, 3, 5, 4), make(2, 3, 2, 4), ints(1, 3)) for make in MANY),
    Case("TensorScatter", f32(2, 3, 5, 4), f32(2, 3, 2, 4)),
    Case("TensorScatter", f32(2, 5, 4), f32(2, 2, 4), ints(4, 3), mode="circular"),
    Case("TensorScatter", f32(2, 5, 4), f32(2, 5, 2), ints(1, 2), axis=-1),
    Case("TensorScatter", f32(2, 5, 4), f32(2, 0, 4), ints(1, 2)),
    *(Case("Compress", make(3, 4), np.array([True, False, True]), axis=0) for make in MANY),
    Case("Compress", f32(3, 4), np.array([False, True, True, False, True])),
    Case("Compress", f32(3, 4), np.array([False, True]), axis=-1),
    Case("Compress", f32(3, 4), np.array([False, False]), axis=1),
    Case("Compress", f32(0, 4), np.array([True]), axis=1),
    *(Case("NonZero", make(3, 4, low=0, high=2)) for make in MANY),
    *(Case("NonZero", f32(*shape)) for shape in ((0,), (2, 0), (2, 3, 4))),
    *(
        Case("NonZero", np.array(x, np.float32)).held_to("reference", why="onnxruntime gives a scalar one coordinate")
        for x in (0, 2)
    ),
    Case("NonZero", floats(np.nan, 0, -0.0, np.inf)),
    *(Case("TopK", make(3, 5), ints(2)).outputs(2) for make in NUMBERS),
    *(Case("TopK", f32(3, 5), ints(2), axis=axis).outputs(2) for axis in (0, 1)),
    *(Case("TopK", f32(3, 5), ints(k), largest=0).outputs(2) for k in (0, 1, 5)),
    *(Case("TopK", f32(2000), ints(k), largest=largest).outputs(2) for k in (1, 7, 2000) for largest in (0, 1)),
    Case("TopK", floats(1, 3, 3, 2, 3), ints(2)).outputs(2),
    Case("TopK", floats(1, 3, 1, 2, 1), ints(2), largest=0).outputs(2),
    Case("TopK", np.repeat(floats(1, 2, 3), 700), ints(5))
    .outputs(2)
    .giving(floats(3, 3, 3, 3, 3), ints(1400, 1401, 1402, 1403, 1404)),
    Case("TopK", floats(1, np.nan, 3, -np.inf, np.inf), ints(3))
    .outputs(2)
    .giving(floats(np.nan, np.inf, 3), ints(1, 4, 2)),
    Case("TopK", ints(3, 2**64 - 1, 0, dtype=np.uint64), ints(2))
    .outputs(2)
    .giving(ints(2**64 - 1, 3, dtype=np.uint64), ints(1, 0)),
    Case("TopK", ints(0, -128, 5, dtype=np.int8), ints(2), largest=0).outputs(2),
    Case("TopK", floats(3, 1, 2), ints(3), sorted=0).outputs(2).giving(floats(3, 2, 1), ints(0, 2, 1)),
    Case("TopK", f32(0, 5), ints(2)).outputs(2),
    *(Case("Unique", make(9, low=0, high=3), sorted=s).outputs(4) for make in (f32, f64, i8, i64) for s in (0, 1)),
    *(Case("Unique", i64(3, 4, low=0, high=2)).outputs(4) for _ in range(1)),
    *(
        Case("Unique", floats(1, 2, 1, 2, 1, 2, 0, 0).reshape(4, 2), axis=axis, sorted=s)
        .outputs(4)
        .held_to("onnxruntime", why="unsorted, onnx.reference takes along the first axis")
        for axis in (0, 1, -1)
        for s in (0, 1)
    ),
    *(Case("Unique", make(6, low=0, high=1)).outputs(4) for make in (f16, bf16, i32, u8, bools)),
    Case("Unique", floats(2, np.nan, 1, np.nan))
    .outputs(4)
    .giving(floats(1, 2, np.nan), ints(2, 0, 1), ints(1, 2, 0, 2), ints(1, 1, 2)),
    Case("Unique", f32()).outputs(4),
    Case("Unique", f32(0)).outputs(4),
    Case("Unique", np.array(["b", "a", "b"], object))
    .outputs(4)
    .giving(np.array(["a", "b"], object), ints(1, 0), ints(1, 0, 1), ints(1, 2)),
]
