"""Cells and layers of recurrent networks."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, normal

add(
    "GRUBlockCell",
    x=normal(2, 3), h_prev=normal(2, 4), w_ru=normal(7, 8), w_c=normal(7, 4), b_ru=normal(8), b_c=normal(4),
)  # fmt: skip
for peephole, clip in itertools.product((False, True), (0.0, 0.5)):
    rest = {
        "cs_prev": normal(2, 4), "h_prev": normal(2, 4), "w": normal(7, 16), "wci": normal(4), "wcf": normal(4),
        "wco": normal(4), "b": normal(16),
    }  # fmt: skip
    add(
        "LSTMBlockCell", {"forget_bias": 0.7, "cell_clip": clip or -1.0, "use_peephole": peephole}, tolerance=1e-5,
        x=normal(2, 3), **rest,
    )  # fmt: skip
    # all steps: TensorFlow leaves gates beyond the longest sequence as it finds them in memory
    steps = {"seq_len_max": np.array(5, np.int64), "x": normal(5, 2, 3)}
    how = {"cell_clip": clip, "use_peephole": peephole}
    add("BlockLSTM", {"forget_bias": 0.7, **how}, tolerance=1e-5, **steps, **rest)
    add("BlockLSTMV2", how, tolerance=1e-5, **steps, **rest)
