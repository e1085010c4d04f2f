"""Sequences put beside one another."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

_INDICES = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [2, 1]], np.int64)
for lengths in ((8, 8, 8), (8, 4, 6)):
    add(
        "CTCLoss", tolerance=1e-4, inputs=normal(8, 3, 5), labels_indices=_INDICES,
        labels_values=ints(1, 1, 2, 0, 3, 1), sequence_length=ints(*lengths),
    )  # fmt: skip
_HYPOTHESIS = np.array([[0, 0], [0, 1], [0, 2], [1, 1], [3, 0], [3, 2]], np.int64)
for normal_form in (True, False):
    for words in (False, True):
        given, wanted = ints(1, 2, 3, 5, 5, 1), ints(2, 3, 4, 5, 7, 1)
        if words:
            given, wanted = (np.array([f"w{each}" for each in part], object) for part in (given, wanted))
        add(
            "EditDistance", {"normalize": normal_form}, hypothesis_indices=_HYPOTHESIS, hypothesis_values=given,
            hypothesis_shape=np.array([4, 3], np.int64), truth_indices=_INDICES, truth_values=wanted,
            truth_shape=np.array([4, 3], np.int64),
        )  # fmt: skip
