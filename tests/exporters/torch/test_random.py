"""Random results: refused, or on request drawn by the graph and judged by their distribution."""

import random

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import parser
from torch import nn

import entrepot as ep
from entrepot.exporters.proof.chance import unlike
from entrepot.exporters.torch.running.eager import _seed
from entrepot.exporters.torch.translations.random import DECOMPOSITIONS

X = torch.rand(6, 5, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
aten = torch.ops.aten


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


DRAWS = {
    "noise": lambda x: (x * 2, x + torch.randn_like(x)),
    "uniform": lambda x: torch.empty_like(x).uniform_(-1, 2),
    "bernoulli": torch.bernoulli,
    "order": lambda x: x[torch.randperm(x.shape[0])],
    "categories": lambda x: torch.multinomial(x, 3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_on_request_the_graph_draws_what_the_module_draws(name):
    net = Function(DRAWS[name])
    model = ep.export(net, X, random=True)
    assert model.report.ok
    assert model.inputs[0].shape[0] == "batch"
    session = ep.Session(model, providers=["onnxruntime"])
    ours = np.stack([list(session.run({"x": X.numpy()}).values())[-1] for _ in range(150)])
    torch.manual_seed(0)
    theirs = [DRAWS[name](X) for _ in range(150)]
    assert unlike(np.stack([np.asarray(each[-1] if name == "noise" else each) for each in theirs]), ours) == ""
    assert len(np.unique(ours, axis=0)) > 1


def test_verify_knows_that_a_model_draws():
    net = Function(torch.bernoulli)
    model = ep.export(net, X, random=True, dynamic=False)
    assert ep.verify(net, model, X)
    assert not ep.verify(Function(lambda x: torch.bernoulli(1 - x)), model, X)


def test_a_model_that_draws_nothing_is_proved_as_always():
    runs = ep.export(nn.Linear(5, 2), X, random=True).report.runs
    assert "other values" in {run.label for run in runs}
    assert not any("drawn" in run.label for run in runs)


def test_the_refusal_says_how_to_ask():
    with pytest.raises(ep.ConversionError, match=r"results are random.*aten::bernoulli.*hint: random=True"):
        ep.export(Function(torch.bernoulli), X)


@pytest.mark.parametrize("draw", [random.random, lambda: float(np.random.rand())])  # noqa: NPY002
def test_numbers_of_python_and_numpy_cannot_be_drawn_by_a_graph(draw):
    with pytest.raises(ep.ConversionError, match="results are random"):
        ep.export(Function(lambda x: x * draw() + torch.rand_like(x)), X, random=True)


CALLS = {
    aten.bernoulli.default: (X,),
    aten.bernoulli.p: (X, 0.2),
    aten.multinomial.default: (X, 4),
    aten.normal.Tensor_float: (X, 2.0),
    aten.normal.float_Tensor: (1.0, X),
    aten.uniform.default: (X, -1.0, 3.0),
    aten.randperm.default: (7,),
    getattr(aten.random, "from"): (X, 2, 6),
    aten.random.to: (X, 6),
    aten.rrelu.default: (X - 0.5, 0.1, 0.5, True),
}


@pytest.mark.parametrize("operator", DECOMPOSITIONS, ids=str)
def test_a_decomposition_draws_as_torch_does(operator):
    torch.manual_seed(0)
    args = CALLS[operator]
    ours, theirs = (
        torch.stack([function(*args) for _ in range(300)]) for function in (DECOMPOSITIONS[operator], operator)
    )
    assert ours.dtype == theirs.dtype
    assert unlike(theirs.numpy(), ours.numpy()) == ""


def test_onnxruntime_still_draws_the_opposite_of_a_bernoulli():
    """When this fails, ``translations/random.py`` can leave Bernoulli to torch.onnx."""
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> g (float[N] x) => (float[N] y) { y = Bernoulli(x) }'
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.full(4000, 0.9, np.float32)})[0].mean() < 0.5


@pytest.mark.parametrize("available", [True, False])
def test_devices_that_are_not_there_are_not_seeded(available, monkeypatch):
    seeded, seed_all = [], torch.manual_seed
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: available)
    monkeypatch.setattr(torch, "manual_seed", lambda seed: seeded.append(seed) or seed_all(seed))
    before = torch.get_rng_state()
    _seed(3)
    drawn = torch.rand(4)
    assert torch.equal(drawn, torch.rand(4, generator=torch.Generator().manual_seed(3)))
    assert seeded == ([3] if available else [])
    torch.set_rng_state(before)
