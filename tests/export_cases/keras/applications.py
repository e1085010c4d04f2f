"""Every network of ``keras.applications``, with random weights, and a head on a frozen encoder."""

from __future__ import annotations

import inspect
from functools import partial

import keras
from keras import layers as k

from tests.export_cases.keras.case import Given, model

SMALL = {"InceptionV3": 75, "InceptionResNetV2": 75, "Xception": 71, "NASNetLarge": 331, "NASNetMobile": 224}
"""What a network takes at least, or exactly with its head; others take 64."""


def _networks() -> list[str]:
    found = inspect.getmembers(keras.applications, inspect.isfunction)
    return sorted(name for name, _ in found if name[0].isupper())


def _build(name: str, size: int):
    return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))


for _name in _networks():
    _size = SMALL.get(_name, 64)
    model("applications", _name, Given((_size, _size, 3), positive=True), corpus="applications")(
        partial(_build, _name, _size)
    )


@model("applications", "transfer", Given((64, 64, 3), "uint8", most=256), corpus="applications")
def transfer():
    encoder = keras.applications.MobileNetV2(weights=None, include_top=False, input_shape=(64, 64, 3))
    encoder.trainable = False
    x = keras.Input((64, 64, 3), dtype="uint8")
    y = k.RandomRotation(0.1)(k.RandomFlip()(x))
    y = encoder(k.Rescaling(1 / 127.5, offset=-1)(y), training=False)
    return keras.Model(x, k.Dense(5, activation="softmax")(k.Dropout(0.2)(k.GlobalAveragePooling2D()(y))))
