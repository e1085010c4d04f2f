"""Modules of one's own that have an encoder in them: it runs once, and its results stand in for it at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.transformers.in_graph.loop import looped
from tests.export_cases import PACKAGES, cases, judge_of

WIDTH, TOKENS, WORDS = 8, 30, 40
Tensor = torch.Tensor


class Translator(nn.Module):
    """``nn.Transformer`` between embeddings and a head; padding is token 0, and nothing is kept between steps."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.tokens = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.transformer = nn.Transformer(WIDTH, 2, 1, 1, 16, 0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        padding, size = src == 0, tgt.shape[1]
        later = torch.ones(size, size, dtype=torch.bool).triu(1)
        mixed = self.transformer(
            self.words(src),
            self.tokens(tgt) * (1 + torch.arange(size))[:, None],
            tgt_mask=later,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.head(mixed)


class Cached(nn.Module):
    """Its cache has the keys and values of its own tokens, and those of the encoder's results."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.encoder = nn.Embedding(TOKENS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.q, self.k, self.v, self.seen_k, self.seen_v = (nn.Linear(WIDTH, WIDTH) for _ in range(5))
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, source: Tensor, target: Tensor, past: Any = None) -> Any:
        memory, _ = self.encoder(self.embed(source))
        x = self.embed(target)
        keys, values = self.k(x), self.v(x)
        if past is None:
            seen = self.seen_k(memory), self.seen_v(memory)
        else:
            seen, (before, earlier) = past["seen"], past["own"]
            keys, values = torch.cat([before, keys], 1), torch.cat([earlier, values], 1)
        scores = self.q(x) @ keys.transpose(1, 2)
        new, whole = scores.shape[1:]
        scores = scores.masked_fill(torch.arange(whole) > torch.arange(whole - new, whole)[:, None], -torch.inf)
        x = x + scores.softmax(-1) @ values
        x = x + (self.q(x) @ seen[0].transpose(1, 2)).softmax(-1) @ seen[1]
        return self.head(x), {"own": (keys, values), "seen": seen}


class Captioner(nn.Module):
    """The state of its decoder begins with what it has seen, so that the prompt needs a graph of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, WIDTH, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.embed, self.rnn = nn.Embedding(TOKENS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head, self.unused = nn.Linear(WIDTH, TOKENS), nn.Identity()

    def forward(self, images: Tensor, captions: Tensor, state: Tensor | None = None) -> Any:
        seen = self.backbone(images)
        x, state = self.rnn(self.embed(captions), seen[None] if state is None else state)
        return self.head(x), state


def of(kind: type[nn.Module]) -> Any:
    torch.manual_seed(4)
    return kind().eval()


TEXT = np.array([[5, 6, 7, 8, 0, 0], [9, 8, 7, 6, 5, 4], [3, 3, 9, 9, 2, 0]])
PICTURES = np.random.default_rng(0).standard_normal((3, 3, 9, 9), np.float32)
SEEN = {"images": torch.from_numpy(PICTURES[:2]), "captions": torch.tensor([[3, 4, 5], [6, 7, 8]])}
CAPTIONER = ep.Roles(encoder="backbone", tokens="captions", cache="state")
CASES = {
    "no cache": (Translator, None, None, {"src": TEXT}, {"encoder", "decoder"}, 0),
    "cross-attention in the cache": (Cached, None, None, {"source": TEXT}, {"encoder", "decoder"}, 2),
    "a state": (Captioner, SEEN, CAPTIONER, {"images": PICTURES}, {"prefill", "decoder"}, 1),
}


def continued(model: Any, given: np.ndarray[Any, Any], tokens: np.ndarray[Any, Any], count: int) -> Any:
    """The most likely tokens, chosen by the whole module on everything each time."""
    rows = torch.from_numpy(tokens)
    with torch.no_grad():
        for _ in range(count):
            result = model(torch.from_numpy(given), rows)
            scores = result if isinstance(result, Tensor) else result[0]
            rows = torch.cat([rows, scores[:, -1:].argmax(-1)], 1)
    return rows.numpy()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # where the module itself runs
@pytest.mark.parametrize("case", CASES)
def test_it_generates_what_the_module_does_as_a_whole(case: str) -> None:
    kind, samples, roles, given, graphs, states = CASES[case]
    model = of(kind)
    package = ep.export_transformer(model, samples, roles=roles)
    assert package.report, package.report
    assert kind.__name__ in package.report.summary()
    assert package.graphs.keys() == graphs
    assert len(package.manifest.states) == states
    (value,) = given.values()
    start = np.array([[1], [1], [2]])
    got = package.generate(**given, **{package.manifest.tokens: start}, max_new_tokens=5)
    np.testing.assert_array_equal(got, continued(model, value, start, 5))


def test_the_encoder_ends_in_the_keys_and_values_of_a_cache_in_one_graph_too() -> None:
    model = of(Cached)
    package = ep.export_transformer(model, verify=False)
    ends = {spec.name for spec in package.graphs["encoder"].outputs}
    assert ends == {"encoded.cache.seen.0", "encoded.cache.seen.1"} == package.manifest.constants.keys()
    assert "source" not in {spec.name for spec in package.graphs["decoder"].inputs}
    whole = looped(package, num_beams=1, opset=None)
    start = np.array([[1], [1], [2]])
    got = whole.generate(source=TEXT, target=start, max_new_tokens=5)
    np.testing.assert_array_equal(got, continued(model, TEXT, start, 5))


class Denoiser(nn.Module):
    """Takes numbers beside something else, and has an encoder, but makes no tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 3), nn.Linear(3, 4)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        return self.decoder(self.encoder(x) * step[:, None])


class Tagger(nn.Module):
    """Scores for tokens, but each depends on all of them, and so does the encoder's result."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.encoder = nn.Embedding(TOKENS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, words: Tensor, kinds: Tensor) -> Tensor:
        return self.encoder(self.embed(words) + self.embed(kinds).mean(1, keepdim=True))[0]


@pytest.mark.parametrize(
    ("kind", "samples"),
    [
        (Denoiser, {"x": torch.randn(2, 4), "step": torch.tensor([3, 4])}),
        (Tagger, {"words": torch.tensor([[1, 2, 3]]), "kinds": torch.tensor([[1, 0, 1]])}),
    ],
)
def test_a_module_with_an_encoder_that_makes_no_tokens_is_run_as_a_whole(kind: Any, samples: Any) -> None:
    package = ep.export_transformer(of(kind), samples)
    assert not package.generates
    (found,) = package.forward(**{name: value.numpy() for name, value in samples.items()}).values()
    with torch.no_grad():
        np.testing.assert_allclose(found, of(kind)(**samples).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ("nowhere", "has no part 'nowhere'"),
        ("unused", "calls 'unused' 0 times"),
        ("embed.weight", "no part that can be called"),
        (3, "Roles.encoder is 3, expected a name"),
    ],
)
def test_a_part_that_is_no_encoder_is_an_error(encoder: Any, message: str) -> None:
    roles = ep.Roles(encoder=encoder, tokens="captions", cache="state")
    with pytest.raises(ep.EntrepotError, match=message):
        ep.export_transformer(of(Captioner), SEEN, roles=roles)


def test_an_encoder_whose_results_hold_more_than_one_tensor_stands_in_for_itself() -> None:
    """Of transformers' models too, where a decoder asks an encoder's results for more than the last of them."""
    case = next(case for case in cases(PACKAGES) if case.name == "speech-seq2seq/cohere_asr")
    outcome = judge_of(PACKAGES)(case)
    assert (outcome.verdict, outcome.why) == ("passed", "encoder-decoder")
