"""ScriptModules, traced modules, autograd functions and custom operators."""

from __future__ import annotations

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Accumulate(nn.Module):
    """A loop and a branch that scripting keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x: Tensor, steps: int = 3) -> Tensor:
        for _ in range(steps):
            if bool(x.sum() > 0):
                x = self.net(x)
            else:
                x = x + 1.0
        return x


@case("x.0")
def scripted_loop_and_branch():
    return torch.jit.script(Accumulate()), (randn(2, 4),), (randn(5, 4),)


class Lists(nn.Module):
    """Lists, membership and dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = [0, 2]
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> list[Tensor]:
        outs: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            x = torch.relu(layer(x))
            if index in self.kept:
                outs.append(x)
        return outs


@case("x.0")
def scripted_lists():
    return torch.jit.script(Lists()), (randn(2, 4),), (randn(5, 4),)


class Scan(nn.Module):
    """A recurrence over a length, scripted."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 4)
        outs: list[Tensor] = []
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            outs.append(h)
        return torch.stack(outs, 1)


@case("x.0", "x.1")
def scripted_recurrence():
    return torch.jit.script(Scan()), (randn(2, 5, 3),), (randn(3, 8, 3),)


@case("x.0")
def traced_convolution():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    return torch.jit.trace(net, randn(1, 3, 8, 8)), (randn(2, 3, 8, 8),), (randn(4, 3, 8, 8),)


class Partly(nn.Module):
    """A scripted part inside of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.part(x))


@case("x.0")
def scripted_part():
    return Partly(), (randn(2, 4),), (randn(5, 4),)


@torch.jit.script
def _fused(x: Tensor, bias: Tensor) -> Tensor:
    y = x + bias
    return y * 0.5 * (1.0 + torch.erf(y * 0.70710678))


class Fused(nn.Module):
    """A scripted function, as fused kernels are written."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(randn(4))

    def forward(self, x: Tensor) -> Tensor:
        return _fused(x, self.bias)


@case("x.0")
def scripted_function():
    return Fused(), (randn(2, 4),), (randn(5, 4),)


class SwishFunction(torch.autograd.Function):
    """Swish with a hand-written backward."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s))


class Swish(nn.Module):
    """An autograd function in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return SwishFunction.apply(self.net(x))


@case("x.0")
def autograd_function():
    return Swish(), (randn(2, 4),), (randn(5, 4),)


class StraightThrough(torch.autograd.Function):
    """Rounding that gradients pass; used for quantisation and VQ-VAEs."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


class Rounded(nn.Module):
    """A binarised layer."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(randn(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        return StraightThrough.apply(x) @ torch.sign(self.w).T


@case("x.0")
def straight_through_rounding():
    return Rounded(), (randn(2, 4),), (randn(5, 4),)


@torch.library.custom_op("corpus::scaled_tanh", mutates_args=())
def scaled_tanh(x: Tensor, scale: float) -> Tensor:
    """A user's operator whose body is made of torch's."""
    return torch.tanh(x * scale) / scale


@scaled_tanh.register_fake
def _(x: Tensor, scale: float) -> Tensor:
    return torch.empty_like(x)


class CustomTanh(nn.Module):
    """A user's operator between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(scaled_tanh(self.a(x), 0.7))


@case("x.0")
def custom_operator():
    return CustomTanh(), (randn(2, 4),), (randn(5, 4),)


@torch.library.custom_op("corpus::window_sums", mutates_args=())
def window_sums(x: Tensor, width: int) -> Tensor:
    """A user's operator whose result has another size."""
    return x.unfold(-1, width, 1).sum(-1)


@window_sums.register_fake
def _(x: Tensor, width: int) -> Tensor:
    return x.new_empty(*x.shape[:-1], x.shape[-1] - width + 1)


class CustomWindows(nn.Module):
    """A custom operator on a length that varies."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(window_sums(x, 3))


@case("x.0", "x.1")
def custom_operator_with_another_size():
    return CustomWindows(), (randn(2, 7),), (randn(3, 11),)
