"""Architectures at the smallest, with random weights, and what they are called with."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

WORDS = 64
SIZES = ((2, 7), (3, 5), (1, 11))
"""Rows and tokens of the sample and of other calls."""


def bert(kind: Any = transformers.BertModel, **options: Any) -> Any:
    """An encoder."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    return kind(transformers.BertConfig(vocab_size=WORDS, max_position_embeddings=40, **sizes, **options)).eval()


def gpt2(kind: Any = transformers.GPT2LMHeadModel, **options: Any) -> Any:
    """A decoder with learnt positions."""
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 48, "bos_token_id": 1, "eos_token_id": 2}
    return kind(transformers.GPT2Config(vocab_size=WORDS, **sizes, **options)).eval()


def _decoder(**more: int) -> dict[str, int]:
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "max_position_embeddings": 64}
    return {"vocab_size": WORDS, **sizes, **heads, **more}


def llama(kind: Any = transformers.LlamaForCausalLM, **options: Any) -> Any:
    """A decoder with rotated positions and grouped heads; a head has 4 numbers."""
    return kind(transformers.LlamaConfig(**_decoder(), **options)).eval()


def gemma3() -> Any:
    """A decoder of which some layers see a window, far longer than any sample."""
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    sizes = _decoder(num_hidden_layers=3, head_dim=8, sliding_window=32)
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**sizes, layer_types=kinds)).eval()


def t5() -> Any:
    """An encoder and a decoder."""
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = transformers.T5Config(vocab_size=WORDS, decoder_start_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config).eval()


def words(rows: int, tokens: int) -> Tensor:
    """Tokens that are none of the special ones."""
    return torch.randint(5, WORDS, (rows, tokens))


def mask(rows: int, tokens: int, *, left: bool = False) -> Tensor:
    """The first row is complete, the others are shorter by one, two, ... tokens."""
    lengths = tokens - torch.arange(rows)[:, None].remainder(tokens - 1)
    kept = (torch.arange(tokens) < lengths).long()
    return kept.flip(1) if left else kept


class Around(nn.Module):
    """A module around a model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
