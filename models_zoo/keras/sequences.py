"""Models that read ids of words, padded by zeros."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from entrepot.models_zoo.registry import Built


def _ids(rows: int, length: int, vocabulary: int) -> np.ndarray[Any, Any]:
    ids = np.random.default_rng(rows).integers(1, vocabulary, (rows, length)).astype(np.int32)
    for row in range(rows):
        ids[row, length - row :] = 0
    return ids


def masked_rnn(*, vocabulary: int = 30, width: int = 8, classes: int = 3) -> Built:
    """Recurrent layers that leave padding out."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    y = layers.Embedding(vocabulary, width, mask_zero=True)(ids)
    y = layers.Bidirectional(layers.LSTM(width, return_sequences=True))(y)
    y = layers.Dense(classes, name="scores")(layers.GRU(width)(y))
    model = keras.Model(ids, y, name="masked_rnn")
    samples = ((_ids(1, 6, vocabulary),), (_ids(3, 9, vocabulary),))
    return Built(model, samples, frozenset({"ids.0", "ids.1"}))


class Positions(layers.Layer):  # type: ignore[misc]
    """Adds an embedding of each place."""

    def __init__(self, length: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = layers.Embedding(length, width)
        self.supports_masking = True

    def build(self, shape: Any) -> None:
        """Build the table."""
        self.table.build(None)
        self.built = True

    def call(self, x: Any) -> Any:
        """The places come from the length, which varies."""
        return x + self.table(ops.arange(ops.shape(x)[1]))


def transformer(*, vocabulary: int = 30, length: int = 32, width: int = 12, depth: int = 2, classes: int = 4) -> Built:
    """An encoder whose attention passes over padding."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    y = Positions(length, width)(layers.Embedding(vocabulary, width, mask_zero=True)(ids))
    for _ in range(depth):
        normal = layers.LayerNormalization()(y)
        y = layers.Add()([y, layers.MultiHeadAttention(2, width // 2)(normal, normal)])
        wide = layers.Dense(2 * width, activation="gelu")(layers.LayerNormalization()(y))
        y = layers.Add()([y, layers.Dense(width)(wide)])
    model = keras.Model(ids, layers.Dense(classes, name="labels")(layers.LayerNormalization()(y)), name="transformer")
    samples = ((_ids(1, 6, vocabulary),), (_ids(3, 9, vocabulary),))
    return Built(model, samples, frozenset({"ids.0", "ids.1"}))
