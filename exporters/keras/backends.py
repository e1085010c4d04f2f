"""A model as its own backend traces it, by the exporter of that backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured, Source
from entrepot.exporters.options import Options
from entrepot.ir.errors import ConversionError


def capture_traced(
    source: Source, call: Callable[[Any], Any], prober: Prober, groups: list[Group], options: Options
) -> Captured:
    """The graph of a model, from a trace of its backend.

    Args:
        source: The model.
        call: Calls it for inference on a flat list of tensors.
        prober: See ``Source.capture``.
        groups: See ``Source.capture``.
        options: See ``Source.capture``.

    Raises:
        ConversionError: Its backend is none that traces are taken from.
    """
    if keras.backend.backend() != "tensorflow":
        raise ConversionError(f"models on the backend {keras.backend.backend()} are read layer by layer alone")
    from entrepot.exporters.tensorflow.sources.callable import CallableSource, Opened

    def function(*tensors: Any) -> Any:
        return call(list(tensors))

    opened = Opened(function, source.name, source.origin, source.noun)
    return CallableSource(opened, tuple(source.call.tensors)).capture(prober, groups, options)
