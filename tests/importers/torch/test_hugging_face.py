"""Whole models of Hugging Face as modules again: their own state loads, and the text stays short."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

import entrepot as ep

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
