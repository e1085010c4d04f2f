"""Whole models of Hugging Face as modules again: their own state loads, and the text stays short."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

import entrepot as ep
from entrepot.importers.torch.text.source import _families

BLOCKS = 4
CONFIGS: dict[str, Any] = {
    "GPT2LMHeadModel": lambda: transformers.GPT2Config(
        n_layer=BLOCKS, n_embd=32, n_head=4, vocab_size=96, n_positions=40
    ),
    "LlamaForCausalLM": lambda: transformers.LlamaConfig(
        num_hidden_layers=BLOCKS, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
        vocab_size=96,
    ),
    "BertModel": lambda: transformers.BertConfig(
        num_hidden_layers=BLOCKS, hidden_size=32, num_attention_heads=4, intermediate_size=48, vocab_size=96,
        max_position_embeddings=80,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIGS)
def test_models_come_back_with_their_own_state_in_a_short_text(kind: str) -> None:
    torch.manual_seed(0)
    config = CONFIGS[kind]()
    config.use_cache = False
    original = getattr(transformers, kind)(config).eval()
    tokens = torch.randint(0, 96, (2, 7))
    net = ep.to_torch(ep.export(original, {"input_ids": tokens}, verify=False), verify=False)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.load_state_dict(original.state_dict())
        for given in (tokens, torch.randint(0, 96, (3, 11))):
            made, expected = net(given), next(iter(original(given).values()))
            made = made[0] if isinstance(made, tuple) else made
            torch.testing.assert_close(made, expected)
    assert len(net.source().splitlines()) <= 300


def test_caches_among_the_results_leave_blocks_of_one_class() -> None:
    """Keys and values are called by the number of their layer, which is no difference between layers."""
    config = transformers.GPT2Config(n_layer=12, n_embd=24, n_head=2, n_positions=16, vocab_size=50)
    original = transformers.GPT2LMHeadModel(config).eval()
    net = ep.to_torch(ep.export(original, {"input_ids": torch.randint(0, 50, (2, 7))}, verify=False), verify=False)
    source = net.source()
    assert source.count("class Block") == source.count("class Attn") == 1
    assert "out  past_key_values.layers.0 to 11.keys: float32[batch, 2, sequence, 12]" in source
    assert len(source.splitlines()) <= 300


def test_results_are_told_together_only_where_their_numbers_count_on() -> None:
    """Of layers 0, 2 and 3 each has a line."""
    told = ["k.0.x: a", "k.2.x: a", "k.3.x: a", "v.1.x: a", "v.2.x: a", "v.3.y: a", "z.1: a", "z.2: b", "plain: a"]
    assert _families(told) == ["k.0.x: a", "k.2.x: a", "k.3.x: a", "v.1 to 2.x: a", *told[5:]]
