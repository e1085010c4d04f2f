"""Tables that Python fills row by row, and ways back through them."""

import pytest
import torch
from torch import nn

import entrepot as ep


class Distance(nn.Module):
    """The number of edits between two texts, by rows that are lists of Python's numbers."""

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        before = list(range(len(other) + 1))
        for row, left in enumerate(one.tolist()):
            now = [row + 1]
            for column, right in enumerate(other.tolist()):
                now.append(min(before[column + 1] + 1, now[column] + 1, before[column] + (left != right)))
            before = now
        return torch.tensor(before[-1])


class Warped(nn.Module):
    """Dynamic time warping, and the way back, which stays within the table because of what the loop asks."""

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        costs = (one[:, None] - other[None]).abs()
        table = torch.full((len(one) + 1, len(other) + 1), float("inf"))
        table[0, 0] = 0
        for i in range(1, len(one) + 1):
            for j in range(1, len(other) + 1):
                steps = torch.stack([table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]])
                table[i, j] = costs[i - 1, j - 1] + steps.min()
        i, j, way = len(one), len(other), []
        while i > 0 and j > 0:
            way.append((i - 1, j - 1))
            step = torch.stack([table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]]).argmin()
            if step == 0:
                i, j = i - 1, j - 1
            elif step == 1:
                i = i - 1
            else:
                j = j - 1
        return table[-1, -1], torch.tensor(way[::-1])


@pytest.mark.parametrize("sizes", [(1, 1), (7, 3), (4, 9)])
@pytest.mark.parametrize(
    ("kind", "make"),
    [(Distance, lambda size: torch.randint(0, 3, (size,))), (Warped, torch.randn)],
)
def test_a_table_may_be_of_any_size(kind, make, sizes):
    module = kind().eval()
    model = ep.export(module, (make(5), make(6)), dynamic="all", progress=False)
    feeds = dict(zip(("one", "other"), map(make, sizes), strict=True))
    wanted = module(**feeds)
    found = ep.Session(model).run({name: each.numpy() for name, each in feeds.items()}).values()
    for result, right in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        torch.testing.assert_close(torch.from_numpy(result), right)


class Mixed(nn.Module):
    """A list of whole numbers that is given a fraction."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = [0]
        for t in range(x.shape[0]):
            kept.append(kept[t] + 0.5 if t % 2 else 1)
        return x * torch.tensor(kept[1:])


def test_fractions_are_not_cut_off_in_a_list_of_whole_numbers():
    model = ep.export(Mixed().eval(), torch.randn(6), progress=False)
    x = torch.randn(6)
    (found,) = ep.Session(model).run({"x": x.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), Mixed()(x))
