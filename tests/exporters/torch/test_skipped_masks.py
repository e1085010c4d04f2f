"""Masks that transformers leaves out where nothing is padded: an export does as a call does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn
from transformers import GemmaConfig, GPT2Config, masking_utils

import entrepot as ep
from entrepot.exporters.torch.running.skipped_masks import skipped_masks


class Layer(nn.Module):
    def __init__(self, config: GemmaConfig, *, is_causal: bool) -> None:
        super().__init__()
        self.config, self.is_causal = config, is_causal

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, mask, is_causal=mask is None and self.is_causal)


class Model(nn.Module):
    """A causal mask for a layer that may not be causal."""

    def __init__(self, *, is_causal: bool) -> None:
        super().__init__()
        self.config = GemmaConfig(hidden_size=4)
        self.config._attn_implementation = "sdpa"
        self.layer = Layer(self.config, is_causal=is_causal)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = masking_utils.create_causal_mask(self.config, x, attention_mask, None)
        return self.layer(x[:, None], mask)[:, 0]


PADDED = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("given", [torch.ones_like(PADDED), PADDED, None], ids=["ones", "padded", "nothing"])
def test_a_mask_is_left_out_as_without_an_export(given: Tensor | None, is_causal: bool) -> None:
    module = Model(is_causal=is_causal).eval()
    sample = (torch.randn(2, 4, 4),) if given is None else (torch.randn(2, 4, 4), given)
    model = ep.export(module, sample, progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for length in (4, 1, 7):
        for mask in (torch.ones(3, length, dtype=torch.int64), torch.ones(3, length, dtype=torch.int64).triu(-1)):
            call = (torch.randn(3, length, 4), mask)[: len(sample)]
            found = session.run({spec.name: each.numpy() for spec, each in zip(model.inputs, call, strict=True)})
            np.testing.assert_allclose(next(iter(found.values())), module(*call).numpy(), rtol=1e-4, atol=1e-5)


def test_only_models_with_such_layers_are_given_other_masks() -> None:
    table = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping
    plain = table["sdpa"]
    with skipped_masks(Model(is_causal=False)):
        assert table["sdpa"] is not plain
    mixed = nn.ModuleList([Model(is_causal=False), Model(is_causal=True)])
    for module in (Model(is_causal=True), mixed, nn.Linear(1, 1)):
        with skipped_masks(module):
            assert table["sdpa"] is plain
    with skipped_masks(Model(is_causal=False)):
        told = {"batch_size": 1, "q_length": 3, "kv_length": 3, "attention_mask": torch.tensor([[True, True, False]])}
        mask = table["sdpa"](**told, config=GPT2Config())
        assert torch.equal(mask, plain(**told))
