"""Modules that reach their parts through what is no module: lists, tables, helper objects, methods."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import entrepot as ep
from entrepot.exporters.torch.rewriting.modules import rewritten_copy
from tests.exporters.torch.control_flow import Module, x


class Gated(Module):
    """Decides by values, so that it has to be rewritten."""

    def forward(self, x):
        return self.a(x) if x.sum() > 0 else x - 1


class Around(torch.nn.Module):
    """Has a part, and runs it through something that it made of it."""

    def __init__(self, hold: Any, call: Any) -> None:
        super().__init__()
        self.part = Gated()
        self.held, self.call = hold(self.part), call

    def forward(self, x):
        return self.call(self.held, x)


@dataclass
class Runner:
    """Calls a module; knows one that knows it."""

    module: torch.nn.Module
    other: Any = None

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


@dataclass(frozen=True)
class Frozen:
    runner: Runner


def called(part: torch.nn.Module, x: torch.Tensor, scale: int) -> torch.Tensor:
    return part(x) * scale


def in_turn(part: torch.nn.Module) -> Runner:
    runner = Runner(part)
    runner.other = [runner]
    return runner


HELD = {
    "a list": Around(lambda part: [part], lambda held, x: held[0](x)),
    "a table": Around(lambda part: {"first": (part, 2)}, lambda held, x: held["first"][0](x)),
    "a helper": Around(Runner, lambda held, x: held.run(x)),
    "a helper in another": Around(lambda part: Frozen(Runner(part)), lambda held, x: held.runner.run(x)),
    "a helper that holds itself": Around(in_turn, lambda held, x: held.other[0].run(x)),
    "its method": Around(lambda part: part.forward, lambda held, x: held(x)),
    "a function around it": Around(lambda part: lambda x: part(x) + 0, lambda held, x: held(x)),
    "a partial": Around(lambda part: functools.partial(called, part, scale=1), lambda held, x: held(x)),
    "a helper's method": Around(lambda part: Runner(part).run, lambda held, x: held(x)),
}


@pytest.mark.parametrize("how", HELD)
def test_parts_are_rewritten_however_they_are_held(how):
    module = HELD[how].eval()
    held = module.held
    model = ep.export(module, x(3, 4))
    assert module.held is held
    for given in (x(3, 4), x(5, 4), -x(2, 4)):
        with torch.no_grad():
            expected = module(given)
        for provider in ("cpu", "onnxruntime"):
            (found,) = ep.Session(model, providers=[provider]).run({model.inputs[0].name: given.numpy()}).values()
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_what_holds_no_parts_is_the_same_in_a_copy():
    module = HELD["a helper"]
    module.table = table = {"sizes": [1, 2], "weights": torch.ones(2), "self": None}
    table["self"] = [torch.nn.Linear(2, 2)]
    assert rewritten_copy(module).table is table


class Uncounted(tuple[int, ...]):
    """Its makers found ``len`` ambiguous."""

    def __len__(self) -> int:
        raise NotImplementedError


def test_tuples_that_do_not_tell_their_length_are_held():
    module = HELD["a helper"]
    module.kinds = kinds = Uncounted((1, 2))
    assert rewritten_copy(module).kinds is kinds
