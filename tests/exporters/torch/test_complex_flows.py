"""Loops and branches that complex numbers go through."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import entrepot as ep
from tests.exporters.torch.test_control_flow import results


class LinearRecurrence(nn.Module):
    """As state-space models have it: complex states, of which the real part is read."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.rates, self.angles = nn.Parameter(torch.rand(5)), nn.Parameter(torch.randn(5))
        self.read, self.write = nn.Linear(3, 10), nn.Parameter(torch.randn(5, 3, dtype=torch.cfloat))

    def forward(self, x: Tensor) -> Tensor:
        turns = torch.polar(torch.exp(-self.rates), self.angles)
        state, found = torch.zeros(x.shape[0], 5, dtype=torch.cfloat), []
        for i in range(x.shape[1]):
            given = torch.view_as_complex(self.read(x[:, i]).reshape(-1, 5, 2))
            state = turns * state + given
            found.append((state @ self.write).real)
        return torch.stack(found, 1)


class States(nn.Module):
    """Complex numbers are put into a list as well, and the last of them is conjugated."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.complex(x[:, 0], -x[:, 0])
        found = [state]
        for i in range(1, x.shape[1]):
            state = (state * torch.complex(x[:, i], x[:, i] * 2)).conj()
            found.append(state)
        return torch.view_as_real(torch.stack(found, 1)), state.imag


class Turned(nn.Module):
    """A branch on values, both of whose arms are complex."""

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.complex(x, x.flip(1))
        spectrum = spectrum * 1j if x.sum() > 0 else spectrum.conj() * 2
        return torch.cat([spectrum.real, spectrum.imag], 1)


@pytest.mark.parametrize("module", [LinearRecurrence(), States(), Turned()], ids=lambda m: type(m).__name__)
def test_the_length_stays_dynamic(module):
    model = ep.export(module.eval(), torch.randn(2, 6, 3), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape[:2]), str(model)
    for length in (6, 2, 9):
        for sign in (1, -1):
            x = torch.randn(3, length, 3).abs() * sign
            with torch.no_grad():
                expected = module(x)
            for mine, theirs in zip(
                results(model, x), expected if isinstance(expected, tuple) else [expected], strict=True
            ):
                np.testing.assert_allclose(
                    mine, theirs.resolve_neg().numpy(), rtol=1e-4, atol=1e-4 * float(theirs.abs().max())
                )
