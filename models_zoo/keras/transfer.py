"""A network that somebody else trained, with a new head."""

from __future__ import annotations

import keras
from keras import layers

from entrepot.models_zoo.keras.images import images
from entrepot.models_zoo.registry import Built


def transfer_head(*, size: int = 32, classes: int = 3) -> Built:
    """Bytes of any size, resized, augmented and scaled in the model; the encoder is not trained."""
    encoder = keras.applications.MobileNetV2(
        weights=None, include_top=False, input_shape=(size, size, 3), alpha=0.35, pooling="avg"
    )
    encoder.trainable = False
    x = keras.Input((None, None, 3), dtype="uint8", name="image")
    y = layers.Resizing(size, size)(x)
    y = layers.RandomRotation(0.1)(layers.RandomFlip()(y))
    y = encoder(layers.Rescaling(1 / 127.5, offset=-1)(y), training=False)
    model = keras.Model(x, layers.Dense(classes, name="scores")(layers.Dropout(0.2)(y)), name="transfer_head")
    samples = ((images(1, 20, 30, 3, kind="uint8"),), (images(2, 40, 24, 3, kind="uint8"),))
    return Built(model, samples, frozenset({"image.0", "image.1", "image.2"}))
