"""onnxruntime (1.31) lets a maximum pooling pad with zeros itself, which it takes for smaller than every number."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import parser
from torch import nn

import entrepot as ep


class Pooled(nn.Module):
    """Zeros around what an operation computes, then the largest of each window."""

    def __init__(self, pad, before):
        super().__init__()
        self.pad, self.before = pad, before

    def forward(self, x):
        return nn.functional.max_pool2d(nn.functional.pad(self.before(x), self.pad), 3, 2)


def exported(pad, before, **options):
    module, x = Pooled(pad, before), -torch.rand(2, 3, 6, 7, generator=torch.Generator().manual_seed(3)) - 1
    return ep.export(module, (x,), verify=False, **options), module, x


@pytest.mark.parametrize("pad", [(1, 1, 1, 1), (0, 2, 1, 0), (1, 1, 1, 1, 1, 0)])
@pytest.mark.parametrize("options", [{}, {"opset": 13}, {"opset": 9}, {"optimize": "none"}], ids=str)
def test_the_zeros_count_in_onnxruntime(pad, options):
    model, module, x = exported(pad, nn.Identity(), **options)
    (y,) = onnxruntime.InferenceSession(model.to_proto().SerializeToString()).run(None, {"x": x.numpy()})
    np.testing.assert_array_equal(y, module(x).numpy())


@pytest.mark.parametrize("before", [torch.relu, torch.abs, lambda x: x.clamp(0, 6), lambda x: x.relu().mT + 1])
def test_padding_stays_as_it_is_where_nothing_is_negative(before):
    model, _, _ = exported((1, 1, 1, 1), before)
    assert not {"Squeeze", "Unsqueeze"} & {node.op_type for node in model.ir.graph}


@pytest.mark.parametrize(
    "before", [torch.tanh, lambda x: x.clamp(-1, 6), lambda x: x.clamp(max=6), lambda x: x.relu() - 1]
)
def test_padding_is_kept_apart_where_something_may_be_negative(before):
    model, _, _ = exported((1, 1, 1, 1), before)
    assert {"Squeeze", "Unsqueeze"} <= {node.op_type for node in model.ir.graph}


def test_onnxruntime_still_takes_the_padding_over():
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
        padded = Pad(x, pads)
        y = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(padded)
    }"""
    session = onnxruntime.InferenceSession(parser.parse_model(text).SerializeToString())
    (y,) = session.run(None, {"x": np.full((1, 1, 2, 2), -1, np.float32)})
    assert (y < 0).all(), "it is right now: keep_padding_apart may go"
