"""Functions of jax.numpy, with weights around them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from entrepot.models_zoo.registry import Built

KEY = jax.random.key(20)


def _dense(at: int, rows: int, columns: int) -> dict[str, Array]:
    kernel = jax.random.normal(jax.random.fold_in(KEY, at), (rows, columns)) / rows**0.5
    return {"kernel": kernel, "bias": jnp.full(columns, 0.1)}


def _draw(at: int, *shape: int) -> Array:
    return jax.random.normal(jax.random.fold_in(KEY, 100 + at), shape)


def mlp(*, features: int = 16, width: int = 64, classes: int = 5) -> Built:
    """A plain feed-forward network."""
    params = {
        "first": _dense(0, features, width),
        "second": _dense(1, width, width),
        "last": _dense(2, width, classes),
    }

    def forward(x: Array) -> Array:
        for name in ("first", "second"):
            x = jax.nn.gelu(x @ params[name]["kernel"] + params[name]["bias"], approximate=False)
        return jax.nn.log_softmax(x @ params["last"]["kernel"] + params["last"]["bias"])

    return Built(forward, ((_draw(0, 1, features),), (_draw(1, 6, features),)), frozenset({"x.0"}))


def scan_rnn(*, features: int = 6, width: int = 12, classes: int = 4) -> Built:
    """An Elman network over a sequence of any length."""
    params = {"in": _dense(3, features, width), "state": _dense(4, width, width), "out": _dense(5, width, classes)}

    def forward(x: Array) -> Array:
        def step(state: Array, each: Array) -> tuple[Array, Array]:
            state = jnp.tanh(each @ params["in"]["kernel"] + state @ params["state"]["kernel"])
            return state, state @ params["out"]["kernel"]

        return lax.scan(step, jnp.zeros((x.shape[0], width)), x.swapaxes(0, 1))[1].swapaxes(0, 1)

    samples = ((_draw(2, 1, 5, features),), (_draw(3, 3, 8, features),))
    return Built(forward, samples, frozenset({"x.0", "x.1"}))


def graph_network(*, features: int = 6, width: int = 16) -> Built:
    """Two rounds of messages, each averaged over the edges that reach a node."""
    params = [_dense(6, features, width), _dense(7, width, width)]

    def forward(nodes: Array, senders: Array, receivers: Array) -> Array:
        degree = jax.ops.segment_sum(jnp.ones(receivers.shape), receivers, nodes.shape[0])
        for layer in params:
            messages = jax.nn.relu(nodes @ layer["kernel"])[senders]
            nodes = jax.ops.segment_sum(messages, receivers, nodes.shape[0]) / jnp.maximum(degree, 1)[:, None]
        return nodes

    small = _draw(4, 4, features), jnp.array([0, 1, 2]), jnp.array([1, 2, 0])
    large = _draw(5, 6, features), jnp.array([0, 1, 2, 5, 4]), jnp.array([1, 2, 0, 3, 3])
    return Built(forward, (small, large), frozenset({"nodes.0", "senders.0", "receivers.0"}))


def cached_attention(*, width: int = 8, length: int = 12) -> Built:
    """Attention of one token to those before it, whose keys and values are kept."""
    params = {name: _dense(8 + at, width, width) for at, name in enumerate(("query", "key", "value"))}

    def step(x: Array, keys: Array, values: Array, position: Array) -> tuple[Array, Array, Array]:
        query, key, value = (x @ params[name]["kernel"] for name in ("query", "key", "value"))
        keys = lax.dynamic_update_slice(keys, key[:, None], (0, position, 0))
        values = lax.dynamic_update_slice(values, value[:, None], (0, position, 0))
        scores = jnp.einsum("bd,btd->bt", query, keys) / width**0.5
        weights = jax.nn.softmax(jnp.where(jnp.arange(length) <= position, scores, -1e9))
        return jnp.einsum("bt,btd->bd", weights, values), keys, values

    def sample(at: int, batch: int) -> tuple[Array, ...]:
        return (
            _draw(at, batch, width),
            _draw(at + 1, batch, length, width),
            _draw(at + 2, batch, length, width),
            jnp.int32(3),
        )

    return Built(step, (sample(6, 1), sample(9, 4)), frozenset({"x.0", "keys.0", "values.0"}))
