"""JAX: functions of arrays, modules of flax and equinox, and what ``jax.export`` makes."""

from __future__ import annotations

from typing import Any

import jax
import jax.export

from entrepot.exporters.exporter import Exporter, Source
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
        """The source for a function or a module.

        Raises:
            InputError: It is neither, or what ``jax.export`` made, of which only compiled code for XLA is left.
        """
        if isinstance(obj, jax.export.Exported):
            raise InputError(
                f"'{obj.fun_name}' is what jax.export made: a program in StableHLO, without its function",
                hint="export the function itself: ep.export(function, sample)",
            )
        model = model_of(obj)
        if sample is None:
            raise InputError(
                f"a {model.noun} of JAX needs a sample to be exported", hint="ep.export(f, x): as it is called"
            )
        return JaxSource(model, sample)


EXPORTER = JaxExporter()
