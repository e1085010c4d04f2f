"""``flex_attention``: scores that functions change and mask, at other sizes than the sample's."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import flex_attention as torchs
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

import entrepot as ep
from entrepot.exporters.torch.capture.flexible import _OPERATOR, _UNCOMPILED


def heads(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


class Plain(nn.Module):
    def forward(self, q):
        return flex_attention(q, q, q)


class ByDistance(nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = nn.Parameter(torch.tensor([0.5, 0.25]))

    def forward(self, q, k):
        return flex_attention(q, k, k, score_mod=lambda score, b, h, i, j: score - self.slopes[h] * (i - j).abs())


class Causal(nn.Module):
    def forward(self, q):
        length = q.shape[2]
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
        return flex_attention(q, q, q, block_mask=mask)


class WithinDocuments(nn.Module):
    """Keys of other documents are not seen; nothing is seen by queries of document 0, whose result is 0."""

    def forward(self, q, documents):
        def seen(score, b, h, i, j):
            return torch.where((documents[b, i] == documents[b, j]) & (documents[b, i] > 0), score, -float("inf"))

        return flex_attention(q, q, q, score_mod=seen)


class Shared(nn.Module):
    """Four heads that look for two, scaled, and the sums of their scores."""

    def forward(self, q, k):
        result, more = flex_attention(q, k, k, scale=0.3, enable_gqa=True, return_aux=AuxRequest(lse=True))
        return result, more.lse


CASES = [
    (Plain, (heads(2, 2, 7, 8),), (heads(1, 3, 12, 10),)),
    (ByDistance, (heads(2, 2, 7, 8), heads(2, 2, 9, 8)), (heads(3, 2, 4, 8), heads(3, 2, 11, 8))),
    (Causal, (heads(2, 2, 7, 8),), (heads(1, 2, 13, 8),)),
    (
        WithinDocuments,
        (heads(2, 2, 7, 8), torch.arange(14).reshape(2, 7) // 3),
        (heads(1, 2, 5, 8), torch.tensor([[0, 1, 1, 2, 2]])),
    ),
    (Shared, (heads(2, 4, 7, 8), heads(2, 2, 5, 8)), (heads(3, 4, 6, 8), heads(3, 2, 9, 8))),
]


@pytest.mark.parametrize(("kind", "sample", "other"), CASES)
def test_functions_of_scores_are_in_the_graph(kind, sample, other):
    module = kind().eval()
    model = ep.export(module, sample)
    names = [each.name for each in model.inputs]
    for given in (sample, other):
        with torch.no_grad():
            expected = module(*given)
        found = ep.Session(model).run({name: each.numpy() for name, each in zip(names, given, strict=True)}).values()
        for mine, theirs in zip(found, [expected] if isinstance(expected, torch.Tensor) else expected, strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_replaced_is_there_in_this_torch():
    assert callable(getattr(torchs, _OPERATOR))
    assert getattr(torchs, _UNCOMPILED) is False
