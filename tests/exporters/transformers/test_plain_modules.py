"""Modules that nobody but their author knows: tokens and a cache in, scores and a cache out, in any form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.runtime.generation.package import Package

VOCABULARY, WIDTH = 30, 8
Tensor = torch.Tensor


class Attending(nn.Module):
    """One layer of attention; its subclasses differ in how they take and return keys and values."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def attend(self, ids: Tensor, keys: Tensor | None, values: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embed(ids)
        new_keys, new_values = self.k(x), self.v(x)
        keys = new_keys if keys is None else torch.cat([keys, new_keys], 1)
        values = new_values if values is None else torch.cat([values, new_values], 1)
        scores = self.q(x) @ keys.transpose(1, 2)
        new, whole = scores.shape[1:]
        later = torch.arange(whole) > torch.arange(whole - new, whole)[:, None]
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        return self.head(x + weights @ values), keys, values


class TwoArguments(Attending):
    def forward(self, input_ids: Tensor, past_keys: Tensor | None = None, past_values: Tensor | None = None) -> Any:
        return self.attend(input_ids, past_keys, past_values)


class Spread(Attending):
    def forward(self, input_ids: Tensor, *past: Tensor) -> Any:
        return self.attend(input_ids, *(past or (None, None)))


class CachesByKind(Attending):
    def forward(self, tokens: Tensor, k_cache: Tensor | None = None, v_cache: Tensor | None = None) -> Any:
        logits, keys, values = self.attend(tokens, k_cache, v_cache)
        return {"logits": logits, "k_cache": keys, "v_cache": values}


class OneStructure(Attending):
    def forward(self, input_ids: Tensor, past: Any = None) -> Any:
        logits, keys, values = self.attend(input_ids, *(past or {"k": None, "v": None}).values())
        return logits, {"k": keys, "v": values}


class OddlyNamed(Attending):
    def forward(self, words: Tensor, before: Tensor | None = None, earlier: Tensor | None = None) -> Any:
        return self.attend(words, before, earlier)


