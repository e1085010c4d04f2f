"""Indices of int32 are widened where operators take int64 only."""

import onnx
import torch

import entrepot as ep


class Put(torch.nn.Module):
    def forward(self, x, at, new):
        return x.index_put((at,), new, accumulate=True)


def test_a_model_with_int32_indices_passes_the_full_checker():
    sample = (torch.zeros(5, 2), torch.tensor([1, 3, 1], dtype=torch.int32), torch.ones(3, 2))
    model = ep.export(Put(), sample)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    assert [node.op_type for node in model.ir.graph].count("Cast") == 1
