"""Inputs that take another branch do so whichever of equal elements a module chooses."""

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting.reaching import TAKEN, reach


class Periods(nn.Module):
    """A series cut into its strongest periods, the last of which is filled up; zeros have none."""

    def forward(self, x):
        rows, length = x.shape
        strength = torch.fft.rfft(x, dim=1).abs().mean(0)
        strength[0] = 0
        periods = length // torch.topk(strength, 2)[1].numpy()
        found = []
        for period in periods:
            if length % period != 0:
                whole = (length // period + 1) * period
                y = F.pad(x, (0, whole - length))
            else:
                whole, y = length, x
            y = y.reshape(rows, whole // period, period)
            found.append((y - y.mean(1, keepdim=True)).reshape(rows, -1)[:, :length])
        return torch.stack(found, -1).sum(-1)


def test_periods_of_a_series_are_exported_though_zeros_have_none():
    module, generator = Periods(), torch.Generator().manual_seed(0)
    model = ep.export(module, torch.randn(2, 20, generator=generator), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for shape in ((3, 27), (1, 33), (2, 16)):
        x = torch.randn(shape, generator=generator)
        (found,) = session.run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-4, atol=1e-5)


def test_an_input_that_is_taken_for_one_choice_only_reaches_nothing():
    def run(tensors):
        TAKEN.add(("a.py:1", bool(tensors[0].any())))
        return True

    sample = [torch.tensor([1.0, 2.0])]
    assert reach(run, sample, {"a.py:1"})[0]
    found, never = reach(run, sample, {"a.py:1"}, lambda tensors: tensors[0].any())
    assert (found, never) == ([], ["a.py:1 where its condition does not hold"])


def test_places_decide_as_well():
    def run(tensors):
        TAKEN.add(("a.py:1", int(tensors[0].abs().argmax()) in (0, 2)))
        return True

    found, never = reach(run, [torch.tensor([0.5, 1.0, 2.0, 0.1, 0.3])], {"a.py:1"})
    assert found
    assert not never
