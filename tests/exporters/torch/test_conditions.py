import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.axes.conditions import holding_range
from entrepot.exporters.torch.messages import of_size

SIZE = "L['tensors'][0].size()[1]"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"3 <= {SIZE} and {SIZE} <= IntInfinity()", (3, math.inf)),
        (f"min(64, {SIZE}) == {SIZE}.", (1, 64)),
        (f"{SIZE} == min(131072, {SIZE}).", (1, 131072)),
        (f"((-2) + {SIZE}) != 1.", (4, math.inf)),
        (f"2*({SIZE} // 2) < 1 + {SIZE}.", (1, math.inf)),
        (f"Mod({SIZE}, 4) == 0", (8, 8)),
        (f"{SIZE} <= 20 or {SIZE} > 30", (1, 20)),
        (f"TruncToInt(FloatPow(ToFloat(({SIZE} // 2)*({SIZE} // 2)), 0.5)) <= 6", (1, 13)),
        (f"{SIZE} > 9", None),
        (f"L['tensors'][1].size()[1] == {SIZE}", None),
        (f"Unheard({SIZE}) < 3", None),
        (f"{SIZE} <", None),
    ],
)
def test_a_condition_holds_between_a_smallest_and_a_largest_size(condition, expected):
    understood = of_size(condition, frozenset({(0, 1)}))
    found = None if understood is None else holding_range(understood, 8)
    assert found == expected


class Table(nn.Module):
    """Learned positions in a buffer of thirty-two, and what the last three steps say."""

    def __init__(self):
        super().__init__()
        self.register_buffer("positions", torch.randn(1, 32, 4))

    def forward(self, x):
        x = x + self.positions[:, : x.shape[1]]
        return x, x[:, -3:]


