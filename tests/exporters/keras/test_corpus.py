"""A sample of the corpus, and that it has every class of layers."""

from __future__ import annotations

import inspect

import keras
import numpy as np
import pytest

import entrepot as ep
from tests.export_cases.keras.catalogue import ABSENT, catalogue

SAMPLE = [
    "dense/EinsumDense heads",
    "dense/Lambda of sizes",
    "activations/Activation mish",
    "norms/GroupNormalization of open images",
    "convolutions/Conv2DTranspose output padding",
    "recurrence/LSTM masked to zeros backwards",
    "recurrence/Bidirectional GRU masked",
    "attention/MultiHeadAttention masked",
    "preprocessing/Resizing of bytes",
    "preprocessing/StringLookup mask",
    "models/Functional nested",
    "models/Functional own layer",
    "reductions/associative_scan backwards",
]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_corpus_is_exported_at_every_size(name):
    case = next(case for case in catalogue() if case.name == name)
    model, calls = case.build()
    exported = ep.export(model, calls[0] if len(calls[0]) > 1 else calls[0][0], progress=False)
    assert exported.report.ok
    for call in calls:
        shapes = [spec.shape for spec in exported.inputs]
        assert all(
            isinstance(size, str) or size == array.shape[axis]
            for shape, array in zip(shapes, call, strict=True)
            for axis, size in enumerate(shape)
        )


def test_every_class_of_layers_has_a_case():
    found = inspect.getmembers(keras.layers, inspect.isclass)
    classes = {kind.__name__ for _, kind in found if issubclass(kind, keras.Layer)} - {"Layer"}
    titles = {word for case in catalogue() for word in case.name.replace("/", " ").split()}
    known = {"GroupedQueryAttention": "GroupQueryAttention"}
    assert {name for name in classes if known.get(name, name) not in titles} <= ABSENT.keys()


def test_layers_that_onnx_cannot_express_are_refused_by_name():
    case = next(case for case in catalogue() if case.subject == "Hashing")
    model, calls = case.build()
    with pytest.raises(ep.ConversionError, match="Hashing: fingerprints"):
        ep.export(model, calls[0][0], progress=False)


def test_exporting_leaves_no_traces_in_a_model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    before = len(model.layers[0]._inbound_nodes)
    ep.export(model, np.ones((2, 3), np.float32), progress=False)
    assert len(model.layers[0]._inbound_nodes) == before
