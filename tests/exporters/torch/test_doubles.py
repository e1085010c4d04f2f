"""Modules in float64, of which onnxruntime lacks some kernels and runs others in single precision."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from tests.op_cases.torch_functions import Module

LACKING = {"lstm": nn.LSTM(6, 5), "gru": nn.GRU(6, 5), "rnn": nn.RNN(6, 5)}
COARSE = {
    "attention": nn.TransformerEncoderLayer(8, 1, 16, batch_first=True),
    "gelu": nn.GELU(approximate="tanh"),
}


def exported(module: nn.Module, features: int) -> ep.Model:
    return ep.export(module.double(), torch.randn(4, 5, features, dtype=torch.float64))


@pytest.mark.parametrize("name", LACKING)
def test_what_onnxruntime_finds_missing_when_it_runs_is_declined_and_no_failure(name):
    model = exported(LACKING[name], 6)
    assert [run.provider for run in model.report.declined] == ["onnxruntime"]
    assert name.upper() in model.report.declined[0].message
    assert "onnxruntime does not run it" in model.report.summary()
    assert isinstance(model.inputs[0].shape[0], str)


def test_asked_for_by_name_it_is_a_failure():
    model = exported(LACKING["lstm"], 6)
    sample = torch.randn(4, 5, 6, dtype=torch.float64)
    assert not ep.verify(LACKING["lstm"], model, sample, providers=["cpu", "onnxruntime"])


@pytest.mark.parametrize("name", COARSE)
def test_single_precision_of_the_second_opinion_is_noted_and_fixes_no_axis(name):
    report = exported(COARSE[name], 8).report
    assert all(run.comparison.worst.metrics.max_abs < 1e-6 for run in report.noted if not run.edge)
    assert "onnxruntime computes in single precision" in report.summary()
    assert not any("does not follow" in note for note in report.notes)


SLOPES = {
    "elu": lambda x: F.elu(x, 0.7),
    "celu": lambda x: F.celu(x, 0.7),
    "selu": F.selu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "rrelu": F.rrelu,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "threshold": lambda x: F.threshold(x, 0.1, 0.3),
    "softplus": lambda x: F.softplus(x, 0.7, 3),
    "hardtanh": lambda x: F.hardtanh(x, -0.1, 0.7),
    "addmm": lambda x: torch.addmm(x[:, :5], x, x.mT @ x[:, :5], beta=0.1, alpha=0.3),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], (x.mT @ x)[None], beta=0.1, alpha=0.3),
    "lrn": lambda x: F.local_response_norm(x[None], 3, 0.3, 0.7, 1.1),
    "layer_norm": lambda x: F.layer_norm(x, (6,), eps=1e-5),
    "group_norm": lambda x: F.group_norm(x, 2, eps=1e-5),
    "instance_norm": lambda x: F.instance_norm(x[None], eps=1e-5),
    "batch_norm": lambda x: F.batch_norm(x, x.mean(0), x.var(0), eps=1e-5),
    "rms_norm": lambda x: F.rms_norm(x, (6,), eps=1e-5),
    "logit": lambda x: torch.logit(x.sigmoid(), 0.3),
    "add": lambda x: torch.add(x, x, alpha=0.3),
    "lerp": lambda x: torch.lerp(x, x * x, 0.3),
    "pow": lambda x: x.abs() ** 0.3,
    "scalar": lambda x: x * 0.3 + 0.1,
    "full": lambda x: x + torch.full((6,), 0.3, dtype=x.dtype),
    "pad": lambda x: F.pad(x, (1, 1), value=0.3),
    "normalize": lambda x: F.normalize(x, eps=0.3),
    "nan_to_num": lambda x: x.nan_to_num(0.3),
    "clamp": lambda x: x.clamp(-0.1, 0.3),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.3),
    "pairwise": lambda x: F.pairwise_distance(x, x.roll(1, 0), eps=1e-5),
    "huber": lambda x: F.huber_loss(x, x.roll(1, 0), delta=0.3),
    "arange": lambda x: x + torch.arange(0, 0.6, 0.1, dtype=x.dtype),
    "fractions": lambda x: x + torch.arange(0.1, 0.6, 0.1, dtype=x.dtype).sum(),
    "linspace": lambda x: x + torch.linspace(0.1, 0.7, 6, dtype=x.dtype),
}
"""Functions with parameters that float32 rounds, as ONNX keeps attributes."""


@pytest.mark.parametrize("name", SLOPES)
def test_parameters_of_a_function_keep_their_precision_in_the_file(name):
    function = SLOPES[name]
    x = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = ep.export(Module(function), x, dynamic=False)
    read = ep.load(model.to_proto())
    assert ep.compare(function(x), ep.Session(read).run(x))


def test_fractions_are_counted_as_torch_counts_them():
    model = ep.export(Module(lambda x: x + torch.arange(0, 0.6, 0.1)), torch.zeros(6))
    assert ep.compare(torch.arange(0, 0.6, 0.1), ep.Session(model).run(torch.zeros(6)))


def test_a_model_says_the_same_in_memory_as_in_its_file():
    x = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = ep.export(Module(lambda x: F.layer_norm(x, (6,), eps=0.1)), x, verify=False)
    read = ep.load(model.to_proto())
    assert ep.Session(model).run(x)["output"].tolist() == ep.Session(read).run(x)["output"].tolist()


def test_root_mean_squares_keep_the_number_that_is_added_to_them():
    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.RMSNorm(8, dtype=torch.float64), nn.RMSNorm(8, eps=1e-3, dtype=torch.float64)

        def forward(self, x):
            return self.second(self.first(x) * 0.01)

    x = torch.randn(2, 3, 8, dtype=torch.float64)
    (found,) = ep.Session(ep.export(Norms(), x, progress=False), providers=["onnxruntime"]).run([x.numpy()]).values()
    np.testing.assert_allclose(found, Norms()(x).detach().numpy(), rtol=1e-12)
