"""ScriptModules: what torch.onnx cannot translate, or gets wrong, is read node by node."""

# no `from __future__ import annotations`: TorchScript reads the annotations

from typing import Dict, List, Optional, Tuple  # noqa: UP035 - TorchScript wants them in function bodies

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

import entrepot as ep
from entrepot.exporters.structure import flatten
from entrepot.exporters.torch.scripts.reader import Reader
from entrepot.ir.errors import ConversionError, UnsupportedOpError

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
pytestmark = pytest.mark.filterwarnings("ignore")  # torch announces the end of TorchScript


class InList(nn.Module):
    """Looks for a constant in a constant list."""

    kinds: List[str]  # noqa: UP006

    def __init__(self) -> None:
        super().__init__()
        self.kinds, self.kind = ["relu", "tanh"], "tanh"

    def forward(self, x):
        if self.kind in self.kinds:
            x = torch.tanh(x)
        return x


class Dicts(nn.Module):
    """Returns a dict."""

    def forward(self, x: Tensor) -> Dict[str, Tensor]:  # noqa: UP006
        made = {"a": x + 1}
        made["b"] = made["a"] * 2
        return made


class DictSum(nn.Module):
    """Fills a dict and walks it."""

    def forward(self, x: Tensor):
        made: Dict[str, Tensor] = {}  # noqa: UP006
        for i in range(3):
            made[str(i)] = x * i
        y = torch.zeros_like(x)
        for _, value in made.items():
            y = y + value
        return y


class Lists(nn.Module):
    """Collects rows in a list."""

    def forward(self, x: Tensor):
        rows: List[Tensor] = []  # noqa: UP006
        for i in range(x.size(0)):
            rows.append(x[i] * i)
        return torch.stack(rows)


class Branch(nn.Module):
    """Branches on values, twice."""

    def forward(self, x: Tensor):
        positive = bool(x.sum() > 0) and not bool(x.max() < 0)
        if positive:
            y = x * 2
        else:
            y = x - 1
        return y if bool(y.sum() > 1) else -y


class Optionals(nn.Module):
    """An input that may be missing."""

    def forward(self, x: Tensor, mask: Optional[Tensor] = None):  # noqa: UP045
        if mask is not None:
            x = x * mask
        return x + 1


class Submodules(nn.Module):
    """Lists and dicts of modules, some left out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.skipped: List[int] = [1]  # noqa: UP006

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i not in self.skipped:
                x = layer(x)
        for _, layer in self.named.items():
            x = layer(x)
        return x


class Text(nn.Module):
    """Asserts and raises."""

    mode: str

    def __init__(self) -> None:
        super().__init__()
        self.mode = "b"

    def forward(self, x):
        assert self.mode in ("a", "b"), "bad"
        if self.mode == "a":
            return x
        elif self.mode == "b":  # noqa: RET505
            return x * 2
        raise ValueError("no {}".format(self.mode))  # noqa: UP032


class Tuples(nn.Module):
    """Returns a tuple in a tuple, with a size."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Tuple[Tensor, int]]:  # noqa: UP006
        a, b = x.chunk(2, 1)
        return a, (b, x.size(0))


class Mixed(nn.Module):
    """A traced module inside a scripted one."""

    def __init__(self) -> None:
        super().__init__()
        self.traced = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), X)
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        y = self.traced(x)
        if y.size(1) == 4:
            y = self.linear(y)
        return y


class Jumps(nn.Module):
    """``continue`` and ``break``."""

    def forward(self, x: Tensor):
        out = x
        for i in range(4):
            if i == 2:
                continue
            if i == 3:
                break
            out = out + i
        return out


class Comprehension(nn.Module):
    """A list comprehension over a tensor."""

    def forward(self, x: Tensor):
        return torch.cat([F.relu(row) for row in x.unbind(1)], 0)


class Named(nn.Module):
    """Values and indices."""

    def forward(self, x):
        values, indices = x.max(1)
        return values, indices


class Attention(nn.Module):
    """Attention over rows."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x[None], x[None], x[None], need_weights=False)[0]


class Recurrent(nn.Module):
    """An LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5)

    def forward(self, x):
        return self.lstm(x[:, None])[0]


class Writes(nn.Module):
    """Writes into a copy."""

    def forward(self, x):
        y = x.clone()
        y[:, 1:3] = 0
        y[0] += 1
        return y


class Types(nn.Module):
    """Element types and memory formats that TorchScript writes as numbers."""

    def forward(self, x):
        return (
            x.to(torch.float64).sum(dtype=torch.float32) + torch.ones([2], dtype=x.dtype) + torch.tensor([1, 2]).float()
        )


class Pooled(nn.Module):
    """Resizes an image."""

    def forward(self, x):
        return F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear", align_corners=False)


