"""Functions inside of ``forward`` whose loops and branches use variables of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import entrepot as ep
from tests.exporters.torch.test_control_flow import results


def states(x: Tensor) -> Tensor:
    def run() -> Tensor:
        state, found = torch.zeros_like(x[:, 0]), []
        for i in range(x.shape[1]):
            state = torch.tanh(state + x[:, i])
            found.append(state)
        return torch.stack(found, 1)

    return run() * 2


def changed(x: Tensor) -> Tensor:
    """The inner function gives a variable of the outer one another value, in a loop of that one."""
    state = torch.zeros_like(x[:, 0])

    def step(row: Tensor) -> None:
        nonlocal state
        state = torch.tanh(state * 0.5 + row)

    for i in range(x.shape[1]):
        step(x[:, i])
    return state


def changed_in_a_loop(x: Tensor) -> Tensor:
    """In a loop of its own."""
    state = torch.zeros_like(x[:, 0])

    def run() -> None:
        nonlocal state
        for i in range(x.shape[1]):
            state = torch.tanh(state * 0.5 + x[:, i])

    run()
    return state


def collected(x: Tensor) -> Tensor:
    """It puts items into a list of the outer one."""
    found = []

    def visit(row: Tensor) -> None:
        found.append(row * 2)

    for i in range(x.shape[1]):
        visit(x[:, i])
    return torch.stack(found, 1)


def collected_in_a_loop(x: Tensor) -> Tensor:
    found = [x[:, 0]]

    def visit() -> None:
        for i in range(x.shape[1]):
            found.append(x[:, i] * 2)

    visit()
    return torch.stack(found, 1)


def branching(x: Tensor) -> Tensor:
    limit = x.mean()

    def bounded(row: Tensor) -> Tensor:
        if row.sum() > limit:
            return row - limit
        return row + limit

    return torch.stack([bounded(x[:, i]) for i in range(x.shape[1])], 1)


def yielding(x: Tensor) -> Tensor:
    def pieces():
        for i in range(0, x.shape[1] - 1, 2):
            yield x[:, i : i + 2]

    return torch.stack([piece * 2 for piece in pieces()], 1)


def in_two_levels(x: Tensor) -> Tensor:
    def outer() -> Tensor:
        def inner(at: int) -> Tensor:
            total = torch.zeros_like(x[:, 0])
            for i in range(at + 1):
                total = total + x[:, i]
            return total

        return torch.stack([inner(at) for at in range(x.shape[1])], 1)

    return outer()


FUNCTIONS = [states, changed, changed_in_a_loop, collected, collected_in_a_loop, branching, yielding, in_two_levels]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_length_stays_dynamic(function):
    model = ep.export(function, torch.randn(2, 6, 3), progress=False)
    assert not any(isinstance(size, int) for size in model.inputs[0].shape), str(model)
    for length in (6, 2, 9):
        x = torch.randn(3, length, 3)
        np.testing.assert_allclose(results(model, x)[0], function(x).numpy(), rtol=1e-4, atol=1e-5)
