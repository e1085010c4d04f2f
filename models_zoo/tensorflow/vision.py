"""Networks on images."""

from __future__ import annotations

import tensorflow as tf

from entrepot.models_zoo.registry import Built
from entrepot.models_zoo.tensorflow.weights import Weights, rows


class Convolution(tf.Module):
    """A convolution, batch statistics, and what is not negative of it."""

    def __init__(self, weights: Weights, before: int, after: int, stride: int = 1, name: str = "convolution") -> None:
        super().__init__(name)
        self.stride = stride
        self.kernel = weights("kernel", 3, 3, before, after)
        self.scale, self.offset, self.mean = (weights(name, after) for name in ("scale", "offset", "mean"))
        self.variance = tf.Variable(tf.ones(after) * 0.5, name="variance")

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        x = tf.nn.conv2d(x, self.kernel, self.stride, "SAME")
        return tf.nn.relu(tf.nn.batch_normalization(x, self.mean, self.variance, self.offset, self.scale, 1e-3))


class Cnn(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("cnn")
        self.blocks = [Convolution(weights, 3, 8, name="stem"), Convolution(weights, 8, 16, 2, name="down")]
        self.head = weights("head", 16, 5)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for block in self.blocks:
            x = block(x)
        return tf.nn.softmax(tf.reduce_mean(tf.nn.max_pool2d(x, 2, 2, "SAME"), [1, 2]) @ self.head)


class Unet(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("unet")
        self.first, self.down = Convolution(weights, 3, 8, name="first"), Convolution(weights, 8, 16, 2, name="down")
        self.up, self.last = Convolution(weights, 16, 8, name="up"), weights("last", 1, 1, 16, 2)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        first = self.first(x)
        up = tf.image.resize(self.up(self.down(first)), tf.shape(first)[1:3])
        return tf.nn.conv2d(tf.concat([first, up], -1), self.last, 1, "SAME")


class Mixer(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("mixer")
        self.patches, self.head = weights("patches", 4, 4, 3, 8), weights("head", 8, 3)
        self.along, self.back = weights("along", 16, 12), weights("back", 12, 16)
        self.wide, self.narrow = weights("wide", 8, 24), weights("narrow", 24, 8)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        x = tf.reshape(tf.nn.conv2d(x, self.patches, 4, "VALID"), [-1, 16, 8])
        y = tf.transpose(x, [0, 2, 1])
        x += tf.transpose(tf.nn.gelu(y @ self.along) @ self.back, [0, 2, 1])
        x += tf.nn.gelu(x @ self.wide) @ self.narrow
        return tf.reduce_mean(x, 1) @ self.head


class Autoencoder(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("autoencoder")
        self.encode, self.decode = weights("encode", 12, 8), weights("decode", 3, 12)
        self.mean, self.spread = weights("mean", 8, 3), weights("spread", 8, 3)

    def __call__(self, x: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        inside = tf.nn.relu(x @ self.encode)
        mean, spread = inside @ self.mean, inside @ self.spread
        drawn = mean + tf.exp(spread / 2) * tf.random.stateless_uniform(tf.shape(mean), seed)
        return {"image": tf.sigmoid(drawn @ self.decode), "mean": mean}


def cnn() -> Built:
    """A classifier of images of any size."""
    samples = tuple((rows(count, size, size, 3),) for count, size in ((1, 16), (3, 20)))
    return Built(Cnn(Weights()), samples, frozenset({"x.0", "x.1", "x.2"}))


def unet() -> Built:
    """A segmentation network; what goes up is resized to what came down."""
    samples = tuple((rows(count, size, size, 3),) for count, size in ((1, 16), (3, 20)))
    return Built(Unet(Weights()), samples, frozenset({"x.0"}))


def mixer() -> Built:
    """An MLP-Mixer for images of 16 by 16."""
    return Built(Mixer(Weights()), ((rows(1, 16, 16, 3),), (rows(3, 16, 16, 3),)), frozenset({"x.0"}))


def autoencoder() -> Built:
    """Its second input is the seed of what is drawn."""
    seed = tf.constant([1, 2], tf.int32).numpy()
    return Built(Autoencoder(Weights()), ((rows(1, 12), seed), (rows(3, 12), seed)), frozenset({"x.0"}))
