"""The training graph: statistics of the batch, dropout that drops, and running statistics that move."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

G = torch.Generator().manual_seed(0)
X, IMAGE, SERIES = torch.rand(3, 4, generator=G), torch.rand(3, 3, 6, 6, generator=G), torch.rand(2, 5, 8, generator=G)

NORMED = {
    "vectors": (lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)), X),
    "images": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), IMAGE),
    "without weights": (lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, affine=False, momentum=0.3)), X),
    "instances": (lambda: nn.Sequential(nn.InstanceNorm2d(3, track_running_stats=True)), IMAGE),
}
DROPPED = {
    "dropout": (lambda: nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.3)), X),
    "channels": (lambda: nn.Dropout2d(0.5), IMAGE),
    "alpha": (lambda: nn.AlphaDropout(0.2), X),
    "slopes": (nn.RReLU, X - 0.5),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.4, batch_first=True), SERIES),
    "between layers": (lambda: nn.LSTM(8, 8, 3, dropout=0.5, batch_first=True, bidirectional=True), SERIES),
    "with statistics": (lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout()), X),
}


def built(make):
    torch.manual_seed(0)
    return make()


@pytest.mark.parametrize(("make", "sample"), NORMED.values(), ids=NORMED.keys())
def test_the_statistics_are_those_of_the_batch(make, sample):
    net = built(make)
    before = copy.deepcopy(net.state_dict())
    model = ep.export(net, sample, training=True)
    assert model.report.ok
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert model.inputs[0].shape[0] == "batch"
    with torch.no_grad():
        expected = copy.deepcopy(net)(sample)
    actual = next(iter(ep.Session(model, providers=["onnxruntime"]).run([sample.numpy()]).values()))
    np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert ep.verify(net, model, sample)


@pytest.mark.parametrize(("make", "sample"), NORMED.values(), ids=NORMED.keys())
def test_running_statistics_move_as_the_modules_own(make, sample):
    net = built(make)
    model = ep.export(net, sample, training=True, state="outputs")
    names = [spec.name for spec in model.inputs[1:]]
    assert {name.rpartition(".")[2] for name in names} >= {"running_mean", "running_var"}
    feeds = {model.inputs[0].name: sample.numpy()} | {name: net.state_dict()[name].numpy().copy() for name in names}
    session = ep.Session(model, providers=["onnxruntime"])
    for _ in range(2):
        with torch.no_grad():
            net(sample)
        feeds |= dict(zip(names, list(session.run(feeds).values())[1:], strict=True))
    for name in names:
        np.testing.assert_allclose(feeds[name], net.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("make", "sample"), DROPPED.values(), ids=DROPPED.keys())
def test_dropout_drops_and_is_judged_by_its_distribution(make, sample):
    net = built(make)
    model = ep.export(net, sample, training=True)
    assert model.report.ok
    assert {run.label for run in model.report.runs} >= {"sample, drawn"}
    session = ep.Session(model, providers=["onnxruntime"])
    first, *others = (next(iter(session.run([sample.numpy()]).values())) for _ in range(20))
    assert not all(np.array_equal(first, other) for other in others)  # two alone may be alike by chance
    assert ep.verify(net, model, sample)


def test_parts_keep_the_mode_that_they_have():
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout())
    net[1].eval()
    assert ep.export(net, X, training=True).report.ok
    assert (net.training, net[0].training, net[1].training) == (True, True, False)


def test_a_module_in_evaluation_mode_has_no_training_graph():
    with pytest.raises(ep.InputError, match=r"the module is in evaluation mode \(hint: call train\(\)"):
        ep.export(nn.Dropout().eval(), X, training=True)


def test_that_evaluation_mode_was_exported_is_said():
    model = ep.export(nn.Sequential(nn.Linear(4, 4), nn.Dropout()), X)
    note = "exported in evaluation mode, though the module was in training mode"
    assert note in model.notes
    assert note in model.report.notes
    assert note in str(model.report)
