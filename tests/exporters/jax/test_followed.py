"""What Python and NumPy are asked of sizes that vary is answered by JAX, and only while a function is traced."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import entrepot as ep


class Pair(NamedTuple):
    init: Any
    apply: Any


PAIR = Pair(None, lambda x: x[: len(x) // 2])
FUNCTIONS = {
    "len": lambda x: x.sum() / len(x) + jnp.arange(len(x))[:, None],
    "squeeze": lambda x: (x.sum(1, keepdims=True)).squeeze() + jnp.squeeze(x[None, :, :1]),
    "arange of NumPy": lambda x: x + np.sin(np.arange(x.shape[0])[:, None] / np.sqrt(x.shape[0])),
    "masks of NumPy": lambda x: jnp.where(np.tril(np.ones((x.shape[0], x.shape[0]))) > 0, x @ x.T, -9.0),
    "frequencies of NumPy": lambda x: x * np.fft.fftfreq(x.shape[0])[:, None],
    "roots of Python": lambda x: x / math.sqrt(x.shape[0]) + math.log(x.shape[0]),
    "min and max": lambda x: x[: min(x.shape[0], 4)] * max(3, x.shape[0]),
    "products of sizes": lambda x: x.reshape(np.prod(x.shape)),
    "cov": lambda x: jnp.cov(x, rowvar=False),
    "corrcoef": jnp.corrcoef,
    "convolve": lambda x: jnp.convolve(x[:, 0], jnp.array([0.2, 0.5, 0.3]), mode="same"),
    "diagflat": lambda x: jnp.diagflat(x[:, 0]),
    "scans of a stated length": lambda x: jax.lax.scan(lambda c, e: (c + e, c * e), x[0], x, length=x.shape[0]),
    "quotients rounded up": lambda x: x[: math.ceil(x.shape[0] / 2) + math.floor(x.shape[0] / 3)],
    "quotients of NumPy": lambda x: jnp.pad(x, ((0, int(np.ceil(x.shape[0] / 4) * 4) - x.shape[0]), (0, 0))),
    "whole parts": lambda x: (x[: int(x.shape[0] / 2)], x[: int(0.75 * x.shape[0])] * int(7 / 2), x + int("3")),
    "extremes of NumPy": lambda x: x[: np.minimum(x.shape[0], 8)] * np.maximum(3, x.shape[0]),
    "taken round": lambda x: jnp.take(x, jnp.arange(-3, 9), axis=0, mode="wrap"),
    "padded round": lambda x: jnp.pad(x, ((1, 7), (0, 2)), mode="wrap"),
    "searches": lambda x: jnp.searchsorted(jnp.sort(x[:, 0]), x, side="right"),
    "searches with NaN": lambda x: jnp.searchsorted(jnp.sort(x[:, 0]), jnp.where(x > 1, jnp.nan, x).at[0].set(x[0])),
    "searches in another order": lambda x: jnp.searchsorted(x[:, 0], x[:, 1], sorter=jnp.argsort(x[:, 0])),
    "functions in a tuple with names": lambda x: PAIR.apply(x) + 0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_that_are_asked_for_vary(name):
    """Judged by JAX, at a size that no proof has tried."""
    function = FUNCTIONS[name]
    x = np.random.default_rng(0).uniform(0.5, 1.5, (11, 4)).astype(np.float32)
    model = ep.export(function, jnp.asarray(x[:5]), progress=False)
    for found, expected in zip(
        ep.Session(model, providers=["onnxruntime"]).run({"x": x}).values(),
        jax.tree.leaves(function(jnp.asarray(x))),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_a_squeezed_axis_that_varies_has_more_than_one_element():
    model = ep.export(lambda x: x.squeeze(), jnp.ones((5, 1)), dynamic={"x": {0: "batch"}}, progress=False)
    assert "batch >= 2" in model.metadata["entrepot.conditions"]


def test_nothing_is_replaced_outside_of_copies():
    """While the copy is traced, whoever looks finds Python's, NumPy's and JAX's own functions."""
    names = ["builtins.len", "builtins.min", "math.sqrt", "operator.index", "numpy.arange", "jax.numpy.squeeze"]
    seen = []

    def look():
        parts = [name.rpartition(".") for name in names]
        seen.append([vars(sys.modules[module])[name] for module, _, name in parts])

    def function(x):
        look()
        looked = threading.Thread(target=look)
        looked.start()
        looked.join()
        return x * len(x)

    look()
    model = ep.export(function, jnp.ones((5, 4)), progress=False)
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert len(seen) > 2
    assert all(found == seen[0] for found in seen)


def test_what_is_padded_to_whole_pieces_varies():
    """JAX does not see that ``n + -n % 4`` is divided by 4."""

    def function(x):
        padded = jnp.pad(x, ((0, -x.shape[0] % 4), (0, 0)))
        return padded.reshape(-1, 4, x.shape[1]).sum(1)

    x = np.random.default_rng(0).uniform(0.5, 1.5, (11, 4)).astype(np.float32)
    model = ep.export(function, jnp.asarray(x[:5]), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for count in (1, 4, 11):
        (found,) = session.run({"x": x[:count]}).values()
        np.testing.assert_allclose(found, function(jnp.asarray(x[:count])), rtol=2e-5)
