"""Axes that vary within what a model takes, where JAX cannot say what it does at every size."""

from __future__ import annotations

import itertools
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


WEIGHT = jnp.asarray(np.random.default_rng(2).standard_normal((2, 3)), jnp.float32)
BOTH_WAYS: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda x: jnp.exp(x * 2 if x.shape[0] > 4 else x),
    "weights on both sides": lambda x: jnp.tanh(x @ WEIGHT) if x.shape[0] > 4 else x @ WEIGHT * 2,
    "three ways": lambda x: x.sum(0) if x.shape[0] < 3 else x.max(0) if x.shape[0] < 7 else x.min(0),
    "one row by itself": lambda x: x / (1 if x.shape[0] == 1 else x.shape[0] - 1),
    "a long rest": lambda x: jnp.concatenate([x[:64].cumsum(0), x[64:]]) if x.shape[0] > 64 else x.cumsum(0),
    "by lax": lambda x: lax.cond(x.shape[0] > 4, lambda y: y.sum(0), lambda y: y.max(0), x),
}


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_an_axis_varies_where_its_size_decides_which_way_a_model_goes(name: str, provider: str) -> None:
    function = BOTH_WAYS[name]
    model = ep.export(function, jnp.ones((6, 2)))
    assert model.inputs[0].shape[0] == "batch"
    session = ep.Session(model, providers=[provider])
    for size in (1, 2, 3, 4, 5, 6, 7, 30, 64, 65, 100):
        given = np.random.default_rng(size).standard_normal((size, 2)).astype(np.float32)
        (result,) = session.run([given]).values()
        np.testing.assert_allclose(result, function(jnp.asarray(given)), rtol=1e-5, atol=1e-5)


def test_the_sizes_of_two_inputs_decide_independently() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return (x * 2 if x.shape[0] > 4 else x - 1), (y.sum(1) if y.shape[1] < 3 else y.max(1))

    model = ep.export(function, (jnp.ones((3, 2)), jnp.ones((4, 5))))
    session = ep.Session(model)
    for rows, columns in itertools.product((1, 4, 5, 9), (1, 2, 3, 8)):
        x, y = (
            np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((rows, 2), (3, columns))
        )
        for found, expected in zip(session.run([x, y]).values(), function(x, y), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_an_axis_whose_size_is_computed_with_while_tracing_stays_fixed() -> None:
    def function(x: jax.Array) -> jax.Array:
        with jax.ensure_compile_time_eval():
            waves = jnp.cos(jnp.arange(x.shape[1]) * (2.0 if x.shape[1] > 3 else 1.0))
        return x * waves

    model = ep.export(function, jnp.ones((2, 5)))
    assert model.inputs[0].shape == ("batch", 5)


def by_product(x):
    return x.sum((0, 1)) if x.shape[0] * x.shape[1] > 20 else x.mean((0, 1))


def by_order(x):
    rows, columns = x.shape[:2]
    if rows * columns < 6:
        return x.sum((0, 1))
    return x.max((0, 1)) if rows > columns else x[:rows].min((0, 1))


@pytest.mark.parametrize("function", [by_product, by_order])
def test_conditions_on_several_sizes_are_asked_for(function):
    model = ep.export(function, jnp.ones((2, 3, 4)), dynamic={"x": {0: "rows", 1: "columns"}}, progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for rows, columns in ((1, 1), (2, 2), (4, 5), (3, 7), (7, 3), (1, 21), (21, 1), (5, 5)):
        x = np.random.default_rng(rows).standard_normal((rows, columns, 4)).astype(np.float32)
        (found,) = session.run({"x": x}).values()
        np.testing.assert_allclose(found, function(jnp.asarray(x)), rtol=1e-5, atol=1e-6)
    assert [node.op_type for node in model.ir.graph][-1] in ("If", "Identity")


def test_a_side_that_nobody_can_try_is_not_taken():
    def function(x):
        return x * 2 if x.shape[0] * x.shape[1] > 10**9 else x

    model = ep.export(function, jnp.ones((2, 3)), progress=False)
    assert not all(isinstance(size, str) for size in model.inputs[0].shape)
