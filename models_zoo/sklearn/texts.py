"""Pipelines over text."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from entrepot.models_zoo.registry import Built

_TOPICS = {
    "sea": "ship harbour storm wave sail captain anchor tide",
    "kitchen": "bread oven salt pepper butter pan recipe cook",
    "garden": "rose soil seed spade hedge water bloom bee",
}


def topic_classifier(*, texts: int = 120) -> Built:
    """What a short text is about."""
    rng = np.random.default_rng(0)
    topics = rng.choice(list(_TOPICS), texts)
    said = np.array([_sentence(rng, topic) for topic in topics], object)
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), min_df=2), LogisticRegression()).fit(said, topics)
    return Built(model, ((said[:1],), (said[:6],)), frozenset({"X.0"}))


def _sentence(rng: np.random.Generator, topic: str) -> str:
    words = rng.choice(_TOPICS[topic].split(), 4)
    return f'The {words[0]}, a {words[1]} and {words[2]}: "{words[3].title()}"!'
