"""Fourier transforms are as exact in onnxruntime as in JAX, for numbers of elements that are no power of two."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import entrepot as ep


def test_a_transform_of_many_elements_is_exact() -> None:
    x = np.random.default_rng(0).standard_normal((2, 600)).astype(np.float32)
    model = ep.export(lambda x: jnp.abs(jnp.fft.fft(x)), (x,), progress=False)
    for count in (600, 900):
        x = np.random.default_rng(1).standard_normal((3, count)).astype(np.float32)
        (found,) = ep.Session(model, providers=["onnxruntime"]).run([x]).values()
        expected = np.abs(np.fft.fft(x.astype(np.float64)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * expected.max())
