"""Loops and branches that call functions and objects which hold tensors of the call, and do not mention these."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import entrepot as ep
from tests.exporters.torch.control_flow import Module, x
from tests.exporters.torch.test_control_flow import results, tensors


def settled(step, start, limit):
    """Where a function leads to."""
    state, turn = start, 0
    while turn < limit:
        new, turn = step(state), turn + 1
        if (new - state).abs().max() < 1e-2:
            break
        state = new
    return state


class Equilibrium(Module):
    """The step is a function of the state alone, and the input in its closure."""

    def forward(self, x):
        return settled(lambda state: torch.tanh(self.a(state) + x) / 2, torch.zeros_like(x), 30)


class Pull:
    """Looks at the tensor that it was made with."""

    def __init__(self, points, strength):
        self.points, self.strength = points, strength

    def __call__(self, state):
        return state + self.strength * (self.points.mean(0) - state) * (1 + self.points.shape[0]) / 20


class Pulled(Module):
    """The step is a method of an object, which keeps the input and a size of it."""

    def forward(self, x):
        pull = Pull(x, 0.5)
        state = settled(pull, torch.zeros_like(x), 12)
        return pull(state) if state.sum() > 0 else state - pull.points


@pytest.mark.parametrize("kind", [Equilibrium, Pulled])
def test_what_a_function_holds_is_followed_into_loops(kind):
    module = kind().eval()
    model = ep.export(module, x(3, 4))
    assert str(model.inputs[0].shape[0]) == "batch"
    for given in (x(3, 4), x(5, 4), 3 - x(1, 4), -x(2, 4)):
        with torch.no_grad():
            expected = tensors(module(given))
        for mine, theirs in zip(results(model, given), expected, strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-4, atol=1e-5)


class Configured(Module):
    """Looks up what it lacks in its settings, as libraries of models do, and fails there with another error."""

    def __init__(self):
        super().__init__()
        self.__dict__["settings"] = {"width": 4}

    def __getattr__(self, name):
        if hasattr(self.__dict__.get("settings"), name):  # so does every dict have "get"
            return self.settings[name]
        return super().__getattr__(name)

    def forward(self, x):
        doubled = lambda value: value * 2  # noqa: E731 - TorchScript has no such functions
        twice = doubled(self.a(x))
        if twice.sum() > 0:
            twice = self.a(twice)
        return twice


def test_objects_are_not_asked_for_attributes_that_nobody_mentions():
    module = Configured().eval()
    model = ep.export(module, x(3, 4))
    for given in (x(3, 4), -x(5, 4)):
        with torch.no_grad():
            expected = module(given).numpy()
        np.testing.assert_allclose(results(model, given)[0], expected, rtol=1e-4, atol=1e-5)