def continued(model: Attending, prompt: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """The most likely tokens, chosen without a cache."""
    tokens = torch.from_numpy(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens = torch.cat([tokens, model.attend(tokens, None, None)[0][:, -1:].argmax(-1)], 1)
    return tokens.numpy()


@pytest.mark.parametrize("kind", [TwoArguments, Spread, CachesByKind, OneStructure, OddlyNamed])
def test_a_module_of_ones_own_generates(kind: type[Attending]) -> None:
    model = kind().eval()
    roles = ep.Roles(tokens="words", cache=("before", "earlier")) if kind is OddlyNamed else None
    package = ep.export_transformer(model, roles=roles)
    assert package.report, package.report
    assert len(package.manifest.states) == 2
    prompt = np.array([[4, 9, 11], [7, 7, 2]])
    got = package.generate(**{package.manifest.tokens: prompt}, max_new_tokens=6)
    np.testing.assert_array_equal(got, continued(model, prompt, 6))


def test_a_role_that_no_parameter_has_is_an_error() -> None:
    with pytest.raises(ep.InputError, match="forward has no parameter 'later'"):
        ep.export_transformer(OddlyNamed(), roles=ep.Roles(tokens="words", cache=("before", "later")))


class Recurrent(nn.Module):
    """A cell's state, by the name that its authors give it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.cell = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor, hidden: tuple[Tensor, Tensor] | None = None) -> Any:
        y, hidden = self.cell(self.embed(x), hidden)
        return self.head(y), hidden


class Looping(Recurrent):
    """Goes over its tokens in Python."""

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Any:
        state = x.new_zeros(len(x), WIDTH, dtype=torch.float32) if hidden is None else hidden
        scores = []
        for token in self.embed(x).unbind(1):
            state = torch.tanh(0.7 * state + token)
            scores.append(self.head(state))
        return torch.stack(scores, 1), state


class OneAfterAState(Looping):
    """Goes over the tokens of a prompt, and takes one at a time after it, as most models with a state do."""

    def forward(self, x: Tensor, attention_mask: Tensor, hidden: Tensor | None = None) -> Any:
        rows = self.embed(x) * attention_mask[:, -x.shape[1] :, None]
        if hidden is not None:
            state = torch.tanh(0.7 * hidden + rows.squeeze(1))
            return self.head(state)[:, None], state
        state, scores = torch.zeros_like(rows[:, 0]), []
        for at in range(rows.shape[1]):
            state = torch.tanh(0.7 * state + rows[:, at])
            scores.append(self.head(state))
        return torch.stack(scores, 1), state


def test_a_prompt_goes_at_once_through_a_decoder_that_takes_one_token_after_it() -> None:
    package = ep.export_transformer(OneAfterAState().eval(), roles=ep.Roles(mask="attention_mask"), task="generate")
    assert package.report, package.report
    assert (package.manifest.step, package.manifest.prompt_from) == (1, 2)
    prompts, left = np.array([[3, 4, 5, 6], [6, 7, 8, 9]]), np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    singly = Package({"decoder": package.graphs["decoder"]}, replace(package.manifest, prompt_from=0), providers="cpu")
    for mask in (left, left[:, ::-1]):  # padding behind a token is left out of the state, which no prompt at once does
        both = [each.start(x=prompts, attention_mask=mask) for each in (package, singly)]
        for _ in range(2):
            logits = [each.logits for each in both]
            np.testing.assert_allclose(*logits, rtol=1e-5, atol=1e-5)
            for each in both:
                each.step([3, 4])


class Shorter(OneAfterAState):
    """Its prompts end with a table, which changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(12, VOCABULARY))

    def forward(self, x: Tensor, attention_mask: Tensor, hidden: Tensor | None = None) -> Any:
        scores, state = super().forward(x, attention_mask, hidden)
        return scores if hidden is not None else scores + self.table[: x.shape[1]], state


def test_a_graph_for_prompts_that_end_somewhere_is_not_made() -> None:
    told: list[str] = []
    package = ep.export_transformer(
        Shorter().eval(), roles=ep.Roles(mask="attention_mask"), task="generate", progress=told.append
    )
    assert package.report, package.report
    assert (package.manifest.step, package.manifest.prompt_from) == (1, 0)
    of_prompt = told[told.index("exporting the prompt") :]
    assert any("ends at size 12" in line for line in of_prompt)
    assert "translating to ONNX" not in of_prompt


class TwoRows(OneAfterAState):
    """A state that begins with something is for two rows only."""

    def forward(self, x: Tensor, attention_mask: Tensor, hidden: Tensor | None = None) -> Any:
        if hidden is not None and len(x) != 2:
            raise ValueError("two rows")
        scores, state = super().forward(x, attention_mask, None if hidden is None else hidden - 1)
        return scores, state + 1


def test_no_prompt_is_exported_for_a_decoder_that_cannot_be() -> None:
    told: list[str] = []
    package = ep.export_transformer(
        TwoRows().eval(), roles=ep.Roles(mask="attention_mask"), task="generate", progress=told.append
    )
    assert package.report, package.report
    assert not package.manifest.states  # it is called without a cache
    assert told.count("exporting the decoder") == 2
    assert "exporting the prompt" not in told


class Placed(nn.Module):
    """More places than tokens, and fewer kinds than either; scores are made of the very table of tokens."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embed, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(2 * VOCABULARY, WIDTH)
        self.kinds, self.mix = nn.Embedding(2, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.places(torch.arange(ids.shape[1])) + self.kinds(torch.zeros_like(ids))
        return self.mix(x).cumsum(1) @ self.embed.weight.T


@pytest.mark.parametrize("kind", [Recurrent, Looping, Placed])
def test_a_vocabulary_and_a_state_are_found_by_what_there_is(kind: type[nn.Module]) -> None:
    module = kind().eval()
    rows = wanted = torch.tensor([[3, 4, 5], [6, 7, 8]])
    package = ep.export_transformer(module, rows, task="generate")
    assert bool(package.manifest.states) == (kind is not Placed)
    assert package.manifest.step == 0  # any number of tokens at once
    for _ in range(4):
        result = module(wanted)
        scores = result[0] if isinstance(result, tuple) else result
        wanted = torch.cat([wanted, scores[:, -1:].argmax(-1)], 1)
    assert package.generate(**{package.manifest.tokens: rows}, max_new_tokens=4).tolist() == wanted.tolist()


class Few(nn.Module):
    """It takes fewer tokens than it has a table for."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        if ids.shape[1] > 5:
            raise RuntimeError("no more than five")
        return self.head(self.embed(ids))


def test_prompts_that_a_module_refuses_are_named() -> None:
    with pytest.raises(ep.ConversionError, match="no more than five"):
        ep.export_transformer(Few(), {"ids": torch.tensor([[1, 2, 3, 4, 5]] * 2)}, task="generate")


class Summing(nn.Module):
    """A state that sums up tokens, by way of what is nothing by nothing for one token, but for a path of its own."""

    def __init__(self, *, shorter: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.shorter = shorter
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids: Tensor, state: Tensor | None = None) -> Any:
        x, new = self.embed(input_ids), input_ids.shape[1]
        if new > 1:
            x = x / (new - 1) * (new - 1)
        elif not self.shorter:
            x = x * 2 / 2
        sums = x.cumsum(1) if state is None else x.cumsum(1) + state[:, None]
        return self.head(sums), sums[:, -1]


def test_a_graph_that_does_not_take_one_token_ends_the_attempt_at_several() -> None:
    told: list[str] = []
    package = ep.export_transformer(Summing(shorter=False), progress=told.append)
    assert package.manifest.step == 1
    assert told.count("comparing with the model") == 1
    assert sum(line.startswith("several tokens at once: 'sequence' begins at 2") for line in told) == 1
