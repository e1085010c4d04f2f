"""Rows of tables: mixed columns, sparse choices of columns, splines for edges, soft trees, orders that are learned."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


def sparsemax(z: Tensor) -> Tensor:
    """The projection on the simplex, along the last axis."""
    ordered, _ = z.sort(dim=-1, descending=True)
    ranks = torch.arange(1, z.size(-1) + 1, device=z.device, dtype=z.dtype)
    sums = ordered.cumsum(-1) - 1
    support = (ranks * ordered > sums).sum(-1, keepdim=True)
    return (z - sums.gather(-1, support - 1) / support.to(z.dtype)).clamp(min=0)


class GhostNorm(nn.Module):
    """Batch norms over virtual batches."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        parts = x.chunk(max(1, -(-x.shape[0] // 4)), 0)
        return torch.cat([self.norm(part) for part in parts], 0)


class TabNet(nn.Module):
    """Columns are chosen in steps, each less likely once it was chosen."""

    def __init__(self, columns: int = 6, width: int = 8, steps: int = 3) -> None:
        super().__init__()
        self.first = nn.BatchNorm1d(columns)
        self.shared = nn.Linear(columns, 2 * width)
        self.own = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(steps + 1))
        self.norms = nn.ModuleList(GhostNorm(2 * width) for _ in range(steps + 1))
        self.masks = nn.ModuleList(nn.Linear(width // 2, columns) for _ in range(steps))
        self.out, self.width = nn.Linear(width // 2, 3), width

    def _features(self, x: Tensor, step: int) -> Tensor:
        h = F.glu(self.shared(x))
        return (h + F.glu(self.norms[step](self.own[step](h)))) * 0.5**0.5

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.first(x)
        prior, total, loss = torch.ones_like(x), 0, torch.zeros(())
        half = self.width // 2
        attention = self._features(x, 0)[:, half:]
        for step, chooser in enumerate(self.masks):
            mask = sparsemax(chooser(attention) * prior)
            loss = loss + (mask * torch.log(mask + 1e-10)).sum(1).mean()
            prior = prior * (1.3 - mask)
            h = self._features(mask * x, step + 1)
            total = total + F.relu(h[:, :half])
            attention = h[:, half:]
        return self.out(total), loss


@case("x.0")
def columns_chosen_in_steps():
    return TabNet().eval(), (randn(8, 6),), (randn(12, 6),), (randn(3, 6),)


class FeatureTokens(nn.Module):
    """Numbers, categories and what is missing, as tokens with one of their own."""

    def __init__(self, numbers: int = 3, sizes: tuple[int, ...] = (5, 9)) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(randn(numbers, 8)), nn.Parameter(randn(numbers, 8))
        self.missing = nn.Parameter(randn(numbers, 8))
        self.register_buffer("offsets", torch.tensor([0, *sizes[:-1]]).cumsum(0))
        self.table = nn.Embedding(sum(sizes), 8)
        self.cls = nn.Parameter(randn(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 2)

    def forward(self, row: dict[str, Tensor]) -> dict[str, Tensor]:
        numbers, kinds = row["numbers"], row["kinds"]
        gone = torch.isnan(numbers)
        tokens = torch.nan_to_num(numbers)[..., None] * self.weight + self.bias
        tokens = torch.where(gone[..., None], self.missing, tokens)
        tokens = torch.cat([self.cls.expand(len(tokens), -1, -1), tokens, self.table(kinds + self.offsets)], 1)
        logits = self.head(self.body(tokens)[:, 0])
        return {"logits": logits, "class": logits.argmax(-1), "missing": gone.float().mean()}


@case("row.numbers.0")
def table_of_numbers_and_kinds():
    def inputs(n):
        numbers = randn(n, 3)
        numbers[0, 1] = torch.nan
        return ({"numbers": numbers, "kinds": torch.stack([randint(0, 5, (n,)), randint(0, 9, (n,))], 1)},)

    return FeatureTokens().eval(), inputs(4), inputs(7), inputs(1)


class SplineEdges(nn.Module):
    """A function on each edge, as a spline on a grid (Kolmogorov–Arnold)."""

    def __init__(self, wide: int, out: int, pieces: int = 5, degree: int = 3) -> None:
        super().__init__()
        step = 2 / pieces
        grid = torch.arange(-degree, pieces + degree + 1) * step - 1
        self.register_buffer("grid", grid.expand(wide, -1).contiguous())
        self.base = nn.Parameter(randn(out, wide) * 0.3)
        self.spline = nn.Parameter(randn(out, wide, pieces + degree) * 0.3)
        self.degree = degree

    def forward(self, x: Tensor) -> Tensor:
        shape, grid, x = x.shape, self.grid, x.reshape(-1, x.shape[-1])
        y = x.unsqueeze(-1)
        bases = ((y >= grid[:, :-1]) & (y < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.degree + 1):
            left = (y - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)])
            right = (grid[:, k + 1 :] - y) / (grid[:, k + 1 :] - grid[:, 1:-k])
            bases = left * bases[..., :-1] + right * bases[..., 1:]
        out = F.linear(F.silu(x), self.base) + F.linear(bases.flatten(1), self.spline.flatten(1))
        return out.reshape(*shape[:-1], -1)


@case("input.0", "input.1")
def splines_on_edges():
    module = nn.Sequential(SplineEdges(3, 5), SplineEdges(5, 2))
    return module, (rand(4, 6, 3) * 1.8 - 0.9,), (rand(1, 9, 3) - 0.5,), (rand(2, 3, 3),)


class ObliviousTrees(nn.Module):
    """Soft trees of one question a level; the leaf's weight is a product of its answers."""

    def __init__(self, columns: int = 5, trees: int = 4, depth: int = 3) -> None:
        super().__init__()
        self.choice = nn.Parameter(randn(columns, trees, depth))
        self.threshold, self.scale = nn.Parameter(randn(trees, depth)), nn.Parameter(rand(trees, depth))
        self.response = nn.Parameter(randn(trees, 2, 2**depth))
        codes = 2 ** torch.arange(depth)
        bits = (torch.arange(2**depth)[None] // codes[:, None]) % 2
        self.register_buffer("codes", torch.stack([bits, 1.0 - bits], -1))

    def forward(self, x: Tensor) -> Tensor:
        choice = sparsemax(self.choice.movedim(0, -1)).movedim(-1, 0)
        values = torch.einsum("bi,ind->bnd", x, choice)
        logits = (values - self.threshold) * torch.exp(-self.scale)
        logits = torch.stack([-logits, logits], -1)
        answers = torch.clamp(0.5 * logits + 0.5, 0, 1)
        match = torch.einsum("bnds,dcs->bndc", answers, self.codes)
        return torch.einsum("bnc,nuc->bnu", match.prod(dim=-2), self.response).sum(1)


@case("x.0")
def soft_trees_of_one_question_a_level():
    return ObliviousTrees(), (randn(4, 5),), (randn(1, 5),), (randn(9, 5),)


class Survival(nn.Module):
    """Cox's partial likelihood, and how well the order of risks agrees with that of times."""

    def __init__(self) -> None:
        super().__init__()
        self.risk = nn.Sequential(nn.Linear(4, 8), nn.SELU(), nn.Linear(8, 1))

    def forward(self, x: Tensor, times: Tensor, happened: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        risk = self.risk(x).squeeze(-1)
        order = torch.argsort(times, descending=True)
        ordered, events = risk[order], happened[order].float()
        loss = -((ordered - torch.logcumsumexp(ordered, 0)) * events).sum() / events.sum().clamp(min=1)
        earlier = (times[:, None] < times[None, :]) & happened[:, None]
        agree = ((risk[:, None] > risk[None, :]) & earlier).sum()
        index = agree.float() / earlier.sum().clamp(min=1)
        return risk, loss, index


@case("x.0")
def survival_by_partial_likelihood():
    def inputs(n):
        return randn(n, 4), torch.randperm(n).float() + rand(n) * 0.5, rand(n) > 0.3

    return Survival(), inputs(6), inputs(11), inputs(2)


class Listwise(nn.Module):
    """Documents of queries, padded: likelihood of the right order, and its discounted gain at 3."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(5, 1)

    def forward(self, x: Tensor, grades: Tensor, *, k: int = 3) -> dict[str, Tensor]:
        padded = grades < 0
        scores = self.score(x).squeeze(-1).masked_fill(padded, -1e4)
        by_grade = grades.sort(dim=1, descending=True, stable=True).indices
        s, off = scores.gather(1, by_grade), padded.gather(1, by_grade)
        tails = torch.logcumsumexp(s.flip(1), 1).flip(1)
        loss = (tails - s).masked_fill(off, 0.0).sum(1).mean()
        top = scores.topk(k, 1).indices
        gains = (2.0 ** grades.clamp(min=0) - 1).float()
        discount = 1 / torch.log2(torch.arange(k, device=x.device) + 2.0)
        best = gains.sort(1, descending=True).values[:, :k]
        ndcg = (gains.gather(1, top) * discount).sum(1) / (best * discount).sum(1).clamp(min=1e-6)
        return {"scores": scores, "loss": loss, "ndcg": ndcg}


@case("x.0", "x.1")
def order_of_documents():
    def inputs(b, n):
        grades = randint(0, 4, (b, n))
        grades[:, -1] = -1
        return randn(b, n, 5), grades

    return Listwise(), inputs(2, 7), inputs(1, 4), inputs(3, 9)
