"""Sequences and optionals."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.op_cases.case import Case, Tensors, bools, f16, f32, floats, i64, ints

PARTS = [f32(2, 3), f32(1, 3), f32(2, 3)]
ALIKE = [f32(2, 3), f32(2, 3)]
EMPTY = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])

CASES = [
    Case("SequenceEmpty").giving([]),
    Case("SequenceEmpty", dtype=7).giving([]),
    Case("SequenceConstruct", f32(2, 3), f32(1)),
    Case("SequenceConstruct", i64(2)),
    Case("SequenceConstruct", bools(2), bools(0)),
    Case("SequenceAt", PARTS, np.array(1)),
    Case("SequenceAt", PARTS, np.array(-3)),
    Case("SequenceAt", [f16(2), f16(3)], np.array(-1, np.int32)),
    Case("SequenceInsert", PARTS, f32(4)),
    Case("SequenceInsert", PARTS, f32(4), np.array(0)),
    Case("SequenceInsert", PARTS, f32(4), np.array(-1)),
    Case("SequenceInsert", PARTS, f32(4), np.array(3)).held_to("onnxruntime", why="reference inserts at 0 for n"),
    Case("SequenceInsert", Tensors(np.float32), f32(4)),
    Case("SequenceErase", PARTS),
    Case("SequenceErase", PARTS, np.array(0)),
    Case("SequenceErase", PARTS, np.array(-2)),
    Case("SequenceLength", PARTS),
    Case("SequenceLength", Tensors(np.int64)),
    Case("SplitToSequence", f32(5, 2)),
    Case("SplitToSequence", f32(5, 2), axis=1),
    Case("SplitToSequence", f32(5, 2), axis=-1, keepdims=0),
    Case("SplitToSequence", f32(5, 2), np.array(2)),
    Case("SplitToSequence", f32(4, 2), np.array(2), keepdims=0),
    Case("SplitToSequence", i64(5, 2), ints(1, 0, 4)),
    Case("SplitToSequence", f32(0, 2)),
    Case("ConcatFromSequence", PARTS, axis=0),
    Case("ConcatFromSequence", ALIKE, axis=-1),
    Case("ConcatFromSequence", ALIKE, axis=0, new_axis=1),
    Case("ConcatFromSequence", ALIKE, axis=-1, new_axis=1),
    Case("Optional", floats(1, 2)).giving(floats(1, 2)),
    Case("Optional", [floats(1), floats(2, 3)]).giving([floats(1), floats(2, 3)]),
    Case("Optional", type=EMPTY).giving(None),
    Case("OptionalHasElement", f32(2)).giving(np.array(True)),
    Case("OptionalHasElement", None).giving(np.array(False)),
    Case("OptionalGetElement", f32(2, 2)),
    Case("OptionalGetElement", ALIKE),
]
