"""Weights that only one way of a branch uses: the axes that they fix, whichever way the sample goes."""

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.axes.otherwise import without_refused
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.torch.sources.module import ModuleSource


class Mixed(nn.Module):
    """Mixes the features where the mean is positive, step by step, and doubles them elsewhere."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(6, 6)

    def forward(self, x, *, factor=2.0):  # TorchScript takes no keywords only
        if x.mean() > 0:
            h, steps = x.new_zeros(x.size(0), 6), []
            for t in range(x.size(1)):
                h = self.cell(x[:, t], h)
                steps.append(h)
            y = torch.stack(steps, dim=1)
        else:
            y = x * factor
        return y


@pytest.mark.parametrize("rows", [3, 4])
def test_what_weights_fix_on_the_other_way_ties_and_fixes_nothing_else(rows):
    module = Mixed().eval()
    model = ep.export(module, -torch.rand(rows, 4, 6), progress=False)
    assert [spec.shape[1:] for spec in model.inputs] == [("x_dim1", 6)]
    assert "fixed: x.2 = 6" in str(model)
    for sample in (torch.rand(2, 5, 6), -torch.rand(5, 2, 6)):
        expected = module(sample).detach().numpy()
        assert ep.Session(model).run({"x": sample.numpy()})["output"] == pytest.approx(expected, abs=1e-5)


def test_axes_that_vary_for_all_values_are_left_alone():
    class Halved(nn.Module):
        def forward(self, x):
            return x * 0.5 if x.mean() > 0 else x

    source = ModuleSource(Halved().eval(), (-torch.rand(3, 4),))
    with source.guard():
        prober = Prober(source, source.call.tensors, source(source.call.tensors))
        groups = prober.find_groups()
        assert without_refused(prober, groups, source.variants(prober.base)) == (groups, {})
        assert len(groups) == 2


class EveryOther(nn.Module):
    """Passes every other row through a layer where the mean is positive."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x, *, factor=2.0):
        if x.mean() > 0:
            return torch.stack([self.layer(row) if i % 2 == 0 else row for i, row in enumerate(x)])
        return x * factor


def test_a_way_that_no_capture_follows_at_other_sizes_is_followed_where_its_weights_fit():
    model = ep.export(EveryOther().eval(), -torch.rand(1, 4, 6), progress=False)
    assert model.inputs[0].shape == ("batch", "x_dim1", 6)
    assert "with other values than the sample's: RuntimeError: mat1 and mat2" in str(model)
