"""Functions of functions: loops, branches, and what torch.func makes of a function."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import entrepot as ep
from entrepot.exporters.torch.running.spotting import OperatorSpotter


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, *args):
        return self.function(self, *args)


X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def power(self, x):
    return (x @ self.weight).sin()


def energy(x):
    return (0.5 * x * x / 3 + 2 / (1 + x * x) - (1 - x) ** 3).sum()


LOOPS = {
    "cond": lambda self, x: torch.cond(x.sum() > 0, lambda a: torch.log1p(a.abs()), lambda a: a @ self.weight, (x,)),
    "while": lambda self, x: while_loop(
        lambda step, a: (step < 5) & (a.sum() < 99), lambda step, a: (step + 1, a @ self.weight), (torch.tensor(0), x)
    ),
    "cond in while": lambda self, x: while_loop(
        lambda step, a: step < 3,
        lambda step, a: (step + 1, torch.cond(a.sum() > 0, lambda b: b - 1, lambda b: b + self.bias, (a,))),
        (torch.tensor(0), x),
    ),
    "scan": lambda self, x: scan(lambda s, a: ((s + a @ self.weight).tanh(), s.clone()), x[0] * 0, x),
    "scan backwards": lambda self, x: scan(lambda s, a: (s * 0.5 + a, s + a), x[0] * 0, x, reverse=True),
    "cond in scan": lambda self, x: scan(
        lambda s, a: (torch.cond(a.sum() > 0, lambda b: b - 1, lambda b: b @ self.weight, (s + a,)), s.clone()),
        x[0] * 0,
        x,
    ),
    "map": lambda self, x: map_rows(lambda a, bias: (a @ self.weight).relu() + bias, x, self.bias),
    "map of two": lambda self, x: map_rows(lambda a: (a[0] + 1, a[1].sum()), (x, x * 2)),
    "map twice": lambda self, x: map_rows(lambda a: a + 1, map_rows(lambda a: a * 2, x)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_branches_stay_and_the_length_varies(name):
    model = ep.export(Function(LOOPS[name]), X)
    assert model.report.ok
    assert model.inputs[0].shape[0] == "batch"
    assert {"Scan", "Loop", "If"} & {node.op_type for node in model.ir.graph}


def test_an_axis_that_the_first_captures_lack_varies():
    def forward(self, x):
        return scan(
            lambda s, a: (torch.cond(a.sum() > 0, lambda b: b - 1, lambda b: b * 2, (s + a,)), s.clone()), x[0] * 0, x
        )

    assert ep.export(Function(forward), X).inputs[0].shape == ("batch", "args_0_dim1")


TRANSFORMS = {
    "grad": lambda self, x: torch.func.grad(lambda a: power(self, a).sum())(x),
    "grad with factors": lambda self, x: torch.func.grad(energy)(x),
    "hessian with factors": lambda self, x: torch.func.hessian(energy)(x[0] @ self.weight) * x[:, :1, None],
    "grad with factors in place": lambda self, x: torch.func.grad(lambda a: (a.sin().mul_(2.0).div_(3)).sum())(x),
    "vmap": lambda self, x: torch.vmap(lambda a: power(self, a).sum())(x),
    "grad under vmap": lambda self, x: torch.vmap(torch.func.grad(lambda a: power(self, a).sum()))(x),
    "jacrev": lambda self, x: torch.func.jacrev(lambda a: power(self, a))(x[0]),
    "jacfwd": lambda self, x: torch.func.jacfwd(lambda a: power(self, a))(x[0]),
    "hessian": lambda self, x: torch.func.hessian(lambda a: power(self, a).sum())(x[0]),
    "jvp": lambda self, x: torch.func.jvp(lambda a: power(self, a), (x,), (x * 2,)),
    "vjp": lambda self, x: torch.func.vjp(lambda a: power(self, a), x)[1](x * 2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_functions_that_torch_func_transforms_are_exported(name):
    model = ep.export(Function(TRANSFORMS[name]), X)
    assert model.report.ok
    assert model.inputs[0].shape[0] == "batch"


@pytest.mark.parametrize(
    ("shape", "offset", "dims"),
    [((3, 4), 0, (0, 1)), ((3, 4), 2, (0, 1)), ((5, 2, 4), -1, (2, 0)), ((3, 3), 2, (0, 1))],
)
def test_a_diagonal_is_written(shape, offset, dims):
    x = torch.randn(shape)
    diagonal = x.diagonal(offset, *dims) * 2
    module = Function(lambda self, a, b: a.diagonal_scatter(b, offset, *dims))
    model = ep.export(module, (x, diagonal), dynamic=False)
    assert model.report.ok


class Force(nn.Module):
    """Minus the gradient of an energy, as models of molecules compute it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            (force,) = torch.autograd.grad(self.energy(x).sum(), x)
        return -force


def test_gradients_that_forward_computes_are_exported():
    model = ep.export(Force(), X)
    assert model.report.ok
    assert model.inputs[0].shape[0] == "batch"


def test_a_vector_that_is_transposed_keeps_its_name():
    module = Function(lambda self, x: torch.vmap(torch.func.grad(lambda row: torch.tanh(row @ self.bias)))(x))
    assert ep.export(module, X).report.ok


def test_a_loop_still_runs_after_its_operators_were_watched():
    module = Function(LOOPS["scan backwards"])
    with OperatorSpotter(prefixes=("aten::flip",)) as watched:
        module(X)
    assert [operator for operator, _ in watched.found] == ["aten::flip"] * 2
    module(X)


class LossesOfEach(torch.nn.Module):
    """Gradients for each row of a batch, which a capture begins more than once."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))

    def loss(self, weights, row, label):
        scores = torch.func.functional_call(self.net, weights, (row.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(scores, label.unsqueeze(0))

    def forward(self, x, y):
        each = torch.func.vmap(torch.func.grad_and_value(self.loss), in_dims=(None, 0, 0))
        gradients, losses = each(dict(self.net.named_parameters()), x, y)
        return losses, torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients.values()])


def test_no_vmap_is_left_after_a_capture_that_ended_in_it():
    assert ep.export(LossesOfEach(), (torch.randn(3, 4), torch.randint(0, 3, (3,)))).report.ok
    torch.randn(2)  # "vmap: called random operation while in randomness error mode"
