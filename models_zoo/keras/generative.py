"""Models that make images."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from entrepot.models_zoo.keras.images import images
from entrepot.models_zoo.registry import Built


class Autoencoder(keras.Model):  # type: ignore[misc]
    """Encodes an image as means and deviations, and decodes the means; in training, what it draws from both."""

    def __init__(self, width: int, code: int) -> None:
        super().__init__(name="autoencoder")
        self.down = [layers.Conv2D(width * 2**at, 3, strides=2, padding="same", activation="relu") for at in range(2)]
        self.flat, self.code = layers.Flatten(), layers.Dense(2 * code)
        self.seeds = keras.random.SeedGenerator(20)
        self.spread, self.shape_again = layers.Dense(4 * 4 * width), layers.Reshape((4, 4, width))
        self.up = [layers.Conv2DTranspose(width, 3, strides=2, padding="same", activation="relu") for _ in range(2)]
        self.image = layers.Conv2D(1, 3, padding="same", activation="sigmoid")

    def call(self, x: Any, training: bool = False) -> dict[str, Any]:
        """The image again, and what it was encoded as."""
        for layer in self.down:
            x = layer(x)
        mean, spread = ops.split(self.code(self.flat(x)), 2, axis=-1)
        drawn = (
            mean + ops.exp(0.5 * spread) * keras.random.normal(ops.shape(mean), seed=self.seeds) if training else mean
        )
        y = self.shape_again(self.spread(drawn))
        for layer in self.up:
            y = layer(y)
        return {"image": self.image(y), "mean": mean, "spread": spread}


def autoencoder(*, width: int = 6, code: int = 3) -> Built:
    """A variational autoencoder of 16 by 16 pixels."""
    model = Autoencoder(width, code)
    model(images(1, 16, 16, 1))
    return Built(model, ((images(1, 16, 16, 1),), (images(3, 16, 16, 1),)), frozenset({"x.0"}))
