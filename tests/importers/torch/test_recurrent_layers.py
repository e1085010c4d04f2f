"""Recurrent layers come back as the one layer that they were, with its names."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

import entrepot as ep


class Steps(nn.Module):
    """What a layer says at each step."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(4, 6, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


class States(Steps):
    """Goes on from states, and hands them over."""

    def forward(self, x: Tensor, *states: Tensor) -> Any:
        given = states if len(states) > 1 else states[0]
        made, last = self.rnn(x, given)
        return made, last


class Last(Steps):
    """The state of the highest layer alone, as classifiers use it."""

    def forward(self, x: Tensor) -> Tensor:
        last = self.rnn(x)[1]
        return (last[0] if isinstance(last, tuple) else last)[-1]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_layers": 3},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
    {"bidirectional": True, "bias": False},
]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("use", [Steps, Last, States], ids=lambda use: use.__name__)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_stack_is_one_layer_again(kind: str, use: type[Steps], options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    original = use(kind, **options).eval()
    model = ep.export(original, _inputs(original, 5, 3), dynamic=_varying(original), verify=False)
    net = ep.to_torch(model, verify=False)
    assert net.source().count(f"nn.{kind}(") == 1
    assert net.state_dict().keys() == original.state_dict().keys()
    net.load_state_dict(use(kind, **options).state_dict())
    original.load_state_dict(net.state_dict())
    given = _inputs(original, 7, 2)
    expected, made = _flat(original(*given)), _flat(net(*given))
    for left, right in zip(made, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("two", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_activations_may_be_said_that_are_the_default(kind: str, two: bool) -> None:
    original = Steps(kind, bidirectional=two, num_layers=2).eval()
    model = ep.export(original, torch.randn(5, 3, 4), verify=False)
    names = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["Tanh"]}[kind] * (1 + two)
    proto = model.to_proto()
    for node in proto.graph.node:
        if node.op_type == kind and "activations" not in [attribute.name for attribute in node.attribute]:
            node.attribute.append(onnx.helper.make_attribute("activations", names))
    net = ep.to_torch(proto)
    assert net.report.ok
    assert net.source().count(f"nn.{kind}(") == 1


def test_layers_of_which_one_is_read_from_beside_stay_apart() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.low, self.high = nn.GRU(4, 4), nn.GRU(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            y = self.low(x)[0]
            return self.high(y)[0] + y

    original = Residual().eval()
    net = ep.to_torch(ep.export(original, torch.randn(5, 3, 4), verify=False))
    assert net.report.ok
    assert net.state_dict().keys() == original.state_dict().keys()


def test_two_layers_of_one_size_keep_their_names() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.low, self.high = nn.LSTM(6, 6), nn.LSTM(6, 6)

        def forward(self, x: Tensor) -> Tensor:
            return self.high(self.low(x)[0])[0]

    both = Both().eval()
    net = ep.to_torch(ep.export(both, torch.randn(5, 3, 6), verify=False), verify=False)
    assert net.state_dict().keys() == both.state_dict().keys()


def _inputs(module: Steps, length: int, batch: int) -> tuple[Tensor, ...]:
    first = module.rnn.batch_first
    x = torch.randn(batch, length, 4) if first else torch.randn(length, batch, 4)
    if not isinstance(module, States):
        return (x,)
    count = module.rnn.num_layers * (1 + module.rnn.bidirectional)
    return x, *(torch.randn(count, batch, 6) for _ in range(1 + (module.rnn.mode == "LSTM")))


def _varying(module: Steps) -> dict[str, Any]:
    first = module.rnn.batch_first
    names = {"x": {0: "batch", 1: "length"} if first else {0: "length", 1: "batch"}}
    if isinstance(module, States):
        names |= {f"states.{at}": {1: "batch"} for at in range(1 + (module.rnn.mode == "LSTM"))}
    return names


def _flat(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [tensor for each in value for tensor in _flat(each)]
