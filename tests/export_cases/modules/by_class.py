"""Square samples, heads as many as rows, lists that some classes or rows give something to, results by row."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn, tensor

from tests.export_cases.case import case


class SquarePeaks(nn.Module):
    """The best peaks of a heat map, with the sizes and offsets that other maps have there."""

    def forward(self, heat: Tensor, size: Tensor, offset: Tensor) -> Tensor:
        batch, kinds, _, width = heat.shape
        heat = heat.sigmoid()
        scores, at = heat.view(batch, kinds, -1).topk(3)
        at = at.view(batch, -1)
        columns, rows = (at % width).float(), torch.div(at, width, rounding_mode="floor").float()

        def read(values: Tensor) -> Tensor:
            values = values.permute(0, 2, 3, 1).reshape(batch, -1, values.shape[1])
            return values.gather(1, at[..., None].expand(-1, -1, values.shape[2]))

        centre = torch.stack([columns, rows], -1) + read(offset)
        half = read(size) / 2
        return torch.cat([centre - half, centre + half, scores.view(batch, -1, 1)], -1)


def _maps(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    return tuple(randn(batch, 2, height, width) for _ in range(3))


@case("heat.0", "heat.2", "heat.3", "size.2", "size.3", "offset.2", "offset.3")
def peaks_of_a_square():
    return SquarePeaks(), _maps(2, 8, 8), _maps(1, 9, 5), _maps(3, 4, 12)


class GridsInLists(nn.Module):
    """A grid for each level, made anew where the size is another."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Conv2d(channels, 10, 1) for channels in (4, 6))
        self.grids = [torch.empty(0), torch.empty(0)]

    def forward(self, maps: list[Tensor]) -> Tensor:
        found = []
        for at, head in enumerate(self.heads):
            y = head(maps[at])
            batch, _, height, width = y.shape
            y = y.view(batch, 2, 5, height, width).permute(0, 1, 3, 4, 2).contiguous()
            if self.grids[at].shape[2:4] != y.shape[2:4]:
                rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
                self.grids[at] = torch.stack((columns, rows), 2).expand(1, 2, height, width, 2) - 0.5
            where, rest = y.sigmoid().split((2, 3), 4)
            found.append(torch.cat([(where * 2 + self.grids[at]) * 8 * 2**at, rest], 4).view(batch, -1, 5))
        return torch.cat(found, 1)


@case("maps.0.2", "maps.0.3", "maps.1.2", "maps.1.3")
def grids_kept_in_lists():
    calls = [([randn(b, 4, 2 * h, 2 * w), randn(b, 6, h, w)],) for b, h, w in ((2, 3, 3), (1, 2, 5), (2, 4, 1))]
    return GridsInLists(), *calls


class Entries(nn.Module):
    """What detectors return: an entry for each picture."""

    def forward(self, logits: Tensor, boxes: Tensor, sizes: Tensor) -> list[dict[str, Tensor]]:
        scores, labels = logits.softmax(-1)[..., :-1].max(-1)
        centre, extent = boxes.split(2, -1)
        corners = torch.cat([centre - extent / 2, centre + extent / 2], -1) * sizes.flip(1).repeat(1, 2)[:, None]
        return [{"scores": s, "labels": k, "boxes": b} for s, k, b in zip(scores, labels, corners, strict=False)]


@case("logits.1", "boxes.1")
def an_entry_for_each_picture():
    calls = [(randn(2, n, 4), rand(2, n, 4), tensor([[40.0, 50.0], [30.0, 20.0]])) for n in (5, 3, 8)]
    return Entries(), *calls


