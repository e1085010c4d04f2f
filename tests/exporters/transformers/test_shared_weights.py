"""What several graphs of a package read is there once, and is the package's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

import entrepot as ep
from entrepot.exporters import weight_store
from entrepot.runtime.generation.package import Package

WORDS, WIDTH = 9_000, 32
TOKENS = np.array([[5, 7, 9, 11]])


def made(**asked: Any) -> tuple[torch.nn.Module, Package]:
    torch.manual_seed(3)
    config = T5Config(
        vocab_size=WORDS, d_model=WIDTH, d_kv=8, d_ff=48, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    model = T5ForConditionalGeneration(config).eval()
    return model, ep.export_transformer(model, **asked)


def words(package: Package, role: str) -> list[np.ndarray[Any, Any]]:
    weights = [value.const_value for value in package.graphs[role].ir.graph.initializers.values()]
    return [each.numpy() for each in weights if each is not None and each.size == WORDS * WIDTH]


@pytest.fixture(autouse=True)
def however_little(monkeypatch):
    monkeypatch.setattr(weight_store, "_MOST_IN_MEMORY", 0)


@pytest.mark.parametrize("saved", [False, True])
def test_embeddings_of_both_parts_are_the_same_memory(tmp_path, saved: bool) -> None:
    _, package = made(path=tmp_path / "model" if saved else None)
    (encoder,), (decoder, *_) = words(package, "encoder"), words(package, "decoder")
    assert np.shares_memory(encoder, decoder)
    assert encoder.flags.writeable is not saved
    assert [each.name for each in tmp_path.iterdir()] == (["model"] if saved else [])


@pytest.mark.parametrize("saved", [False, True])
def test_training_the_module_afterwards_changes_nothing(tmp_path, saved: bool) -> None:
    model, package = made(path=tmp_path / "model" if saved else None)
    before = package.generate(input_ids=TOKENS, max_new_tokens=5)
    with torch.no_grad():
        for each in model.parameters():
            each.zero_()
    assert np.array_equal(package.using().generate(input_ids=TOKENS, max_new_tokens=5), before)
    package.save(tmp_path / "again")
    assert np.array_equal(ep.load(tmp_path / "again").generate(input_ids=TOKENS, max_new_tokens=5), before)
