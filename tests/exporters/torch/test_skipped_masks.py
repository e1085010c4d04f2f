"""Masks that transformers leaves out where nothing is padded: an export does as a call does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import GemmaConfig, masking_utils, modeling_utils

import entrepot as ep
from entrepot.exporters.torch.running.skipped_masks import skipped_masks


class Layer(nn.Module):
    def __init__(self, *, is_causal: bool, told: bool | str | None) -> None:
        super().__init__()
        self.is_causal, self.told = is_causal, told

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        attend = modeling_utils.ALL_ATTENTION_FUNCTIONS["sdpa"]
        told = mask is None and x.shape[2] > 1 if self.told == "by its mask" else self.told
        return attend(self, x, x, x, mask, is_causal=told)[0].transpose(1, 2)


class Model(nn.Module):
    """A causal mask for a layer that may not be causal."""

    def __init__(self, *, is_causal: bool, told: bool | str | None = None) -> None:
        super().__init__()
        self.config = GemmaConfig(hidden_size=4)
        self.config._attn_implementation = "sdpa"
        self.layer = Layer(is_causal=is_causal, told=told)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = masking_utils.create_causal_mask(self.config, x, attention_mask, None)
        return self.layer(x[:, None], mask)[:, 0]


PADDED = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])


TOLD = [(False, None), (True, None), (False, True), (True, False), (True, "by its mask")]
GIVEN = {"ones": torch.ones_like(PADDED), "padded": PADDED, "nothing": None}
MASKED = [("ones", *each) for each in TOLD] + [(name, *each) for name in ("padded", "nothing") for each in TOLD[::4]]


@pytest.mark.parametrize(("name", "is_causal", "told"), MASKED)
def test_a_mask_is_left_out_as_without_an_export(name: str, is_causal: bool, told: bool | str | None) -> None:
    module, given = Model(is_causal=is_causal, told=told).eval(), GIVEN[name]
    sample = (torch.randn(2, 4, 4),) if given is None else (torch.randn(2, 4, 4), given)
    model = ep.export(module, sample, progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for length in (4, 1, 7):
        for mask in (torch.ones(3, length, dtype=torch.int64), torch.ones(3, length, dtype=torch.int64).triu(-1)):
            call = (torch.randn(3, length, 4), mask)[: len(sample)]
            found = session.run({spec.name: each.numpy() for spec, each in zip(model.inputs, call, strict=True)})
            np.testing.assert_allclose(next(iter(found.values())), module(*call).numpy(), rtol=1e-4, atol=1e-5)


def test_masks_of_calls_with_values_stay_and_so_do_the_functions_afterwards() -> None:
    tables = [masking_utils.ALL_MASK_ATTENTION_FUNCTIONS, modeling_utils.ALL_ATTENTION_FUNCTIONS]
    plain = [table["sdpa"] for table in tables]
    module, x = Model(is_causal=False).eval(), torch.randn(2, 4, 4)
    wanted = module(x, PADDED)
    with skipped_masks():
        assert all(table["sdpa"] is not each for table, each in zip(tables, plain, strict=True))
        torch.testing.assert_close(module(x, PADDED), wanted, rtol=0, atol=0)
    assert [table["sdpa"] for table in tables] == plain
