"""Modules in float64, of which onnxruntime lacks some kernels and runs others in single precision."""

import pytest
import torch
from torch import nn

import entrepot as ep

LACKING = {"lstm": nn.LSTM(6, 5), "gru": nn.GRU(6, 5), "rnn": nn.RNN(6, 5)}
COARSE = {
    "attention": nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
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
