"""Words are split and counted as scikit-learn does, or the graph fails."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import entrepot as ep

TRAINED = [
    "The cat sat; the dog's gone!",
    "a state-of-the-art dog (of 2024)",
    "Élan vital, naïve café",
    "x_1 y/z ... end",
]
ODD = [
    "", "...", "a", "dog", "  THE\tcat\n--dog, dog.dog", "\u201ccat\u2019s\u201d \u2013 élan\u2026",
    "café1 _x the the the", "1,000.5 of_the", "東京 the",
]  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ngram_range": (1, 3)},
        {"ngram_range": (2, 2)},
        {"stop_words": ["the", "of"]},
        {"token_pattern": r"\b\w+\b"},
        {"token_pattern": r"\S+"},
        {"tokenizer": str.split, "token_pattern": None, "ngram_range": (1, 2)},
        {"tokenizer": lambda text: text.split(), "token_pattern": None, "lowercase": False},
        {"analyzer": str.split},
    ],
    ids=lambda settings: " ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in settings.items()),
)
def test_texts_that_were_never_seen_are_counted_alike(settings):
    kind = CountVectorizer if "ngram_range" in settings else TfidfVectorizer
    vectoriser = kind(**settings).fit(TRAINED)
    model = ep.export(vectoriser, ["the cat", "a dog", "end"])
    for rows in (ODD, ODD[:1], ODD[3:5]):
        for provider in ("cpu", "onnxruntime"):
            found = ep.Session(model, providers=[provider]).run({"X": np.array(rows, object)})["transformed"]
            np.testing.assert_allclose(found, vectoriser.transform(rows).toarray(), rtol=1e-12)


@pytest.fixture(scope="module")
def counter():
    return ep.export(CountVectorizer().fit(TRAINED), ["the cat", "a dog"])


@pytest.mark.parametrize("text", ["Élan", "a\u00a0b", "x\u0301", "\U0001f600"])
@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_a_character_that_might_be_split_otherwise_makes_the_graph_fail(provider, text, counter):
    with pytest.raises(ep.EntrepotError):
        ep.Session(counter, providers=[provider]).run({"X": np.array([text], object)})


@pytest.mark.parametrize(
    "tokenizer",
    [lambda text: text.split(","), lambda text: [word[:3] for word in text.split()], lambda text: text.lower().split()],
    ids=["at commas", "shortened", "in lower case"],
)
def test_a_tokenizer_that_does_more_than_split_is_refused(tokenizer):
    vectoriser = CountVectorizer(tokenizer=tokenizer, token_pattern=None).fit(TRAINED)
    with pytest.raises(ep.ConversionError, match="tokenizer"):
        ep.export(vectoriser, ["the cat", "a dog"])
