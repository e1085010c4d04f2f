"""ScriptModules with loops over a length, around cells of recurrent networks: the file takes every length."""

# no `from __future__ import annotations`: TorchScript reads the annotations

from typing import List, Optional, Tuple  # noqa: UP035 - TorchScript wants them in function bodies

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import entrepot as ep

pytestmark = pytest.mark.filterwarnings("ignore")  # torch announces the end of TorchScript


class Stacked(nn.Module):
    """A state for every step."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 4)
        outs: List[Tensor] = []  # noqa: UP006
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            outs.append(h)
        return torch.stack(outs, 1)


class Written(Stacked):
    """The same, written into a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        h, outs = torch.zeros(x.size(0), 4), torch.zeros(x.size(0), x.size(1), 4)
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            outs[:, t] = h
        return outs


class Scaled(Stacked):
    """The last state, with numbers, text and None for arguments."""

    def forward(
        self,
        x: Tensor,
        scale: float = 0.5,
        twice: bool = False,
        kind: str = "a",
        mask: Optional[Tensor] = None,  # noqa: UP045
    ) -> Tensor:
        h = torch.zeros(x.size(0), 4)
        if mask is not None:
            x = x * mask[:, :, None]
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h) * scale
            if twice:
                h = h * 2
            if kind == "a":
                h = h + 1
        return h


class Unbound(Stacked):
    """Over the steps themselves, from the last one, with a state of two; as torch's own custom LSTM is written."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__(cell)
        self.gates, self.norm = nn.Linear(7, 16), nn.LayerNorm(16)

    def step(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        h, c = state
        enter, keep, new, leave = self.norm(self.gates(torch.cat([x, h], 1))).chunk(4, 1)
        c = torch.sigmoid(keep) * c + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(c), c

    def forward(self, x: Tensor) -> Tensor:
        steps = x.unbind(1)
        state = (torch.zeros(x.size(0), 4), torch.zeros(x.size(0), 4))
        outs: List[Tensor] = []  # noqa: UP006
        for i in range(len(steps)):
            state = self.step(steps[-(i + 1)], state)
            outs += [state[0]]
        return torch.stack(outs, 1)


CELLS = {
    "gru": lambda: nn.GRUCell(3, 4),
    "gru without bias": lambda: nn.GRUCell(3, 4, bias=False),
    "tanh": lambda: nn.RNNCell(3, 4),
    "relu": lambda: nn.RNNCell(3, 4, bias=False, nonlinearity="relu"),
}


def scripted(kind: type[Stacked], cell: str) -> torch.jit.ScriptModule:
    """With the same weights at every time, none of which makes numbers grow."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torch.jit.script(kind(CELLS[cell]()).eval())


@pytest.mark.parametrize(
    ("kind", "cell"),
    [*((Stacked, name) for name in CELLS), (Written, "gru"), (Unbound, "gru"), (Scaled, "tanh"), (Scaled, "gru")],
)
def test_loops_over_a_length_take_every_length(kind: type[Stacked], cell: str) -> None:
    script = scripted(kind, cell)
    generator = torch.Generator().manual_seed(0)
    model = ep.export(script, torch.randn(2, 5, 3, generator=generator))
    assert isinstance(model.inputs[0].shape[1], str), model.notes
    weights = {"gates.weight", "norm.bias"} if kind is Unbound else {"cell.weight_ih", "cell.weight_hh"}
    assert weights <= model.ir.graph.initializers.keys()
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for length in (1, 2, 8):
        x = torch.randn(3, length, 3, generator=generator)
        with torch.no_grad():
            wanted = script(x).numpy()
        name = model.inputs[0].name
        for found in (
            session.run(None, {name: x.numpy()})[0],
            next(iter(ep.Session(model).run({name: x.numpy()}).values())),
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, strict=True)


def test_other_arguments_than_defaults_are_used_each_time() -> None:
    script, x = scripted(Scaled, "tanh"), torch.ones(2, 4, 3)
    for others in ((0.25, True, "b"), (), (0.25, True, "a"), (0.125,)):
        model = ep.export(script, (x, *others))
        assert model.inputs[0].shape == ("batch", "x_dim1", 3)
        with torch.no_grad():
            wanted = script(x, *others).numpy()
        (found,) = ep.Session(model).run([x.numpy()]).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