class Horizon(nn.Module):
    """Steps through what is known, then two more with what is known of the time after it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(3, 6), nn.Linear(6, 1)

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        length, batch, _ = x.shape
        state = x.new_zeros(batch, 6), x.new_zeros(batch, 6)
        for t in range(length):
            state = self.cell(torch.cat([x[t], known[t]], -1), state)
        made = torch.zeros(batch, 3)
        for ahead in range(3):
            y = self.out(state[0])
            made[:, ahead] = y[:, 0]
            if ahead < 2:
                late = known[length + ahead : length + ahead + 1]
                state = self.cell(torch.cat([y[None], late], -1)[0], state)
        return made


@case("x.0", "x.1", "known.0")
def a_horizon_beyond_what_is_known():
    return Horizon(), *((randn(t, b, 1), randn(t + 2, b, 2)) for t, b in ((4, 3), (7, 2), (1, 4)))


class MeanIoU(nn.Module):
    """Over the classes that occur."""

    def forward(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        found, made = logits.argmax(1), []
        for kind in range(3):
            mine, theirs = found == kind, labels == kind
            union = (mine | theirs).sum()
            if union == 0:
                continue
            made.append((mine & theirs).sum().float() / union)
        return torch.stack(made).mean(), sum(made) / len(made)


@case("logits.0", "logits.2", "labels.0", "labels.1")
def mean_iou_of_the_classes_that_occur():
    few = randn(1, 3, 4) * 0 + tensor([1.0, 0.0, 0.0])[None, :, None]
    calls = [(randn(b, 3, n), randint(0, 3, (b, n))) for b, n in ((2, 6), (3, 9))]
    return MeanIoU(), *calls, (few, torch.zeros(1, 4, dtype=torch.int64))


class SwitchByLists(nn.Module):
    """The rows of each expert, as many as fit; the rest go past."""

    def __init__(self) -> None:
        super().__init__()
        self.switch = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shape, x = x.shape, x.view(-1, x.shape[-1])
        best, routes = self.switch(x).softmax(-1).max(-1)
        rows = [torch.eq(routes, at).nonzero(as_tuple=True)[0] for at in range(3)]
        capacity = int(1.25 * len(x) / 3)
        counts = x.new_tensor([len(rows[at]) for at in range(3)])
        dropped, out = [], torch.zeros_like(x)
        for at in range(3):
            if len(rows[at]) <= capacity:
                continue
            dropped.append(rows[at][capacity:])
            rows[at] = rows[at][:capacity]
        for at in range(3):
            out[rows[at], :] = self.experts[at](x[rows[at], :])
        if dropped:
            rest = torch.cat(dropped)
            out[rest, :] = x[rest, :]
        return (out * best[:, None]).view(shape), counts


@case("x.0", "x.1")
def a_switch_by_lists():
    return SwitchByLists(), (randn(4, 2, 4),), (randn(7, 3, 4),), (randn(2, 1, 4),)


class BestOfEachClass(nn.Module):
    """Boxes class by class, for as many classes as there are scores."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found, best, kinds = [], [], []
        for kind in range(scores.shape[1]):
            kept = scores[:, kind] > 0.5
            if not kept.any():
                continue
            found.append(boxes[kept])
            best.append(scores[kept, kind])
            kinds.append(torch.full_like(scores[kept, kind], kind, dtype=torch.int64))
        if not found:
            return boxes.new_zeros(0, 4), scores.new_zeros(0), torch.zeros(0, dtype=torch.int64)
        return torch.cat(found), torch.cat(best), torch.cat(kinds)


@case("boxes.0", "scores.0", "scores.1")
def boxes_class_by_class():
    return (
        BestOfEachClass(),
        *((randn(n, 4), rand(n, k)) for n, k in ((6, 3), (9, 2), (1, 5))),
        (
            randn(3, 4),
            torch.zeros(3, 2),
        ),
    )


class PairTables(nn.Module):
    """Tables of what Python computes for each pair of places."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        length, order = x.shape[1], []
        for row in range(length):
            for column in range(length):
                order.append(row * length + column)
        decay = torch.tensor([[0.5 ** abs(i - j) for j in range(length)] for i in range(length)])
        return F.softmax(x @ x.transpose(1, 2), -1) * decay, torch.tensor(order)


@case("x.0", "x.1", "x.2")
def tables_of_pairs():
    return PairTables(), (randn(2, 4, 3),), (randn(1, 7, 5),), (randn(3, 2, 2),)
