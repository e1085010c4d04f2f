"""Axes that vary within what a model takes, where JAX cannot say what it does at every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import entrepot as ep

TABLE = jnp.asarray(np.random.default_rng(0).standard_normal((16, 6)), jnp.float32)

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a table of positions": (lambda x: x + TABLE[: x.shape[1]], "x_dim1 <= 16"),
    "a table that is cut by lax": (lambda x: x + lax.dynamic_slice(TABLE, (0, 0), (x.shape[1], 6)), "x_dim1 <= 16"),
    "positions that begin later": (lambda x: x + TABLE[2 : x.shape[1] + 2], "x_dim1 <= 14"),
    "padded to a size": (lambda x: jnp.pad(x, ((0, 0), (0, 16 - x.shape[1]), (0, 0))), "x_dim1 <= 16"),
    "the largest three": (lambda x: lax.top_k(jnp.swapaxes(x, 1, 2), 3)[0], "x_dim1 >= 3"),
    "the first three": (lambda x: lax.slice_in_dim(x, 0, 3, axis=1), "x_dim1 >= 3"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_axis_varies_up_to_where_the_model_ends(name: str) -> None:
    function, condition = FUNCTIONS[name]
    x = np.random.default_rng(1).standard_normal((2, 5, 6))
    model = ep.export(lambda x: jnp.tanh(function(x)), jnp.asarray(x, jnp.float32))
    assert condition in model.metadata["entrepot.conditions"]
    for size in (3, 4, 14):
        given = np.random.default_rng(size).standard_normal((3, size, 6)).astype(np.float32)
        (result,) = ep.Session(model).run({"x": given}).values()
        np.testing.assert_allclose(result, np.tanh(function(given)), rtol=1e-5, atol=1e-6)


ANOTHER_WAY: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a branch": (lambda x: jnp.exp(x * 2 if x.shape[1] > 4 else x), 4),
    "a reflection": (lambda x: jnp.exp(jnp.pad(x, ((0, 0), (3, 3)), "reflect")), 3),
}


@pytest.mark.parametrize("name", ANOTHER_WAY)
@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_a_graph_refuses_sizes_at_which_the_model_goes_another_way(name: str, provider: str) -> None:
    function, beyond = ANOTHER_WAY[name]
    model = ep.export(function, jnp.ones((2, 6)))
    session = ep.Session(model, providers=[provider])
    for size in (beyond + 1, 9):
        given = np.random.default_rng(size).standard_normal((3, size)).astype(np.float32)
        (result,) = session.run({"x": given}).values()
        np.testing.assert_allclose(result, function(given), rtol=1e-5, atol=1e-6)
    with pytest.raises(ep.EntrepotError):
        session.run({"x": np.ones((3, beyond), np.float32)})


def test_an_axis_whose_size_is_computed_with_while_tracing_stays_fixed() -> None:
    def function(x: jax.Array) -> jax.Array:
        with jax.ensure_compile_time_eval():
            waves = jnp.cos(jnp.arange(x.shape[1]) * (2.0 if x.shape[1] > 3 else 1.0))
        return x * waves

    model = ep.export(function, jnp.ones((2, 5)))
    assert model.inputs[0].shape == ("batch", 5)
