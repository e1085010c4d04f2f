"""Logarithms of sums, exported: right where numbers are far from zero, and where they are none."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

import entrepot as ep
from tests.op_cases.torch_functions import Module

FAR = torch.tensor([-1e4, -200.0, -20.0, -1.0, -0.0, 1e-3, 20.0, 1e4, torch.inf, -torch.inf, torch.nan])
PAIRS = torch.tensor(list(itertools.product(FAR.tolist(), repeat=2)))

FUNCTIONS = {
    "logsumexp": lambda x: x.logsumexp(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "logaddexp": lambda x: torch.logaddexp(x[:, 0], x[:, 1]),
    "logsigmoid": F.logsigmoid,
    "cross-entropy of logits": lambda x: F.binary_cross_entropy_with_logits(
        x[:, 0], x[:, 1].sigmoid(), reduction="none"
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_logarithms_of_sums_are_those_of_torch_far_from_zero(name, dtype):
    function, pairs = FUNCTIONS[name], PAIRS.to(dtype)
    model = ep.export(Module(function), pairs, progress=False)
    expected = function(pairs.float()).to(dtype).numpy()
    eps = torch.finfo(dtype).eps
    for provider in ("cpu", "onnxruntime"):
        (found,) = ep.Session(model, providers=[provider]).run({model.inputs[0].name: pairs.numpy()}).values()
        np.testing.assert_allclose(found, expected, rtol=8 * eps, atol=8 * eps)


def test_cross_entropy_is_one_node_and_log_sigmoid_three():
    entropy = ep.export(Module(F.cross_entropy), (torch.randn(6, 4), torch.arange(6) % 4), progress=False)
    assert [node.op_type for node in entropy.ir.graph] == ["SoftmaxCrossEntropyLoss"]
    sigmoid = ep.export(Module(F.logsigmoid), torch.randn(6, 4), progress=False)
    assert [node.op_type for node in sigmoid.ir.graph] == ["Neg", "Softplus", "Neg"]


def test_a_row_masked_by_the_lowest_number_is_not_one_of_infinities():
    lowest = torch.finfo(torch.float32).min
    rows = torch.tensor([[lowest, lowest], [-torch.inf, -torch.inf], [lowest, 1.0], [-torch.inf, lowest]])
    model = ep.export(Module(lambda x: x.logsumexp(-1)), rows, progress=False)
    for provider in ("cpu", "onnxruntime"):
        (found,) = ep.Session(model, providers=[provider]).run({model.inputs[0].name: rows.numpy()}).values()
        np.testing.assert_array_equal(found, rows.logsumexp(-1).numpy())


def test_a_sum_of_exponentials_along_one_axis_takes_four_nodes():
    model = ep.export(Module(lambda x: x.logsumexp(1)), torch.randn(3, 4, 5), progress=False)
    assert [node.op_type for node in model.ir.graph] == ["ReduceMax", "Sub", "Concat", "ReduceLogSumExp"]
