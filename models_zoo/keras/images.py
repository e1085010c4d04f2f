"""Models that look at images, the channels of which come last."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers

from entrepot.models_zoo.registry import Built


def images(*sizes: int, kind: str = "float32") -> np.ndarray[Any, Any]:
    """Some images."""
    return (np.random.default_rng(sum(sizes)).random(sizes) * (255 if kind == "uint8" else 1)).astype(kind)


def convnet(*, size: int = 24, width: int = 8, classes: int = 5) -> Built:
    """Convolutions of three kinds, with a flattened image at the end."""
    x = keras.Input((size, size, 3), name="image")
    y = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
    y = layers.MaxPooling2D()(layers.ReLU()(layers.BatchNormalization()(y)))
    y = layers.SeparableConv2D(2 * width, 3, padding="same", strides=2, activation="silu")(y)
    y = layers.BatchNormalization(scale=False)(y)
    y = layers.Add()([y, layers.DepthwiseConv2D(3, padding="same", activation="hard_silu")(y)])
    y = layers.Dropout(0.2)(layers.Flatten()(layers.AveragePooling2D(2)(y)))
    model = keras.Model(x, layers.Dense(classes, activation="softmax", name="classes")(y), name="convnet")
    return Built(model, ((images(1, size, size, 3),), (images(3, size, size, 3),)), frozenset({"image.0"}))


def unet(*, width: int = 6, classes: int = 2) -> Built:
    """Two steps down, two steps up."""
    x = keras.Input((None, None, 3), name="image")
    skips, y = [], x
    for level in range(2):
        y = _twice(y, width * 2**level)
        skips.append(y)
        y = layers.MaxPooling2D()(y)
    y = _twice(y, width * 4)
    for level in (1, 0):
        y = layers.Conv2DTranspose(width * 2**level, 2, strides=2)(y)
        y = _twice(layers.Concatenate()([y, skips[level]]), width * 2**level)
    model = keras.Model(x, layers.Conv2D(classes, 1, activation="sigmoid", name="mask")(y), name="unet")
    axes = frozenset({"image.0", "image.1", "image.2"})
    return Built(model, ((images(1, 16, 24, 3),), (images(2, 32, 20, 3),)), axes)


def _twice(y: Any, width: int) -> Any:
    for _ in range(2):
        y = layers.GroupNormalization(2)(layers.Conv2D(width, 3, padding="same", activation="relu")(y))
    return y


def mixer(*, size: int = 16, patch: int = 4, width: int = 12, depth: int = 2, classes: int = 4) -> Built:
    """Patches as rows, mixed along both axes."""
    x = keras.Input((size, size, 3), name="image")
    count = (size // patch) ** 2
    y = layers.Reshape((count, width))(layers.Conv2D(width, patch, strides=patch)(x))
    for _ in range(depth):
        mixed = layers.Permute((2, 1))(layers.LayerNormalization()(y))
        mixed = layers.Dense(count)(layers.Dense(2 * count, activation="gelu")(mixed))
        y = layers.Add()([y, layers.Permute((2, 1))(mixed)])
        mixed = layers.Dense(2 * width, activation="gelu")(layers.LayerNormalization()(y))
        y = layers.Add()([y, layers.Dense(width)(mixed)])
    y = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(y))
    model = keras.Model(x, layers.Dense(classes, name="logits")(y), name="mixer")
    return Built(model, ((images(1, size, size, 3),), (images(3, size, size, 3),)), frozenset({"image.0"}))
