"""Modules of flax nnx."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from entrepot.models_zoo.registry import Built


class _Autoencoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.encoder, self.mean, self.spread = (nnx.Linear(*size, rngs=rngs) for size in ((12, 8), (8, 3), (8, 3)))
        self.decoder = nnx.Linear(3, 12, rngs=rngs)

    def __call__(self, x: Array, key: Array) -> dict[str, Array]:
        h = nnx.relu(self.encoder(x))
        mean, spread = self.mean(h), self.spread(h)
        z = mean + jnp.exp(spread / 2) * jax.random.normal(key, mean.shape)
        return {"image": nnx.sigmoid(self.decoder(z)), "mean": mean, "spread": spread}


def autoencoder() -> Built:
    """A variational autoencoder of twelve features; the key says what is drawn."""
    samples = [(jax.random.uniform(jax.random.key(at), (at, 12)), jax.random.PRNGKey(at)) for at in (1, 4)]
    return Built(_Autoencoder(nnx.Rngs(20)), tuple(samples), frozenset({"x.0"}))
