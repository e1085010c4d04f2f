"""Which inputs empty something in a model, where onnxruntime may end the process."""

import numpy as np
import onnxruntime
import pytest
import torch

import entrepot as ep
from entrepot.parity.emptied import Emptied
from entrepot.parity.plan import Case
from entrepot.parity.verify import verify


def halves(x):
    middle = x.shape[1] // 2
    return torch.cat([x[:, middle:] @ WEIGHT, x[:, :middle] @ WEIGHT], 1)


def ends(x):
    return x[:, : x.shape[1] // 2].sum(1)


WEIGHT = torch.eye(4)
SAMPLE = torch.randn(2, 7, 4)


@pytest.fixture(scope="module")
def exported():
    return ep.export(halves, SAMPLE, progress=False)


@pytest.mark.parametrize(
    ("shape", "empty"), [((2, 7, 4), False), ((3, 2, 4), False), ((2, 1, 4), True), ((0, 4, 4), True)]
)
def test_inputs_that_empty_something_are_told(exported, shape, empty):
    (name,) = [spec.name for spec in exported.inputs]
    assert Emptied(exported).by({name: np.zeros(shape, np.float32)}) is empty


def test_inputs_that_are_refused_empty_nothing(exported):
    (name,) = [spec.name for spec in exported.inputs]
    assert not Emptied(exported).by({name: np.zeros((2, 1), np.float32)})


def test_a_norm_of_nothing_is_told():
    norm = torch.nn.GroupNorm(2, 4).eval()
    model = ep.export(lambda x: norm(x[:, :, : x.shape[2] // 2]), torch.randn(2, 4, 7), progress=False)
    (name,) = [spec.name for spec in model.inputs]
    assert [Emptied(model).by({name: np.zeros((2, 4, size), np.float32)}) for size in (1, 2)] == [True, False]


def test_what_is_not_multiplied_may_be_empty():
    model = ep.export(ends, SAMPLE, progress=False)
    assert not Emptied(model).by({model.inputs[0].name: np.zeros((2, 1, 4), np.float32)})


def test_onnxruntime_is_not_asked_where_something_is_empty(monkeypatch):
    run, shapes = onnxruntime.InferenceSession.run, []

    def noted(session, names, feeds, *more):
        shapes.extend(np.shape(value) for value in feeds.values())
        return run(session, names, feeds, *more)

    monkeypatch.setattr(onnxruntime.InferenceSession, "run", noted)
    report = ep.export(halves, SAMPLE, progress=False).report
    assert (2, 8, 4) in shapes
    assert (2, 1, 4) not in shapes
    assert "cpu" in {run.provider for run in report.runs if run.label == "x_dim1=1"}


def test_our_runtime_may_not_refuse_what_empties_something(exported):
    class Source:
        name = "source"

        def run(self, feeds):
            return {exported.outputs[0].name: next(iter(feeds.values()))}

    (name,) = [spec.name for spec in exported.inputs]
    wrong, refused = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.zeros((2, 3), np.float32)
    cases = [Case(str(at), {name: value}, emptied=True) for at, value in enumerate((wrong, refused))]
    report = verify(Source(), exported, cases)
    assert [(run.provider, run.verdict) for run in report.runs] == [("cpu", "differs"), ("cpu", "error")]
