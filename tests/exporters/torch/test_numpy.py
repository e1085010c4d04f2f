"""NumPy in forward: what it makes of sizes follows them, and NumPy itself is as it was afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy import triu
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.capture.numpy_arrays import numpy_of_sizes


class Subsequent(nn.Module):
    """A mask of what comes later, as in *The Annotated Transformer*."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (1, x.size(1), x.size(1))
        mask = torch.from_numpy(np.triu(np.ones(shape), k=1).astype("uint8")) == 0
        return (x @ x.transpose(1, 2)).masked_fill(~mask, -1e9).softmax(-1)


class OfType(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lower = np.tril(np.ones((x.size(1), x.size(1)), dtype=np.float64)).astype(np.float32)
        return x.transpose(1, 2) @ torch.from_numpy(lower * np.arange(1, 2, dtype=np.float32))


class Sinusoids(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places, axis = np.arange(x.shape[1])[:, np.newaxis], np.arange(6)[np.newaxis, :]
        angles = places / np.power(10000, (2 * (axis // 2)) / np.float32(6))
        angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
        return x + torch.tensor(angles, dtype=x.dtype)


class Chosen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, np.linspace(0, x.size(1) - 1, 4).astype(int)]


class Coordinates(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = np.meshgrid(np.linspace(-1, 1, x.shape[1]), np.linspace(0, 1, x.shape[2]), indexing="ij")
        return x + torch.as_tensor(np.stack([rows, columns]).sum(0)).to(x)


class ByName(nn.Module):
    """With a function that was imported by its name, and one of all pairs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        band = np.abs(np.subtract.outer(np.arange(x.size(1)), np.arange(x.size(1)))) <= 2
        return x.transpose(1, 2) @ torch.from_numpy(triu(band).astype("float32"))


class Table(nn.Module):
    """A table of NumPy's that is cut to the length."""

    def __init__(self) -> None:
        super().__init__()
        self.table = np.arange(64 * 6, dtype=np.float32).reshape(64, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.from_numpy(self.table[: x.size(1)]) * torch.from_numpy(self.table[None, 1 : x.size(1) + 1, :6])


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], int(np.prod(x.shape[1:]))) / np.sqrt(x.shape[1]) + np.float32(2)


class Converted(nn.Module):
    """Numbers of NumPy's kinds, as ``astype``, ``item`` and the kinds themselves make them of sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        few = 2 * np.ceil(np.log(length)).astype("int").item()
        few = min(length, few)
        rows = np.floor(np.sqrt(length)).astype(np.int64)
        scale = np.sqrt(length).astype(float) / np.float32(length) + np.power(x.shape[0], 2) - np.int64(length // 2)
        return x.topk(few, 1)[0].sum(1, keepdim=True) * scale + x[:, : int(rows)].mean(1, keepdim=True) + x


class Doubles(nn.Module):
    """Arrays of sizes beside NumPy's own numbers, which a list of scales is made of."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = []
        for scale in np.array([2.0, 2 ** (1 / 3)]):
            places = np.arange(0.5, x.shape[1], 1)
            made.append(np.float32(3) * (places - 4.0 * scale) / np.int64(2) + np.arange(x.shape[1]) * scale)
        return x + torch.from_numpy(np.vstack(made).astype(np.float32)).sum(0)[:, None]


class Tiled(nn.Module):
    """Arrays of ranges and lists, made into tensors by the names of their types."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.LongTensor(np.tile(np.array(range(x.shape[1])), [x.shape[0], 1]))
        halves = np.asarray([0.5 * i for i in range(x.shape[1])])
        return x + (places + torch.Tensor(halves) + torch.FloatTensor(np.arange(x.shape[1])))[..., None]


class Grids(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = np.mgrid[: x.shape[1], 1 : 2 * x.shape[2] : 2]
        return x + torch.from_numpy(rows - 0.5 * columns + np.mgrid[2 : x.shape[2] + 2]).float()


class GoneThrough(nn.Module):
    """Arrays that a loop, a list of windows and ``zip`` go through, by their elements or by their rows."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        count = x.shape[1]
        starts = np.arange(0, count - 3, 2)
        seen = torch.zeros(count)
        for start in starts:
            seen[start : start + 4] += 1
        for at, weight in zip(list(starts), np.hanning(count), strict=False):
            x = x + at * weight
        for row in np.stack([starts, starts + 1], 1):
            x = x + torch.from_numpy(row).sum()
        return torch.stack([x[:, int(at) : int(at) + 4] for at in starts], 1).mean(1), seen


KINDS = (
    Subsequent,
    OfType,
    Sinusoids,
    Chosen,
    Coordinates,
    ByName,
    Table,
    Numbers,
    Converted,
    Doubles,
    Tiled,
    Grids,
    GoneThrough,
)
MODULES = [kind() for kind in KINDS]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_arrays_follow_sizes(module: nn.Module) -> None:
    exported = ep.export(module, torch.randn(2, 7, 6), progress=False)
    assert not isinstance(exported.inputs[0].shape[1], int)
    session = ep.Session(exported)
    for rows, length in ((1, 4), (3, 12)):
        x = torch.randn(rows, length, 6)
        found = session.run({"x": x}).values()
        expected = module(x)
        for one, value in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            torch.testing.assert_close(torch.from_numpy(one), value)


class Lengths(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counts = lengths.cpu().numpy()
        seen = torch.from_numpy(np.arange(x.shape[1])[None] < counts[:, None])
        return x * seen[..., None], x[:, : int(counts.max())] * float(counts.max())


def test_arrays_of_tensors() -> None:
    module = Lengths()
    exported = ep.export(module, (torch.randn(3, 9, 2), torch.tensor([2, 9, 4])), progress=False)
    x, lengths = torch.randn(2, 6, 2), torch.tensor([1, 5])
    found = ep.Session(exported).run({"x": x, "lengths": lengths})
    for got, wanted in zip(found.values(), module(x, lengths), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), wanted)


class Padded(nn.Module):
    """An element of an array decides, and becomes a number of Python's in one of two ways."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        count = lengths.numpy()[0]
        if count % 2 != 0:
            longer = count + 1
            rows = torch.cat([x, torch.zeros([longer - count, x.shape[1]])])
        else:
            longer = 4
            rows = x
        return rows[:2] * torch.tensor(longer)


def test_an_element_of_an_array_decides() -> None:
    module = Padded().eval()
    exported = ep.export(module, (torch.randn(6, 2), torch.tensor([2, 7])), progress=False)
    assert not [note for note in exported.notes if "no input was found" in note]
    for counts in ([5, 1], [8, 3], [1, 1]):
        x, lengths = torch.randn(4, 2), torch.tensor(counts)
        (found,) = ep.Session(exported).run({"x": x, "lengths": lengths}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x, lengths))


def test_numpy_is_itself_for_others_and_afterwards() -> None:
    before = dict(vars(np))

    def fail() -> None:
        with numpy_of_sizes():
            assert np.sin is not before["sin"]
            assert np.sin == before["sin"]
            assert np.add.reduce([1, 2]) == 3
            assert np.mgrid[:2].tolist() == [0, 1]
            assert type(np.ones(3)) is np.ndarray
            assert type(np.asarray(torch.ones(3))) is np.ndarray  # as in another thread
            raise ValueError("within")

    with pytest.raises(ValueError, match="within"):
        fail()
    assert all(vars(np)[name] is value for name, value in before.items())
    assert type(torch.from_numpy(np.ones(2))) is torch.Tensor


class Sorted(nn.Module):
    """Tokens sorted by the layer that each is for, and how many there are of each, as NumPy's numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = x[:, :3].argmax(1)
        order = chosen.argsort(stable=True)
        counts = torch.zeros(3, dtype=torch.long).index_add(0, chosen, torch.ones_like(chosen)).cpu().numpy()
        rows, made, start = x[order], [], 0
        for layer, count in zip(self.layers, counts, strict=True):
            end = start + count
            if count == 0:
                continue
            made.append(layer(rows[start:end]))
            start = end
        result = torch.empty_like(x)
        result[order] = torch.cat(made)
        return result


def test_bounds_of_slices_are_numbers_of_an_array() -> None:
    module = Sorted()
    model = ep.export(module, torch.randn(6, 4), progress=False)
    assert [*model.inputs[0].shape] == ["batch", 4]
    x = torch.randn(9, 4)
    x[:, 1] = -9.0  # a layer that no token is for
    with torch.no_grad():
        wanted = module(x).numpy()
    (found,) = ep.Session(model).run({model.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
