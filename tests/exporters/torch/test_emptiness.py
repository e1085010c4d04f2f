"""Branches that keep code from tensors without elements, and what such code does."""

import pytest
import sympy
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting.emptiness import sufficient_arm
from entrepot.exporters.torch.rewriting.trees import UNDEFINED

COUNT, OTHER = sympy.symbols("u0 u1", integer=True, nonnegative=True)


class Decoded(nn.Module):
    """Boxes of what scores above 0, for each of two classes, as torchvision writes it."""

    def forward(self, scores: torch.Tensor, deltas: torch.Tensor) -> torch.Tensor:
        deltas = deltas[torch.where(scores > 0)[0][:7]]
        total = 0
        for part in [deltas]:
            total += part.size(0)
        if total > 0:
            deltas = deltas.reshape(total, -1)
        boxes = torch.stack([deltas[:, 0::2] - 1, deltas[:, 1::2] + 1], dim=2).flatten(1)
        if total > 0:
            boxes = boxes.reshape(total, -1, 2)
        return boxes[:, 1:].reshape(-1, 2)


@pytest.fixture(scope="module")
def decoded():
    scores = torch.tensor([0.5, -1.0, 2.0, 0.1, -3.0, 1.0])
    return ep.export(Decoded().eval(), (scores, torch.randn(6, 4)), progress=False)


@pytest.mark.parametrize("kept", [0, 1, 5, 12])
def test_a_form_that_only_some_values_give_is_given_always(decoded, kept):
    scores, deltas = torch.cat([torch.rand(kept) + 0.1, -torch.rand(12)]), torch.randn(kept + 12, 4)
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(0))
    feeds = {"scores": scores[order], "deltas": deltas[order]}
    wanted = Decoded()(**feeds)
    assert len(wanted) == min(kept, 7)
    for provider in ("cpu", "onnxruntime"):
        (found,) = (
            ep.Session(decoded, providers=[provider]).run({key: each.numpy() for key, each in feeds.items()}).values()
        )
        torch.testing.assert_close(torch.from_numpy(found), wanted)


def test_it_is_said_where_this_is(decoded):
    assert "tensors without elements have the form that others have" in decoded.metadata["entrepot.notes"]


class Marked(nn.Module):
    """The same, where what has no elements is not all: the result says whether there was anything."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x[x[:, 0] > 0]
        mark = 0.0
        if rows.shape[0] > 0:
            rows, mark = rows.reshape(-1, 2, 2), 1.0
        return rows.sum() + mark


def test_arms_that_leave_other_numbers_are_no_matter_of_form():
    model = ep.export(Marked().eval(), torch.randn(5, 4), progress=False)
    assert "tensors without elements" not in model.metadata["entrepot.notes"]
    for x in (torch.full((3, 4), -1.0), torch.full((3, 4), 1.0)):
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), Marked()(x))


class Routed(nn.Module):
    """A mixture of experts that computes the rows of each expert at once, and leaves out those without any."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.router(x).topk(2).indices
        counts = chosen.new_zeros(len(x), 3).scatter_(1, chosen, 1).sum(0).cpu().numpy()
        order = chosen.view(-1).argsort()
        rows, outputs, start = x[order // 2], [], 0
        for expert, count in zip(self.experts, counts, strict=True):
            if count == 0:
                continue
            outputs.append(expert(rows[start : start + count]))
            start += count
        joined = torch.cat(outputs) if outputs else rows.new_empty(0)
        back = torch.empty_like(joined)
        back[order] = joined
        return back.view(*chosen.shape, -1).sum(1)


@pytest.mark.parametrize("tokens", [1, 2, 9])
def test_no_piece_of_a_joined_list_means_no_row(tokens):
    routed = Routed().eval()
    model = ep.export(routed, torch.randn(5, 4), progress=False)
    assert "tensors without elements have the form that others have" in model.metadata["entrepot.notes"]
    x = torch.randn(tokens, 4)
    (found,) = ep.Session(model).run({"x": x.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), routed(x))


class Counted(nn.Module):
    """A list that is joined if it has two pieces; the rows of one are left out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs = []
        for sign in (-1, 1):
            rows = x[x[:, 0] * sign > 0]
            if len(rows) > 0:
                outputs.append(rows)
        joined = torch.cat(outputs) if len(outputs) >= 2 else x.new_empty(0)
        return joined.sum()


def test_few_pieces_of_a_joined_list_are_no_matter_of_form():
    x = torch.tensor([[1.0, 2.0], [-1.0, 1.0], [2.0, 0.5]])
    model = ep.export(Counted().eval(), x, progress=False)
    assert "tensors without elements" not in model.metadata["entrepot.notes"]


def rows(count, *sizes):
    """A tensor as a capture has it, as far as its sizes go."""

    class Shaped(torch.Tensor):
        shape = (count, *sizes)

    return torch.empty(0).as_subclass(Shaped)


def test_an_arm_is_sufficient_if_the_other_is_taken_where_there_is_nothing():
    pairs = [(rows(COUNT, 2, 4), rows(COUNT, 8))]
    assert sufficient_arm(COUNT > 0, pairs) == 0
    assert sufficient_arm(sympy.Eq(4 * COUNT, 0), pairs) == 1
    assert sufficient_arm(sympy.Min(1000, COUNT) > 0, pairs) == 0
    assert sufficient_arm(COUNT > 1, pairs) is None  # one is something
    assert sufficient_arm(sympy.Eq(COUNT % 8, 0), pairs) is None  # and so are eight
    assert sufficient_arm(COUNT < 1000, pairs) is None
    assert sufficient_arm(COUNT + OTHER > 0, [*pairs, (rows(OTHER), rows(OTHER, 1))]) == 0
    assert sufficient_arm(sympy.And(COUNT > 0, OTHER > 0), [*pairs, (rows(OTHER), rows(OTHER, 1))]) is None


def test_what_else_the_arms_leave_has_to_be_the_same():
    pair, like = (rows(COUNT, 2, 4), rows(COUNT, 8)), torch.empty(3)
    assert sufficient_arm(COUNT > 0, [pair, (like, like)]) == 0
    assert sufficient_arm(COUNT > 0, [pair, (like, torch.empty(3))]) is None
    assert sufficient_arm(COUNT > 0, [pair, (1, 1), (UNDEFINED, UNDEFINED)]) == 0
    assert sufficient_arm(COUNT > 0, [pair, (1, 2)]) is None
    assert sufficient_arm(COUNT > 0, [pair, (1, UNDEFINED)]) is None
    assert sufficient_arm(COUNT > 0, [pair, (1, like)]) is None
    assert sufficient_arm(COUNT > 0, [(rows(COUNT, 2), rows(COUNT, 2).long())]) is None
