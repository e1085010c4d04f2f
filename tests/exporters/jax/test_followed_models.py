"""Copies of a user's functions are found wherever a model has them: in classes, closures, wrappers and lists."""

from __future__ import annotations

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import entrepot as ep


def _scaled(x):
    return x * len(x) / math.sqrt(x.shape[0])


@jax.jit
def _jitted(x):
    return _scaled(x)


@functools.lru_cache(4)
def _positions(count):
    return np.arange(count) / 7


@jax.custom_jvp
def _with_gradient(x):
    return _scaled(x)


_with_gradient.defjvp(lambda primals, tangents: (_scaled(*primals), _scaled(*tangents)))


class Base(nnx.Module):
    def positions(self, x):
        return np.arange(x.shape[0])[:, None]


class Nnx(Base):
    def __init__(self):
        self.inner = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
        self.act = _scaled

    def __call__(self, x):
        return self.act(self.inner(x) + super().positions(x) * 0 + self.positions(x))


class Part(linen.Module):
    @linen.compact
    def __call__(self, x):
        return _scaled(linen.Dense(4)(x))


class Linen(linen.Module):
    def setup(self):
        self.parts = [Part() for _ in range(2)]

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x.sum(1, keepdims=True).squeeze() / len(x)


class Equinox(eqx.Module):
    layers: list
    act: object

    def __init__(self):
        keys = jax.random.split(jax.random.key(0), 2)
        self.layers = [eqx.nn.Linear(4, 4, key=key) for key in keys]
        self.act = _scaled

    def __call__(self, x):
        for layer in self.layers:
            x = self.act(jax.vmap(layer)(x))
        return x + self.offset(x)

    def offset(self, x):
        return len(x)


class Plain:
    w = np.float32(1.5)

    def __init__(self):
        self.functions = [_scaled, jnp.tanh]

    @property
    def scale(self):
        return self.w

    def __call__(self, x):
        for function in self.functions:
            x = function(x)
        return x * self.scale + self.offset(x)

    @staticmethod
    def offset(x):
        return len(x)


def _bound_linen():
    return (Linen(), Linen().init(jax.random.key(0), jnp.ones((3, 4))))


def _recursive(x, depth=2):
    return _scaled(x) if depth == 0 else _recursive(x + len(x), depth - 1)


def _nested(x):
    def step(carry, row):
        return carry + row / len(x), carry.sum()

    return jax.lax.scan(step, jnp.zeros(4), x)


def _closed(model):
    return lambda x: model(x) + len(x)


class Stateful(nnx.Module):
    """Draws the state that it begins with, zeros, from a generator that counts its draws."""

    def __init__(self):
        self.rnn = nnx.RNN(nnx.GRUCell(4, 3, rngs=nnx.Rngs(0)))

    def encode(self, x):
        return self.rnn(x[None])[0] / len(x)


def _around_two():
    one, other = Stateful(), Stateful()
    return lambda x: one.encode(x) - 2 * other.encode(x[:1])


MODELS = {
    "nnx": Nnx,
    "a method of nnx": lambda: Stateful().encode,
    "nnx that counts": _around_two,
    "linen": _bound_linen,
    "equinox": Equinox,
    "plain": Plain,
    "a method": lambda: Plain().__call__,
    "jit": lambda: lambda x: _jitted(x) + 1,
    "cached": lambda: lambda x: x + _positions(x.shape[0])[:, None],
    "a gradient of its own": lambda: _with_gradient,
    "vmap": lambda: lambda x: jax.vmap(_scaled, in_axes=1, out_axes=1)(x) + 1,
    "vmap outside": lambda: jax.vmap(_scaled, in_axes=1, out_axes=1),
    "checkpoint": lambda: jax.checkpoint(_scaled),
    "partial": lambda: functools.partial(lambda scale, x: scale * _scaled(x), 2.0),
    "recursive": lambda: _recursive,
    "nested": lambda: _nested,
    "nnx in a closure": lambda: _closed(Nnx()),
    "prefixes": lambda: functools.partial(jax.lax.associative_scan, jnp.add),
}


@pytest.mark.parametrize("name", MODELS)
def test_sizes_vary(name):
    """Judged by JAX, at a size that no proof has tried."""
    model = MODELS[name]()
    x = np.random.default_rng(0).uniform(0.5, 1.5, (11, 4)).astype(np.float32)
    exported = ep.export(model, jnp.asarray(x[:5]), progress=False)
    found = ep.Session(exported, providers=["onnxruntime"]).run({exported.inputs[0].name: x}).values()
    expected = model[0].apply(model[1], x) if isinstance(model, tuple) else model(jnp.asarray(x))
    for one, other in zip(found, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
