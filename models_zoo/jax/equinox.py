"""Modules of equinox, which are written for one example and mapped over a batch."""

from __future__ import annotations

import equinox as eqx
import jax
from jax import Array

from entrepot.models_zoo.registry import Built

KEY = jax.random.key(20)


class _Transformer(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    head: eqx.nn.MLP

    def __init__(self, key: Array) -> None:
        one, two = jax.random.split(key)
        self.attention, self.norm = eqx.nn.MultiheadAttention(2, 8, key=one), eqx.nn.LayerNorm(8)
        self.head = eqx.nn.MLP(8, 3, 16, 1, key=two)

    def __call__(self, x: Array) -> Array:
        x = x + self.attention(x, x, x)
        return jax.vmap(self.head)(jax.vmap(self.norm)(x))


def equinox_transformer() -> Built:
    """One block over sequences of any length."""
    samples = [(jax.random.normal(KEY, (at, 3 + at, 8)),) for at in (1, 3)]
    return Built(jax.vmap(_Transformer(KEY)), tuple(samples), frozenset({"x.0", "x.1"}))
