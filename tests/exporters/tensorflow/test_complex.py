"""Complex inputs and results are pairs of reals along a last axis of the file."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import entrepot as ep

RANDOM = np.random.default_rng(0)


def _complex(*shape):
    return (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(np.complex64)


def _pairs(array):
    return np.stack([array.real, array.imag], -1)


def test_a_filter_takes_and_returns_spectra():
    @tf.function
    def filtered(spectrum, gain):
        return {"filtered": spectrum * tf.cast(gain, tf.complex64), "power": tf.abs(spectrum)}

    z, gain = _complex(3, 5), RANDOM.random(5).astype(np.float32)
    model = ep.export(filtered, (z, gain), progress=False)
    assert [spec.shape[-1] for spec in model.inputs] == [2, model.inputs[1].shape[0]]
    other, louder = _complex(4, 5), RANDOM.random(5).astype(np.float32)
    found = ep.Session(model, providers=["onnxruntime"]).run({"spectrum": _pairs(other), "gain": louder})
    np.testing.assert_allclose(found["filtered"], _pairs(other * louder), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["power"], np.abs(other), rtol=1e-5)


def test_a_transform_returns_pairs():
    model = ep.export(tf.function(tf.signal.rfft), RANDOM.random((2, 8)).astype(np.float32), progress=False)
    x = RANDOM.random((3, 8)).astype(np.float32)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, _pairs(np.fft.rfft(x)), rtol=1e-4, atol=1e-5)


def test_a_concrete_function_of_complex_numbers_needs_no_sample():
    concrete = tf.function(tf.math.conj).get_concrete_function(tf.TensorSpec([None, 4], tf.complex64))
    model = ep.export(concrete, progress=False)
    z = _complex(3, 4)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: _pairs(z)}).values()
    np.testing.assert_allclose(found, _pairs(z.conj()))
