"""Keras: models and layers, and the files that hold them."""

from __future__ import annotations

import os
from typing import Any

import keras

from entrepot.exporters.exporter import Exporter
from entrepot.exporters.keras.files import read
from entrepot.exporters.keras.source import KerasSource
from entrepot.exporters.recognition import Found, is_keras
from entrepot.ir.errors import InputError


class KerasExporter(Exporter):
    """Opens whatever Keras makes."""

    name = "keras"

    def recognises(self, found: Found) -> bool:
        """By the classes of an object, or by what a file contains."""
        return is_keras(found)

    def open(self, obj: Any, sample: Any) -> KerasSource:
        """The source for a model or a layer, or for a file of one."""
        if isinstance(obj, str | os.PathLike):
            obj = read(obj)
        if not isinstance(obj, keras.Layer):
            raise InputError(f"cannot export a {type(obj).__qualname__}", hint="give a keras.Model or a keras.Layer")
        return KerasSource(obj, sample)


EXPORTER = KerasExporter()