def test_a_length_is_dynamic_up_to_the_end_of_a_buffer():
    model = ep.export(Table(), torch.randn(2, 8, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1", 4)
    assert model.report.ok


class Reading(nn.Module):
    """Reads as many rows of the mask as there are ids, as models with index masks do."""

    def __init__(self):
        super().__init__()
        self.ids = nn.Embedding(9, 4)

    def forward(self, ids, mask):
        rows = torch.arange(ids.shape[0])[:, None]
        columns = torch.arange(ids.shape[1])[None]
        return self.ids(ids) * mask[rows, columns].unsqueeze(-1)


def test_inputs_share_a_batch_even_where_one_of_them_may_have_more_rows():
    model = ep.export(Reading(), (torch.randint(9, (3, 5)), torch.ones(3, 5)))
    assert [spec.shape for spec in model.inputs] == [("batch", "sequence")] * 2


class LookedUp(nn.Module):
    """Each token's row of a table that may be longer than there are tokens, as a draft and its target are."""

    def forward(self, tokens, table):
        return table.gather(1, tokens)


def test_what_must_not_be_shorter_than_another_input_has_no_smallest_size_of_its_own():
    model = ep.export(LookedUp(), (torch.randint(5, (4, 6)), torch.randn(7, 5)))
    assert not any(">= " in condition for condition in model.conditions)
    tokens, table = torch.randint(5, (2, 3)), torch.randn(3, 5)
    found = ep.Session(model).run([tokens.numpy(), table.numpy()])["output"]
    torch.testing.assert_close(torch.from_numpy(found), table.gather(1, tokens), rtol=0, atol=0)


class Window(nn.Module):
    """What is further back than a window is forgotten, in ways that differ before and after that."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x, mask):
        if mask.shape[1] < x.shape[1]:
            mask = nn.functional.pad(mask, (0, x.shape[1] - mask.shape[1]))
        x = x * mask[:, : x.shape[1], None]
        kept = x[:, -self.size :]
        return x.cumsum(1) if kept.shape[1] == x.shape[1] else kept


def test_a_far_condition_is_stated_and_the_axis_dynamic_up_to_it():
    model = ep.export(Window(5000), (torch.randn(2, 7, 3), torch.ones(2, 7)), progress=False)
    assert [spec.shape for spec in model.inputs] == [("batch", "x_dim1", "x_dim2"), ("batch", "x_dim1")]
    session = ep.Session(model)
    x = torch.randn(3, 4096, 3)
    y = session.run({"x": x.numpy(), "mask": torch.ones(3, 4096).numpy()})["output"]
    torch.testing.assert_close(torch.from_numpy(y), x.cumsum(1), rtol=1e-4, atol=1e-3)
    with pytest.raises(ep.InputError, match="x_dim1 <= 5000"):
        session.run({"x": torch.zeros(1, 5001, 3).numpy(), "mask": torch.ones(1, 5001).numpy()})


class GrowingTable(nn.Module):
    """Positions from a table that is made anew where it is too short."""

    def __init__(self, size):
        super().__init__()
        self.table = self.made(size)

    @staticmethod
    def made(size):
        return torch.arange(size, dtype=torch.float32).sin()[:, None].repeat(1, 3)

    def forward(self, x):
        table = self.table if x.shape[1] <= self.table.shape[0] else 2 * self.made(x.shape[1])
        return x + table[: x.shape[1]]


def test_an_axis_varies_up_to_the_end_of_a_table_that_is_far_from_the_sample():
    model = ep.export(GrowingTable(200), torch.randn(2, 7, 3), progress=False)
    assert (model.inputs[0].shape, model.conditions) == (("batch", "x_dim1", 3), ("x_dim1 <= 200",))
    x = torch.randn(1, 150, 3)
    y = ep.Session(model).run({"x": x.numpy()})["output"]
    torch.testing.assert_close(torch.from_numpy(y), GrowingTable(200)(x))


def test_a_size_at_which_another_path_begins_is_not_passed_over_where_it_is_near():
    model = ep.export(GrowingTable(12), torch.randn(2, 7, 3), progress=False)
    x = torch.randn(1, 40, 3)
    y = ep.Session(model).run({"x": x.numpy()})["output"]
    torch.testing.assert_close(torch.from_numpy(y), GrowingTable(12)(x))


class Square(nn.Module):
    """Patches with positions that are made anew where the picture has another size; they make up a square again."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches, self.size = nn.Conv2d(3, 4, 2, 2), 4
        self.register_buffer("positions", self.made(4, 4) + 1)

    def made(self, height, width):
        return (torch.arange(float(height))[:, None] + torch.arange(float(width)) / 2).reshape(1, -1, 1)

    def forward(self, x):
        height, width = x.shape[2] // 2, x.shape[3] // 2
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        if self.size != height or self.size != width:
            positions = self.made(height, width)
        else:
            positions = self.positions
        side = int(tokens.shape[1] ** 0.5)
        return (tokens + positions).reshape(-1, side, side, 4)


def test_a_result_of_a_branch_has_the_square_of_a_size():
    model = ep.export(Square(), torch.randn(1, 3, 8, 8))
    assert model.report.ok
    assert model.inputs[0].shape == ("batch", 3, "height", "height")


class LargestLookedUp(nn.Module):
    """The same, with more than one row."""

    def forward(self, scores, table):
        best = scores.topk(3, dim=1).indices[..., None] + torch.arange(1)
        places = (torch.arange(scores.shape[1])[None, :, None] + best.sum(1, keepdim=True)) % scores.shape[1]
        return table.gather(1, places.expand(-1, -1, table.shape[2]))


def test_what_it_must_not_be_shorter_than_may_have_a_smallest_size_itself():
    model = ep.export(LargestLookedUp(), (torch.randn(2, 9), torch.randn(2, 11, 4)))
    assert model.conditions[-2:] == ("scores_dim1 >= 3", "table_dim1 >= 3")
    scores, table = torch.randn(2, 5), torch.randn(2, 5, 4)
    found = ep.Session(model).run([scores.numpy(), table.numpy()])["output"]
    torch.testing.assert_close(torch.from_numpy(found), LargestLookedUp()(scores, table), rtol=0, atol=0)


def test_an_axis_that_begins_later_costs_no_other_capture():
    class Spread(nn.Module):
        def forward(self, x):
            return x + 1, x.diff(dim=1).mean(1)  # the mean of nothing, where there is one

    told = []
    model = ep.export(Spread(), torch.randn(3, 5, 4), progress=told.append)
    assert model.conditions == ("x_dim1 >= 2",)
    assert told.count("capturing the module") == 1
    for size in (2, 7):
        x = torch.randn(3, size, 4)
        found = [*ep.Session(model).run(x).values()]
        np.testing.assert_allclose(found[1], Spread()(x)[1].numpy(), rtol=1e-5, atol=1e-6)


class Attending(nn.Module):
    """Attention over the rows that are marked: causal only where it is said, and there is more than one."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def attend(self, rows, causal):
        causal = rows.shape[0] > 1 and causal
        if causal:
            rows = rows.cumsum(0)
        return F.scaled_dot_product_attention(rows[None], rows[None], rows[None])[0]

    def forward(self, x, marks):
        return self.attend(x[marks > 0], self.causal)


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_said_beside_a_condition_on_what_was_chosen(causal):
    module, calls = Attending(causal), [[1, 0, 2, 1], [0, 0, 1], [1, 1, 1, 1, 1]]
    calls = [(torch.randn(len(marks), 3), torch.tensor(marks)) for marks in calls]
    session = ep.Session(ep.export(module, calls[0]), providers=["onnxruntime"])
    for x, marks in calls:
        (found,) = session.run({"x": x.numpy(), "marks": marks.numpy()}).values()
        np.testing.assert_allclose(found, module(x, marks).numpy(), rtol=1e-4, atol=1e-5)


class Named(nn.Module):
    """Variables that get their values in the middle of a condition."""

    def forward(self, x):
        count = x.shape[1]
        if x.shape[0] > 1 and (count := x.shape[1] + 1) > 3:
            x = x * 3
        several = x.shape[0] > 1 and (other := 5)
        if x.sum() > 0:
            x = x * 2
        return x * count + (other if several else 0)


def test_variables_that_get_values_within_a_condition_keep_them():
    module, x = Named(), torch.rand(3, 4)
    session = ep.Session(ep.export(module, x), providers=["onnxruntime"])
    for x in (torch.rand(3, 4), torch.rand(2, 6) - 2):
        (found,) = session.run({"x": x.numpy()}).values()
        np.testing.assert_allclose(found, module(x).numpy(), rtol=1e-5)
