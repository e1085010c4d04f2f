"""Axes that one trace fixes: traced at several sizes, and put together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import entrepot as ep

WEIGHT = jax.random.normal(jax.random.key(0), (4, 4))


def steps(x):
    """A recurrent network, unrolled."""
    state, found = jnp.zeros((x.shape[0], 4)), []
    for at in range(x.shape[1]):
        state = jnp.tanh(state @ WEIGHT + x[:, at])
        found.append(state)
    return jnp.stack(found, 1)


def decides(x):
    return x * 2 if x.shape[1] == 7 else x


@pytest.mark.parametrize("function", [steps, decides])
def test_every_size_is_computed(function):
    model = ep.export(function, jnp.ones((2, 7, 4)), progress=False)
    assert model.report.ok
    assert all(isinstance(size, str) for size in model.inputs[0].shape[:2])
    session = ep.Session(model, providers=["onnxruntime"])
    for rows, length in ((2, 7), (1, 3), (3, 1), (2, 8), (4, 12)):
        x = np.random.default_rng(length).standard_normal((rows, length, 4)).astype(np.float32)
        (found,) = session.run({"x": x}).values()
        np.testing.assert_allclose(found, function(jnp.asarray(x)), rtol=1e-5, atol=1e-6)


def test_what_follows_no_rule_stays_fixed_with_the_reason():
    def function(x):
        return jnp.asarray(np.random.default_rng(x.shape[0]).standard_normal((x.shape[0], 1)), jnp.float32) * x

    model = ep.export(function, jnp.ones((5, 3)), progress=False)
    assert model.inputs[0].shape[0] == 5
    assert any("fixed: x.0 = 5" in note for note in model.notes)
