"""Modules of Python with ScriptModules among their parts, however these were made."""

import io

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu

import entrepot as ep

pytestmark = pytest.mark.filterwarnings("ignore")  # torch announces the end of TorchScript


class Steps(nn.Module):
    """As many steps as it is told."""

    def __init__(self):
        super().__init__()
        self.cell, self.scale = nn.GRUCell(3, 3), 0.5

    def forward(self, state: torch.Tensor, count: int) -> list[torch.Tensor]:
        steps: list[torch.Tensor] = []
        for _ in range(count):
            state = self.cell(state * self.scale, state)
            steps.append(state)
        return steps


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.LSTM(3, 3, batch_first=True), nn.LSTM(3, 3, batch_first=True)])
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)[0]
        return x + self.shift


class Activated(nn.Module):
    """Has a function, which a script does not keep."""

    def __init__(self):
        super().__init__()
        self.linear, self.act = nn.Linear(3, 3), gelu

    def forward(self, x):
        return self.act(self.linear(x))


class Around(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x) * 2


class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(Steps())

    def forward(self, x):
        return torch.stack(self.part(x.mean(1), x.shape[1]), 1)


def _loaded(module):
    saved = io.BytesIO()
    torch.jit.save(torch.jit.script(module), saved)
    saved.seek(0)
    return torch.jit.load(saved)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Around(torch.jit.script(Recurrent())),
        lambda: Around(torch.jit.script(Activated())),
        lambda: Around(_loaded(Activated())),
        lambda: Around(torch.jit.trace(Activated(), torch.randn(2, 4, 3))),
        lambda: nn.Sequential(Around(torch.jit.script(nn.Linear(3, 3))), nn.ReLU()),
        Unrolled,
    ],
    ids=["recurrent", "function", "loaded", "traced", "nested", "unrolled"],
)
def test_a_scripted_part_is_captured_with_the_axes_that_vary(make):
    module = make().eval()
    before = dict(module.named_modules())
    model = ep.export(module, torch.randn(2, 4, 3), progress=False)
    assert dict(module.named_modules()) == before
    assert set(dict(module.named_parameters())) <= set(model.ir.graph.initializers) | _of_recurrences(module)
    session = ep.Session(model, providers=["onnxruntime"])
    for shape in ((1, 7, 3), (5, 2, 3)):
        x = torch.randn(shape)
        (found,) = session.run({model.inputs[0].name: x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-4, atol=1e-5)


def _of_recurrences(module):
    """The weights whose gates ONNX has in another order."""
    return {name for name, _ in module.named_parameters() if "_ih" in name or "_hh" in name}
