"""Gradients of cells and layers of recurrent networks."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, normal, share

add(
    "GRUBlockCellGrad", tolerance=1e-5,
    x=normal(2, 3), h_prev=normal(2, 4), w_ru=normal(7, 8), w_c=normal(7, 4), b_ru=normal(8), b_c=normal(4),
    r=share(2, 4), u=share(2, 4), c=share(2, 4), d_h=normal(2, 4),
)  # fmt: skip
for peephole in (False, True):
    weights = {
        "w": normal(7, 16), "wci": normal(4), "wcf": normal(4), "wco": normal(4), "b": normal(16),
    }  # fmt: skip
    add(
        "LSTMBlockCellGrad", {"use_peephole": peephole}, tolerance=1e-5,
        x=normal(2, 3), cs_prev=normal(2, 4), h_prev=normal(2, 4), **weights,
        **{name: share(2, 4) for name in ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad")},
    )  # fmt: skip
    for op in ("BlockLSTMGrad", "BlockLSTMGradV2"):
        add(
            op, {"use_peephole": peephole}, tolerance=1e-4,
            seq_len_max=np.array(5, np.int64), x=normal(5, 2, 3), cs_prev=normal(2, 4), h_prev=normal(2, 4), **weights,
            **{name: share(5, 2, 4) for name in ("i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad")},
        )  # fmt: skip
