"""Caches as arguments: made by the model, of a fixed length, out of weights, in plain tuples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn, randn
from transformers.cache_utils import DynamicCache, StaticCache

from tests.export_cases.calls import case
from tests.export_cases.calls.tiny import SIZES, Around, gemma3, llama, mask, t5, words


def _step(model: Any, rows: int, past: int, new: int = 1) -> dict[str, Any]:
    """The next tokens, with the cache that the model made of the first."""
    with torch.no_grad():
        cache = model(words(rows, past), use_cache=True).past_key_values
    return {"input_ids": words(rows, new), "past_key_values": cache}


@case
def next_step():
    model = llama()
    return model, _step(model, 2, 5), _step(model, 3, 7), _step(model, 1, 2)


@case
def next_step_with_windows():
    model = gemma3()
    calls = (_step(model, *sizes) for sizes in ((2, 5, 3), (3, 7, 2), (1, 2, 4)))
    return model, *calls


@case
def next_step_of_a_decoder_beside_an_encoder():
    model = t5()

    def step(rows: int, source: int, past: int) -> dict[str, Any]:
        with torch.no_grad():
            encoded = model.encoder(words(rows, source))
            cache = model(encoder_outputs=encoded, decoder_input_ids=words(rows, past), use_cache=True).past_key_values
        return {"encoder_outputs": encoded, "decoder_input_ids": words(rows, 1), "past_key_values": cache}

    return model, step(2, 6, 3), step(3, 4, 5), step(1, 9, 2)


@case
def of_a_fixed_length():
    model = llama()

    def prompt(rows: int, tokens: int) -> dict[str, Any]:
        cache = StaticCache(config=model.config, max_cache_len=16)
        cache.early_initialization(rows, 2, 4, torch.float32, "cpu")
        places = torch.arange(tokens)[None].expand(rows, tokens).contiguous()
        return {"input_ids": words(rows, tokens), "past_key_values": cache, "position_ids": places}

    return model, prompt(2, 3), prompt(3, 5)


class Prefixed(Around):
    """A cache of weights comes before every prompt, as in prefix tuning."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.prefix = nn.Parameter(randn(2, 2, 2, 4, 4))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        rows, cache = input_ids.shape[0], DynamicCache()
        for layer, pair in enumerate(self.prefix):
            cache.update(*(part[None].expand(rows, -1, -1, -1) for part in pair), layer)
        seen = torch.cat([attention_mask.new_ones(rows, 4), attention_mask], 1)
        return self.model(input_ids=input_ids, attention_mask=seen, past_key_values=cache).logits


@case
def out_of_weights():
    return Prefixed(llama()), *((words(*size), mask(*size, left=True)) for size in SIZES)


class InTuples(Around):
    """The past comes and goes as a list of pairs."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, past: list[tuple[Tensor, Tensor]]) -> Any:
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(past):
            cache.update(keys, values, layer)
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache)
        return found.logits[:, -1:], [(layer.keys, layer.values) for layer in found.past_key_values.layers]


@case
def in_plain_tuples():
    def call(rows: int, new: int, past: int) -> tuple[Any, ...]:
        pairs = [(randn(rows, 2, past, 4), randn(rows, 2, past, 4)) for _ in range(2)]
        return words(rows, new), mask(rows, past + new, left=True), pairs

    return InTuples(llama()), call(2, 3, 5), call(3, 2, 7), call(1, 1, 9)
