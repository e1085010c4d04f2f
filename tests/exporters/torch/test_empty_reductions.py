"""onnxruntime (1.31) gives an empty tensor the wrong shape when it reduces an axis counted from the end."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import parser
from torch import nn

import entrepot as ep


class Chosen(nn.Module):
    """Rows that are chosen by their values, perhaps none, and something computed along them."""

    def __init__(self, reduce):
        super().__init__()
        self.reduce = reduce

    def forward(self, x):
        return self.reduce(x[x[:, 0] > 0])


REDUCTIONS = {
    "sum": lambda rows: rows.sum(-1),
    "mean": lambda rows: rows.mean(-1, keepdim=True),
    "norm": lambda rows: rows.norm(dim=-1),
    "amax": lambda rows: rows.amax(-1),
    "amin": lambda rows: rows.amin(-1),
    "prod": lambda rows: rows.prod(-1),
    "argmax": lambda rows: rows.argmax(-1),
    "max": lambda rows: rows.max(-1).values,
    "any": lambda rows: (rows > 0.5).any(-1),
    "normalised": lambda rows: nn.functional.normalize(rows, dim=-1),
    "layer_norm": lambda rows: nn.functional.layer_norm(rows, (3,)),
    "softmax": lambda rows: rows.softmax(-1),
    "cumsum": lambda rows: rows.cumsum(-1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows_that_may_be_none_are_reduced_in_onnxruntime(name):
    module, x = Chosen(REDUCTIONS[name]), torch.tensor([[1.0, -2.0, 0.5], [-1.0, 0.25, 3.0]])
    model = ep.export(module, (x,), verify=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    (empty,) = session.run(None, {"x": -x.abs().numpy()})
    assert empty.shape == module(-x.abs()).shape


def test_onnxruntime_still_needs_positive_axes():
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[n, 3] x) => (float[m] y) <int64[1] axes = {-1}> { y = ReduceSum<keepdims=0>(x, axes) }"""
    session = onnxruntime.InferenceSession(parser.parse_model(text).SerializeToString())
    (y,) = session.run(None, {"x": np.zeros((0, 3), np.float32)})
    assert y.shape == (0, 3), "it is right now: count_axes_from_the_front may go"


MEANS = {
    "rows": lambda rows: rows.mean(0),
    "all": lambda rows: rows.mean(),
    "half": lambda rows: rows.half().mean(0),
    "var": lambda rows: rows.var(0, unbiased=False),
    "mse": lambda rows: nn.functional.mse_loss(rows, rows * 0),
    "l1": lambda rows: nn.functional.l1_loss(rows, rows * 0),
    "entropy": lambda rows: nn.functional.binary_cross_entropy_with_logits(rows, rows * 0),
}


@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.parametrize("name", MEANS)
def test_the_mean_of_no_rows_is_no_number(name):
    module, x = Chosen(MEANS[name]), torch.tensor([[1.0, -2.0, 0.5], [-1.0, 0.25, 3.0], [3.0, 1.0, 2.0]])
    session = onnxruntime.InferenceSession(ep.export(module, (x,)).to_proto().SerializeToString())
    for given in (-x.abs(), x):
        (found,) = session.run(None, {"x": given.numpy()})
        np.testing.assert_allclose(found, module(given).numpy(), rtol=1e-3)
