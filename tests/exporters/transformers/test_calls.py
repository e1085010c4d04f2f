"""How models want to be called: what they are told, in which pieces they take prompts, which tokens they take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import entrepot as ep
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.exporters.transformers.samples import sample_of
from entrepot.exporters.transformers.signature import roles_of
from entrepot.exporters.transformers.two_parts import called_in_steps
from entrepot.runtime.generation.package import Package
from tests.export_cases.generating import BART

CHUNK = 8


@pytest.fixture(scope="module")
def in_pieces() -> tuple[Any, Package]:
    """A model that computes its states in pieces of some tokens, and its package."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2}
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model = transformers.Mamba2ForCausalLM(
        transformers.Mamba2Config(vocab_size=99, chunk_size=CHUNK, **sizes, **ends)  # type: ignore[arg-type]
    ).eval()
    return model, ep.export_transformer(model)


@pytest.mark.parametrize("length", [1, CHUNK, 2 * CHUNK + 1])
def test_prompts_are_longer_than_the_pieces_of_a_recurrent_model(in_pieces: tuple[Any, Package], length: int) -> None:
    model, package = in_pieces
    ids = torch.randint(3, 99, (3, length), generator=torch.Generator().manual_seed(length))
    mask = torch.ones_like(ids)
    mask[0, : length // 2] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    wanted = model.generate(**given, max_new_tokens=5, do_sample=False).numpy()
    feeds = {name: value.numpy() for name, value in given.items()}
    np.testing.assert_array_equal(package.generate(**feeds, max_new_tokens=5), wanted)
    whole = looped(package, num_beams=1, opset=None)
    np.testing.assert_array_equal(whole.generate(**feeds, max_new_tokens=5), wanted)


def test_states_alone_are_given_the_mask_of_new_tokens(in_pieces: tuple[Any, Package]) -> None:
    _, package = in_pieces
    assert package.manifest.mask_of == "new"
    assert package.manifest.step != 1


def test_an_encoder_that_refuses_to_be_told_of_a_cache_is_not_told() -> None:
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 16, "expert_capacity": 8, "num_layers": 2, "num_decoder_layers": 2}
    experts = {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_heads": 4, "num_experts": 2}
    config: Any = transformers.SwitchTransformersConfig(vocab_size=64, **sizes, **experts)
    model = transformers.SwitchTransformersForConditionalGeneration(config).eval()
    called = Called(model, roles_of(model))
    given = sample_of(model, called.roles, None, generates=True)
    with torch.no_grad():
        found = called_in_steps(called, given)
        assert found == replace(called, told=False)
        assert found(given)[1] is not None


class Scoring(nn.Module):
    """Scores more tokens than it takes."""

    def __init__(self, scored: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(16, 8), nn.Linear(8, scored)

    def forward(self, input_ids: torch.Tensor, past: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(input_ids)
        x = x if past is None else torch.cat([past, x], 1)
        return self.head(x.cumsum(1))[:, -input_ids.shape[1] :], x


@pytest.mark.parametrize(("scored", "kind"), [(16, "decoder"), (24, "forward")])
def test_a_model_generates_if_it_takes_what_it_scores(scored: int, kind: str) -> None:
    samples = {"input_ids": torch.arange(10).reshape(2, 5)}
    assert ep.export_transformer(Scoring(scored), samples).manifest.kind == kind


def test_tokens_are_those_without_a_cache_where_the_model_has_none_that_works() -> None:
    torch.manual_seed(0)
    sizes = {name: value for name, value in BART.items() if name != "vocab_size"}
    config: Any = transformers.FSMTConfig(**sizes, langs=["a", "b"], src_vocab_size=99, tgt_vocab_size=99)
    model = transformers.FSMTForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)  # so that places make a difference, which the model gets wrong with its cache
    package = ep.export_transformer(model)
    assert package.report
    ids = torch.randint(8, 90, (3, 7), generator=torch.Generator().manual_seed(1))
    asked: dict[str, Any] = {"max_new_tokens": 8, "do_sample": False, "num_beams": 1}
    wanted = model.generate(ids, use_cache=False, **asked).numpy()
    assert not np.array_equal(wanted, model.generate(ids, **asked).numpy()), "it has to make a difference here"
    np.testing.assert_array_equal(package.generate(input_ids=ids.numpy(), **asked), wanted)
