from __future__ import annotations

import numpy as np

from tests.op_cases.case import Case, f32, floats, i32, ints, strings
from tests.op_cases.shape import MANY, ODD, WORDS

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

CASES = [
    *(Case("Transpose", make(2, 3, 4)) for make in MANY),
    *(Case("Transpose", f32(2, 3, 4), perm=perm) for perm in ([1, 0, 2], [0, 2, 1], [2, 0, 1], [0, 1, 2])),
    *(Case("Transpose", x) for x in (f32(), f32(3), f32(0, 2), *ODD)),
    *(Case("Tile", make(2, 3), ints(2, 1)) for make in MANY),
    *(Case("Tile", f32(2, 3), ints(*repeats)) for repeats in ((1, 1), (1, 3), (0, 2))),
    Case("Tile", f32(), ints()),
    Case("Tile", f32(0, 2), ints(2, 2)),
    Case("Tile", WORDS, ints(1, 2)),
    *(Case("Concat", make(2, 3), make(2, 1), axis=1) for make in MANY),
    *(Case("Concat", f32(2, 3), f32(1, 3), f32(4, 3), axis=axis) for axis in (0, -2)),
    Case("Concat", f32(2, 3), axis=0),
    Case("Concat", f32(0, 3), f32(2, 3), axis=0),
    *(Case("Concat", x, x, axis=1) for x in ODD),
    *(Case("Split", make(6, 2), num_outputs=2).outputs(2) for make in MANY),
    Case("Split", f32(7, 2), num_outputs=3).outputs(3),
    Case("Split", f32(2, 6), ints(1, 2, 3), axis=1).outputs(3),
    Case("Split", f32(2, 6), ints(4, 2), axis=-1).outputs(2),
    Case("Split", f32(6), ints(0, 6)).outputs(2),
    Case("Split", f32(0, 2), ints(0, 0)).outputs(2),
    Case("Split", WORDS, num_outputs=2).outputs(2),
    *(Case("Slice", make(4, 5), ints(1, 0), ints(3, 4)) for make in MANY),
    *(Case("Slice", x, ints(1), ints(3), ints(1)) for x in ODD),
    *(
        Case("Slice", f32(4, 5), ints(start), ints(end), ints(axis), ints(step))
        for start, end, axis, step in (
            (0, 4, 0, 2),
            (-3, -1, 1, 1),
            (3, 0, 0, -1),
            (-1, INT_MIN, 1, -1),
            (100, -100, 1, -2),
            (1, INT_MAX, -1, 3),
            (3, 1, 0, 1),
            (-100, 100, 0, 1),
            (4, 0, 1, -3),
        )
    ),
    Case("Slice", f32(4, 5, 6), ints(1, 5), ints(3, 0), ints(-3, 2), ints(1, -2)),
    Case("Slice", f32(4, 5), ints(1, dtype=np.int32), ints(3, dtype=np.int32)),
    Case("Slice", f32(0, 5), ints(0, 1), ints(2, 3)),
    *(Case("Pad", make(2, 3), ints(1, 0, 2, 1)) for make in MANY),
    *(Case("Pad", f32(4, 5), ints(1, 2, 3, 1), mode=mode) for mode in ("reflect", "edge", "wrap")),
    Case("Pad", f32(4, 5), ints(1, 2), None, ints(-1), mode="reflect"),
    Case("Pad", f32(2, 3), ints(1, 1), np.array(7, np.float32), ints(0)),
    Case("Pad", f32(2, 3), ints(1, 1, 2, 2), np.array(1.5, np.float32), ints(1, 0)),
    Case("Pad", i32(4, 5), ints(-1, 0, -1, 0)),
    Case("Pad", f32(4, 5), ints(-1, 2, 1, -2), np.array(9, np.float32)),
    Case("Pad", f32(4), ints(-1, -3)),
    Case("Pad", f32(4), ints(0, 0), mode="edge"),
    Case("Pad", floats(3).reshape(()), ints()).giving(floats(3).reshape(())),
    Case("Pad", f32(0, 2), ints(1, 0, 1, 0)),
    Case("Pad", f32(3), ints(1, 1), np.array(np.nan, np.float32)),
    *(Case("CenterCropPad", f32(5, 4), ints(*shape)) for shape in ((3, 6), (4, 5), (8, 1), (5, 4), (2, 7))),
    Case("CenterCropPad", f32(5, 4, 3), ints(2, 6), axes=[0, -1]),
    Case("CenterCropPad", f32(5, 4, 3), ints(6), axes=[1]),
    *(Case("CenterCropPad", make(2, 3), ints(3, 2)) for make in MANY),
    Case("CenterCropPad", f32(0, 2), ints(2, 1)),
    *(Case(op, make(1, 8, 4, 6), blocksize=2) for op in ("DepthToSpace", "SpaceToDepth") for make in MANY),
    *(
        Case(op, f32(2, 8, 4, 6), blocksize=2, mode=mode)
        for op in ("DepthToSpace", "SpaceToDepth")
        for mode in ("DCR", "CRD")
    ),
    *(Case(op, f32(0, 4, 2, 2), blocksize=2) for op in ("DepthToSpace", "SpaceToDepth")),
    *(Case("ReverseSequence", make(4, 3), ints(1, 4, 2)) for make in MANY),
    Case("ReverseSequence", f32(3, 4, 2), ints(1, 4, 2), batch_axis=0, time_axis=1),
    Case("ReverseSequence", f32(4, 0), ints()),
    Case("ReverseSequence", f32(4, 2), ints(0, 4)),
    Case("ReverseSequence", strings([["a", "b"], ["c", "d"]]), ints(2, 1)),
]