KINDS = [
    InList, Dicts, DictSum, Lists, Branch, Optionals, Submodules, Text, Tuples, Mixed, Jumps, Comprehension, Named,
    Attention, Recurrent, Writes, Types, Pooled,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_reader_computes_what_the_script_does(kind: type[nn.Module]) -> None:
    script = torch.jit.script(kind().eval())
    reader = Reader(script)
    inputs = [(X,), (-X,)] + [(X, X.abs())] * (kind is Optionals)
    for given in inputs:
        for a, b in zip(flatten(reader(*given)).tensors, flatten(script(*given)).tensors, strict=True):
            torch.testing.assert_close(a, b)
    assert [name for name, _ in reader.named_parameters()] == [name for name, _ in script.named_parameters()]


@pytest.mark.parametrize("kind", [Dicts, DictSum, Tuples, Comprehension, Mixed, Attention, Recurrent])
def test_what_torch_cannot_translate_is_exported(kind: type[nn.Module]) -> None:
    model = ep.export(torch.jit.script(kind().eval()), X)
    assert model.report
    assert isinstance(model.inputs[0].shape[0], str)


class Simple(nn.Module):
    """Branches on values."""

    def forward(self, x: Tensor):
        if x.sum() > 0:
            return x * 2
        return x - 1


def test_a_branch_on_values_stays_a_branch() -> None:
    model = ep.export(torch.jit.script(Simple()), X)
    assert model.report
    assert "If" in [node.op_type for node in model.ir.graph]


class OtherRanks(nn.Module):
    """Returns another number of axes, or another size, where its first number is positive."""

    def __init__(self, narrow: bool):
        super().__init__()
        self.narrow = narrow

    def forward(self, x: Tensor):
        if x[0, 0].item() > 0:
            y = torch.cat([x, x], 1) if self.narrow else x.sum(1)
        else:
            y = x
        return y.relu()


@pytest.mark.parametrize("narrow", [True, False])
def test_outputs_declare_nothing_that_does_not_hold(narrow: bool) -> None:
    module, x = OtherRanks(narrow), torch.linspace(-1, 1, 12).reshape(3, 4)
    model = ep.export(module, x)
    declared = model.outputs[0].shape
    for given in (x, -x):
        found = ep.Session(model).run({"x": given})["output"].shape
        assert declared is None or len(declared) == len(found)
        assert all(not isinstance(size, int) or size == real for size, real in zip(declared or (), found, strict=False))


class Endless(nn.Module):
    """Ends when a tensor says so."""

    def forward(self, x: Tensor):
        while bool(x.abs().max() > 0.01):
            x = x / 2
        return x


class Impure(nn.Module):
    """Appends in one branch only."""

    def forward(self, x: Tensor):
        parts: List[Tensor] = []  # noqa: UP006
        if bool(x.sum() > 0):
            parts.append(x)
        parts.append(x + 1)
        return torch.cat(parts)


@pytest.mark.parametrize(
    ("kind", "message"),
    [(Endless, "ends when a tensor says so"), (Impure, r"decides on changes something, by aten::append")],
)
def test_the_reader_refuses_what_it_cannot_follow(kind: type[nn.Module], message: str) -> None:
    with pytest.raises(UnsupportedOpError, match=message + ".*test_scripts.py"):
        Reader(torch.jit.script(kind()))(X)


class Remembers(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Dict[str, Tensor]:  # noqa: UP006
        self.calls += 1
        return {"y": x}


def test_a_script_that_changes_itself_is_refused() -> None:
    with pytest.raises(ConversionError, match=r"changes the attribute 'calls'"):
        ep.export(torch.jit.script(Remembers()), X)


class NeverEmpty(nn.Module):
    """A branch that nothing takes makes a shape of nothing, with a size to find."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.isnan().all()):
            return torch.zeros(0, 4).reshape(0, -1).sum() + x
        return x * 2


def test_a_shape_of_nothing_with_a_size_to_find_does_not_end_the_process():
    with pytest.raises(ConversionError, match="a shape of -1 and 0 may mean any size"):
        ep.export(torch.jit.script(NeverEmpty()), X, progress=False)


class TwoTables(nn.Module):
    """Two tables of one rank, filled beside each other."""

    def forward(self, x):
        total, count = x.new_zeros(2, x.shape[0], x.shape[1]), x.new_zeros(1, 1, x.shape[1])
        for at in range(x.shape[0]):
            for to in range(x.shape[1]):
                total[:, at:, to:] += x[at, to]
                count[:, :, to:] += 1
        return total, count


def test_what_nested_loops_carry_is_not_said_to_be_alike() -> None:
    model = ep.export(torch.jit.script(TwoTables().eval()), X)
    module = ep.to_torch(model)
    other = X[:2, :3].contiguous()
    for one, expected in zip(module(other), TwoTables()(other), strict=True):
        torch.testing.assert_close(one, expected)
