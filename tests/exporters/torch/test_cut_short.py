"""Loops whose turns look back at all that came before: the first ``n`` steps of a tensor."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Looking(nn.Module):
    """What becomes of all steps up to each one."""

    def __init__(self, look):
        super().__init__()
        self.look, self.mix = look, nn.Linear(8, 8)

    def forward(self, x):
        found = []
        for step in range(x.shape[1]):
            found.append(self.look(self.mix, x[:, : step + 1], x[:, step]))
        return torch.stack(found, 1)


def mixed(mix, before, now):
    return mix(before).amax(1)


def multiplied(mix, before, now):
    return torch.matmul(before, mix.weight).sum(1)


def weighed(mix, before, now):
    scores = torch.einsum("btd,bd->bt", before, mix(now)).softmax(-1)
    return torch.einsum("bt,btd->bd", scores, before)


def attended_by_heads(mix, before, now):
    rows, steps, width = before.shape
    heads = before.view(rows, steps, 2, width // 2).transpose(1, 2)
    return ((heads @ heads.mT).softmax(-1) @ heads).transpose(1, 2).reshape(rows, steps, width)[:, -1]


def flattened(mix, before, now):
    return mix(before.flatten(0, 1)).view(before.shape[0], -1, 8).mean(1)


def attended(mix, before, now):
    return F.scaled_dot_product_attention(mix(now).unsqueeze(1), before, before)[:, 0]


@pytest.mark.parametrize("look", [mixed, multiplied, weighed, attended_by_heads, flattened, attended])
def test_a_loop_looks_back_at_all_steps_before(look):
    torch.manual_seed(0)
    module = Looking(look).eval()
    model = ep.export(module, torch.randn(2, 5, 8), progress=False)
    assert "rewritten" in str(model)
    session = ep.Session(model)
    for rows, steps in [(2, 5), (3, 9), (2, 1), (1, 2)]:
        x = torch.randn(rows, steps, 8)
        (found,) = session.run({model.inputs[0].name: x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x).detach(), rtol=1e-4, atol=1e-5)
