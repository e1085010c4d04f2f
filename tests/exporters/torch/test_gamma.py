import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.gamma import digamma, erfinv, lgamma

REAL = torch.cat([torch.linspace(0.01, 8, 60), torch.linspace(10, 3000, 20), torch.linspace(-4.9, -0.05, 40)])
PROBABILITY = torch.tensor([-1.0, -0.9999, -0.5, -1e-6, 0.0, 1e-3, 0.3, 0.999, 1.0, 1.5])


@pytest.mark.parametrize(("ours", "theirs"), [(lgamma, torch.lgamma), (digamma, torch.digamma)])
def test_gamma_functions_are_those_of_torch(ours, theirs):
    x = REAL.double()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours(torch.arange(1, 5)), theirs(torch.arange(1, 5)))


def test_the_inverse_of_the_error_function_is_that_of_torch():
    for x in (PROBABILITY, PROBABILITY.double()):
        torch.testing.assert_close(erfinv(x), torch.erfinv(x), equal_nan=True)


class Densities(nn.Module):
    def forward(self, x):
        return torch.lgamma(x), x.digamma(), torch.special.erfinv(x.tanh())


def test_models_with_gamma_functions_are_exported():
    report = ep.export(Densities(), torch.rand(3, 4) + 0.1).report
    assert report.ok
    assert not any(run.verdict == "declined" for run in report.runs)
