"""JAX: functions of arrays, modules of flax and equinox, and what ``jax.export`` makes."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.export

from entrepot.exporters.exporter import Exporter, Source
from entrepot.exporters.jax.exported.model import exported_model, made_sample, read
from entrepot.exporters.jax.models import model_of
from entrepot.exporters.jax.source import JaxSource
from entrepot.exporters.recognition import Found, is_jax
from entrepot.ir.errors import InputError


class JaxExporter(Exporter):
    """Opens whatever takes and returns JAX's arrays."""

    name = "jax"

    def recognises(self, found: Found) -> bool:
        """By the classes of an object, or by what a function holds and is called with."""
        return is_jax(found)

    def open(self, obj: Any, sample: Any) -> Source:
        """The source for a function or a module, for what ``jax.export`` made, or for a file or bytes of that.

        Raises:
            InputError: It is none of these.
            ModelFormatError: JAX cannot read the file.
        """
        if isinstance(obj, str | os.PathLike | bytes | bytearray | memoryview):
            obj = read(obj)
        if isinstance(obj, jax.export.Exported):
            model = exported_model(obj)
            return JaxSource(model, made_sample(obj) if sample is None else sample)
        model = model_of(obj)
        if sample is None:
            raise InputError(
                f"a {model.noun} of JAX needs a sample to be exported", hint="ep.export(f, x): as it is called"
            )
        return JaxSource(model, sample)


EXPORTER = JaxExporter()
