"""A model as its own backend traces it, by the exporter of that backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured, Refusal, Source
from entrepot.exporters.options import Options
from entrepot.exporters.structure import flatten_named
from entrepot.ir.errors import ConversionError

Function = Callable[..., Any]


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
    backend = keras.backend.backend()
    if backend not in _OPENED:
        raise ConversionError(f"models on the backend {backend} are read layer by layer alone")

    def function(*tensors: Any) -> Any:
        return call(list(tensors))

    traced = _OPENED[backend](function, source)
    tensors = [traced.arrays.from_numpy(source.arrays.to_numpy(array)) for array in prober.with_fixed(groups)]
    with traced.guard():
        try:
            result = traced(tensors)
        except Refusal as refusal:
            raise ConversionError(f"{backend} does not run this model with compiled functions: {refusal}") from refusal
        captured = traced.capture(Prober(traced, tensors, result), groups, options)
        traced.own_weights(captured.graph, share=False)
    return captured


def traced_behind_text(source: Source, call: Callable[[Any], Any], options: Options) -> Source:
    """What follows the operations on text in a model, as a function of TensorFlow; see ``Source.behind_text``.

    Raises:
        ConversionError: Its backend is another.
    """
    if keras.backend.backend() != "tensorflow":
        if all(np.asarray(tensor).dtype != object for tensor in source.call.tensors):
            return source
        raise ConversionError(
            f"on the backend {keras.backend.backend()}, functional models alone can begin behind text",
            hint="make a functional model of it, or export a model that begins there",
        )
    traced = _tensorflow(lambda *tensors: call(list(tensors)), source)
    traced.call = flatten_named(list(zip(source.call.names, traced.call.tensors, strict=True)), {}, traced.arrays)
    behind = traced.behind_text(options)
    if behind is traced:
        return source
    behind.framework = source.framework
    return behind


def _tensorflow(function: Function, source: Source) -> Source:
    from entrepot.exporters.tensorflow.sources.callable import CallableSource, Opened

    return CallableSource(Opened(function, source.name, source.origin, source.noun), tuple(source.call.tensors))


def _jax(function: Function, source: Source) -> Source:
    import jax

    from entrepot.exporters.jax.exporter import EXPORTER

    return EXPORTER.open(function, tuple(map(jax.numpy.asarray, source.call.tensors)))


def _torch(function: Function, source: Source) -> Source:
    import torch

    from entrepot.exporters.torch.exporter import EXPORTER

    return EXPORTER.open(function, tuple(map(torch.from_numpy, source.call.tensors)))


_OPENED = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
