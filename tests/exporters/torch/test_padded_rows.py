"""Rows of lengths of their own, padded to the longest of them in every run."""

from __future__ import annotations

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import entrepot as ep


class Padded(nn.Module):
    def forward(self, a, b, c):
        rows = pad_sequence([a, b, c], batch_first=True)
        return rows, rows.sum(0), pad_sequence([a, c], padding_value=-1.0), pad_sequence([b, c], padding_side="left")


def _rows(*lengths):
    rng = np.random.default_rng(sum(lengths))
    return tuple(torch.from_numpy(rng.standard_normal((length, 3), np.float32)) for length in lengths)


def test_any_row_may_be_the_longest(tmp_path):
    ep.export(Padded(), _rows(4, 7, 2), progress=False).save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for lengths in ((4, 7, 2), (9, 3, 5), (2, 2, 11)):
        rows = _rows(*lengths)
        results = session.run(None, dict(zip("abc", (row.numpy() for row in rows), strict=True)))
        for expected, result in zip(Padded()(*rows), results, strict=True):
            np.testing.assert_allclose(result, expected.numpy(), rtol=1e-6, strict=True)
