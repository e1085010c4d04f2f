"""Models on Keras' other backends, each in a process of its own: a process has one backend."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import keras
import entrepot as ep

class Logit(keras.Layer):
    def call(self, x):
        return keras.ops.erfinv(keras.ops.tanh(x))

for own in ([], [Logit()]):
    model = ep.export(keras.Sequential([keras.Input((None, 4)), keras.layers.Dense(3), *own]), progress=False)
    assert model.report.ok
    assert [type(size) for size in model.inputs[0].shape] == [str, str, int]
    print(keras.backend.backend(), any("as its backend traces it" in note for note in model.notes))

words = keras.layers.IntegerLookup(vocabulary=[12, 36], invert=True)
model = ep.export(keras.Sequential([keras.Input((None,), dtype="int64"), words]), progress=False)
print(model.report.ok, model.outputs[0].dtype)
"""
TYPES = {"jax": "int32", "torch": "int64"}
"""What the backend returns where Keras says int64: JAX has no such numbers unless it is told to."""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_layers_are_read_and_what_cannot_be_is_traced(backend):
    environment = os.environ | {"KERAS_BACKEND": backend}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{backend} False", f"{backend} True", f"True {TYPES[backend]}"], done.stderr
