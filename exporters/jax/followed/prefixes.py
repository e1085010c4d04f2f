"""Prefixes along an axis that varies, which JAX halves in Python as long as its size is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from entrepot.exporters.jax.dims import is_known


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The same prefixes, one after the other: what is associative may be taken together in any order."""
    leaves = jax.tree.leaves(elems)
    if not leaves or all(is_known(each.shape[axis]) for each in leaves):
        return jax.lax.associative_scan(fn, elems, reverse, axis)
    at = axis % leaves[0].ndim
    items = jax.tree.map(lambda x: jnp.expand_dims(jnp.moveaxis(x, at, 0), at + 1), elems)

    def turn(carry: tuple[Any, Any], item: Any) -> tuple[tuple[Any, Any], Any]:
        started, total = carry
        found = jax.tree.map(lambda new, own: jnp.where(started, new, own).astype(own.dtype), fn(total, item), item)
        return (True, found), found

    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), items)
    _, found = jax.lax.scan(turn, (False, nothing), items, reverse=reverse)
    return jax.tree.map(lambda x: jnp.moveaxis(jnp.squeeze(x, at + 1), 0, at), found)
