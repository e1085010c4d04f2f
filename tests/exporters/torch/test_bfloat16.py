"""Modules in bfloat16, of which onnxruntime has hardly an operator on a processor: their files run there as well."""

import pytest
import torch
from torch import nn

import entrepot as ep


class Steps(nn.Module):
    """A loop over a length, which keeps its results in a sequence of tensors."""

    def forward(self, x):
        state, states = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = torch.tanh(state + x[:, t])
            states.append(state)
        return torch.stack(states, 1)


MODULES = {
    "convolution": (nn.Sequential(nn.Conv1d(5, 4, 3), nn.GELU(), nn.Softmax(1)), ["batch", None, "length"]),
    "attention": (nn.TransformerEncoderLayer(6, 2, 16, batch_first=True), ["batch", "sequence", None]),
    "loop": (Steps(), ["batch", "sequence", "features"]),
}


@pytest.mark.parametrize("name", MODULES)
def test_files_run_in_onnxruntime_and_keep_their_types_and_axes(name):
    module, axes = MODULES[name]
    sample = torch.randn(3, 5, 6).bfloat16()
    model = ep.export(module.bfloat16().eval(), sample)
    assert not model.report.declined
    assert "onnxruntime" in {run.provider for run in model.report.runs}
    assert [str(value.dtype) for value in (*model.inputs, *model.outputs)] == ["bfloat16", "bfloat16"]
    assert [isinstance(axis, str) for axis in model.inputs[0].shape] == [axis is not None for axis in axes]
