"""Layers in plain lists: where an export fails, it says which of them eval() has not reached."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep


class Held(nn.Module):
    """Layers held in whatever is given."""

    def __init__(self, held, calls):
        super().__init__()
        self.held, self.calls = held, calls

    def forward(self, x):
        for layer in self.calls(self.held):
            x = layer(x)
        return x


def layers(last):
    return [nn.Linear(4, 4), last]


@pytest.mark.parametrize(
    ("held", "calls", "named"),
    [
        (layers(nn.Dropout(0.5)), list, "held[1] is"),
        (layers(nn.BatchNorm1d(4)), list, "held[1] is"),
        (
            {"first": (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)),)},
            lambda held: held["first"],
            "held['first'][0] is",
        ),
        ([*layers(nn.Dropout(0.5)), nn.Dropout(0.1)], list, "held[1], held[2] are"),
    ],
)
def test_the_error_names_them(held, calls, named):
    with pytest.raises(ep.ConversionError) as raised:
        ep.export(Held(held, calls).eval(), torch.ones(3, 4))
    assert raised.value.hint.startswith(f"{named} still in training mode")


def test_registered_layers_and_plain_ones_are_not_named():
    class Random(Held):
        def forward(self, x):
            return super().forward(x) + torch.rand_like(x)

    module = Random(layers(nn.ReLU()), list)
    module.more = nn.ModuleList([nn.Dropout(0.5)])
    module.held += list(module.more)
    module.round = [module.held]
    module.round.append(module.round)
    with pytest.raises(ep.ConversionError, match="results are random") as raised:
        ep.export(module.eval(), torch.ones(3, 4))
    assert "training mode" not in raised.value.hint


def test_layers_in_a_list_that_are_in_evaluation_mode_are_exported():
    held = layers(nn.Dropout(0.5))
    held[1].eval()
    assert ep.export(Held(held, list).eval(), torch.ones(3, 4)).report.ok
