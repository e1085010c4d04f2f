"""Quantised modules: dynamic and static, fake quantisation, weights in int8 and int4, half precision."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


def _quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


@case("x.0")
def dynamic_linear():
    net = _quietly(torch.ao.quantization.quantize_dynamic, _mlp(), {nn.Linear}, dtype=torch.qint8)
    return net, (randn(2, 8),), (randn(5, 8),)


@case("x.0", "x.1")
def dynamic_lstm():
    net = _quietly(
        torch.ao.quantization.quantize_dynamic, nn.LSTM(4, 6, batch_first=True), {nn.LSTM}, dtype=torch.qint8
    )
    return net, (randn(2, 5, 4),), (randn(3, 7, 4),)


class Wrapped(nn.Module):
    """Stubs around a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.conv, self.relu, self.head = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv(self.quant(x)))
        return self.dequant(self.head(x.mean((2, 3))))


@case("x.0")
def static_convolution():
    def build() -> nn.Module:
        net = Wrapped().eval()
        net.qconfig = torch.ao.quantization.get_default_qconfig("x86")
        torch.ao.quantization.fuse_modules(net, [["conv", "relu"]], inplace=True)
        torch.ao.quantization.prepare(net, inplace=True)
        net(randn(8, 3, 6, 6))
        return torch.ao.quantization.convert(net)

    return _quietly(build), (randn(2, 3, 6, 6),), (randn(4, 3, 6, 6),)


@case("x.0")
def fake_quantised():
    def build() -> nn.Module:
        net = _mlp().train()
        net.qconfig = torch.ao.quantization.get_default_qat_qconfig("fbgemm")
        torch.ao.quantization.prepare_qat(net, inplace=True)
        net(randn(8, 8))
        net.apply(torch.ao.quantization.disable_observer)
        return net.eval()

    return _quietly(build), (randn(2, 8),), (randn(5, 8),)


class Int8Weight(nn.Module):
    """Weights in int8 with one scale per row, dequantised as they are used."""

    def __init__(self) -> None:
        super().__init__()
        weight = randn(6, 8)
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight.float() * self.scale).T


@case("x.0", "x.1")
def int8_weights():
    return Int8Weight(), (randn(2, 3, 8),), (randn(3, 5, 8),)


class Int4Weight(nn.Module):
    """Two weights in a byte, in groups of four."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("packed", torch.randint(0, 256, (6, 4), dtype=torch.uint8))
        self.register_buffer("scale", torch.rand(6, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        low, high = self.packed & 0xF, self.packed >> 4
        weight = torch.stack([low, high], -1).view(6, 2, 4).float() - 8
        return x @ (weight * self.scale).view(6, 8).T


@case("x.0", "x.1")
def int4_weights_packed():
    return Int4Weight(), (randn(2, 3, 8),), (randn(3, 5, 8),)


@case("x.0")
def half_precision():
    return _mlp().half(), (randn(2, 8).half(),), (randn(5, 8).half(),)


@case("x.0")
def bfloat16_weights():
    class Mixed(nn.Module):
        """A body in bfloat16 between float32 ends."""

        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(8, 8).bfloat16()

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x.bfloat16()).float()

    return Mixed(), (randn(2, 8),), (randn(5, 8),)


@case("x.0")
def double_precision():
    return _mlp().double(), (randn(2, 8).double(),), (randn(5, 8).double(),)


class PerTensor(nn.Module):
    """Fake quantisation called as functions."""

    def forward(self, x: Tensor) -> Tensor:
        x = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127)
        return torch.fake_quantize_per_channel_affine(
            x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32), 1, 0, 255
        )


@case("x.0")
def fake_quantised_by_functions():
    return PerTensor(), (randn(2, 3, 4),), (randn(5, 3, 4),)
