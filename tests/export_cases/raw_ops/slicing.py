"""Parts of tensors, and tensors of parts."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

x = normal(3, 4, 5)
D = dict
for b, e, s, m in [
    ([0, 1], [2, 3], [1, 1], {}),
    ([-2, 0], [-1, 3], [1, 2], {}),
    ([2, 4], [0, 0], [-1, -2], {}),
    ([0, 1], [0, 3], [1, 1], D(shrink_axis_mask=2)),
    ([-1, 1], [0, 3], [1, 1], D(shrink_axis_mask=1)),
    ([0, 0, 1], [0, 0, 3], [1, 1, 1], D(ellipsis_mask=1, new_axis_mask=2)),
    ([0, 0, 0], [0, 0, 0], [-1, 1, -2], D(begin_mask=7, end_mask=7)),
    ([1, 0, 2], [3, 0, 4], [1, 1, 1], D(ellipsis_mask=2)),
    ([5, 9], [100, -100], [1, -1], {}),
    ([0, 0], [0, 2], [1, 1], D(new_axis_mask=1, end_mask=0)),
    ([0, 0, -1], [0, 0, 0], [1, 1, 1], D(ellipsis_mask=1, shrink_axis_mask=4, new_axis_mask=2)),
]:
    for con in ("begin end strides", "strides"):
        add("StridedSlice", m, con, input=x, begin=ints(b), end=ints(e), strides=ints(s))
add(
    "TensorStridedSliceUpdate",
    {},
    "strides",
    input=x,
    begin=ints(0, 1),
    end=ints(2, 3),
    strides=ints(1, 1),
    value=normal(2, 2, 5),
)
add("Slice", known="begin size", input=x, begin=ints(0, 1, 2), size=ints(2, -1, 1))
add("Slice", input=x, begin=ints(0, 1, 2), size=ints(2, -1, 1))
add("Split", {"num_split": 2}, "axis", axis=np.int32(1), value=x)
add("Split", {"num_split": 1}, "axis", axis=np.int32(1), value=x)
add("SplitV", {"num_split": 3}, "axis size_splits", value=x, size_splits=ints(1, -1, 2), axis=np.int32(2))
add("SplitV", {"num_split": 2}, "axis", value=x, size_splits=ints(1, 4), axis=np.int32(2))
add("Pack", {"axis": -1}, values=[x, x + 1])
add("Pack", values=[np.int32(1), np.int32(2)])
add("Unpack", {"num": 4, "axis": 1}, value=x)
add("Unpack", {"num": 1}, value=normal(1, 2))
add("ConcatV2", known="axis", values=[x, x], axis=np.int32(-1))
add("Concat", known="concat_dim", concat_dim=np.int32(1), values=[x, x])
add("ConcatOffset", known="concat_dim", concat_dim=np.int32(1), shape=[ints(2, 3), ints(2, 5)])
add("ReverseV2", known="axis", tensor=x, axis=ints(0, -1))
add("Reverse", known="dims", tensor=x, dims=np.array([True, False, True]))
add("ReverseSequence", {"seq_dim": 1, "batch_dim": 0}, input=x, seq_lengths=ints(2, 4, 1))
add("ReverseSequence", {"seq_dim": 2, "batch_dim": 1}, input=x, seq_lengths=ints(2, 4, 1, 5))
add("ReverseSequence", {"seq_dim": 0, "batch_dim": 2}, input=x.astype("int32"), seq_lengths=ints(1, 2, 3, 1, 2))
add("Roll", known="axis", input=x, shift=ints(1, -7), axis=ints(0, 2))
add("Roll", known="axis shift", input=x, shift=np.int32(2), axis=np.int32(1))
