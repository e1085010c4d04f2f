"""Whole models: several inputs, shared and nested parts, masks, operations, subclasses."""

from __future__ import annotations

import keras
from keras import layers as k
from keras import ops

from tests.export_cases.keras.case import Given, model


@model("models", "Functional shared layer", (4,), (4,))
def shared():
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    same = k.Dense(3)
    return keras.Model([a, b], [same(a), same(b)])


@model("models", "Functional named results", (4,))
def named():
    x = keras.Input((4,), name="x")
    return keras.Model(x, {"one": k.Dense(3)(x), "two": k.Dense(2)(x)})


@model("models", "Functional nested", (4,))
def nested():
    inner = keras.Sequential([keras.Input((4,)), k.Dense(5, activation="relu"), k.Dense(4)])
    x = keras.Input((4,))
    return keras.Model(x, inner(x) + inner(k.Dense(4)(x)))


@model("models", "Functional operations", (None, 4))
def operations():
    x = keras.Input((None, 4))
    y = ops.concatenate([ops.sin(x), ops.exp(-ops.abs(x))], axis=-1)
    y = ops.where(y > 0.2, y, ops.mean(y, axis=1, keepdims=True))
    return keras.Model(x, ops.transpose(ops.logsumexp(y, axis=-1)[..., None], (0, 2, 1)))


@model("models", "Functional of images and numbers", Given((None, None, 3), open=(16, 11, 13)), (4,))
def images_and_numbers():
    image, number = keras.Input((None, None, 3), name="image"), keras.Input((4,), name="number")
    seen = k.GlobalMaxPooling2D()(k.Conv2D(5, 3, activation="relu")(image))
    return keras.Model({"image": image, "number": number}, k.Dense(2)(k.Concatenate()([seen, number])))


@model("models", "Sequential residual", (8, 8, 3))
def residual():
    x = keras.Input((8, 8, 3))
    y = k.Conv2D(4, 3, padding="same")(x)
    z = k.BatchNormalization()(k.Conv2D(4, 3, padding="same", activation="relu")(y))
    return keras.Model(x, k.Dense(3)(k.Flatten()(k.Add()([y, z]))))


@model(
    "models",
    "Functional masks",
    Given((None,), "int32", padded=True),
    Given((None,), "int32", padded=True, open=(7, 8, 4)),
)
def masks():
    a, b = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embed = k.Embedding(8, 6, mask_zero=True)
    x = k.Dropout(0.2)(k.Dense(6)(embed(a)))
    y = k.LSTM(6, return_sequences=True)(embed(b))
    z = k.MultiHeadAttention(2, 3)(x, y)
    return keras.Model([a, b], k.GlobalAveragePooling1D()(k.LayerNormalization()(k.Add()([x, z]))))


class Block(k.Layer):
    """A layer of a user's own, with a variable and two branches."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), name="scale")
        self.dense = k.Dense(self.width)
        self.dense.build(shape)

    def call(self, x, training=None):
        return ops.tanh(self.dense(x * self.scale)) + ops.max(x, axis=-1, keepdims=True)


@model("models", "Functional own layer", (None, 4))
def own_layer():
    x = keras.Input((None, 4))
    return keras.Model(x, Block(3)(Block(4)(x)))


class Network(keras.Model):
    """A model of a user's own."""

    def __init__(self):
        super().__init__()
        self.first, self.drop, self.block = k.Dense(4), k.Dropout(0.3), Block(3)

    def call(self, x, training=None):
        return self.block(self.drop(self.first(x), training=training))


@model("models", "Model subclassed", (4,))
def subclassed():
    network = Network()
    network(ops.ones((1, 4)))
    return network


class Sizes(k.Layer):
    """Asks for sizes that vary."""

    def call(self, x):
        batch, length, width = ops.shape(x)
        return ops.reshape(x, (batch * length, width))[:, : width // 2] * ops.cast(length, "float32")


@model("models", "Functional own sizes", (None, 4))
def own_sizes():
    x = keras.Input((None, 4))
    return keras.Model(x, Sizes()(x))


class Encoder(k.Layer):
    """A block of a transformer."""

    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.attention = k.MultiHeadAttention(heads, width // heads)
        self.norms = [k.LayerNormalization(), k.LayerNormalization()]
        self.inner = keras.Sequential([k.Dense(2 * width, activation="gelu"), k.Dense(width)])
        self.supports_masking = True

    def build(self, shape):
        self.attention.build(shape, shape)
        for norm in self.norms:
            norm.build(shape)
        self.inner.build(shape)

    def call(self, x, mask=None):
        wide = None if mask is None else mask[:, None, :]
        x = self.norms[0](x + self.attention(x, x, attention_mask=wide))
        return self.norms[1](x + self.inner(x))


@model("models", "Functional transformer", Given((None,), "int32", padded=True))
def transformer():
    x = keras.Input((None,), dtype="int32")
    y = k.Embedding(8, 6, mask_zero=True)(x)
    for _ in range(2):
        y = Encoder(6, 2)(y)
    return keras.Model(x, k.Dense(8, activation="softmax")(y))


@model("models", "Sequential autoencoder", (4,))
def autoencoder():
    encoder = keras.Sequential([keras.Input((4,)), k.Dense(3, activation="selu"), k.Dense(2)])
    decoder = keras.Sequential([keras.Input((2,)), k.Dense(3, activation="mish"), k.Dense(4)])
    return keras.Sequential([encoder, decoder])


@model("models", "Functional U-Net", (16, 16, 3))
def unet():
    x = keras.Input((16, 16, 3))
    down = [k.Conv2D(4, 3, padding="same", activation="relu")(x)]
    down.append(k.Conv2D(8, 3, padding="same", activation="relu")(k.MaxPooling2D()(down[0])))
    up = k.Conv2DTranspose(4, 3, strides=2, padding="same")(down[1])
    y = k.Concatenate()([up, down[0]])
    return keras.Model(
        x, k.Conv2D(2, 1, activation="sigmoid")(k.UpSampling2D(interpolation="nearest")(k.AveragePooling2D(2)(y)))
    )


@model("models", "Functional mixed precision", (16, 16, 3))
def mixed_precision():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        x = keras.Input((16, 16, 3))
        y = k.BatchNormalization()(k.Conv2D(8, 3, activation="relu")(x))
        y = k.GlobalAveragePooling2D()(k.SeparableConv2D(8, 3, activation="swish")(y))
        return keras.Model(x, k.Activation("softmax", dtype="float32")(k.Dense(4)(y)))
    finally:
        keras.config.set_dtype_policy(before)
