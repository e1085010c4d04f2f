"""``jnp.take`` and ``jnp.pad`` that go round an axis, whose size they would have to know."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from entrepot.exporters.jax.dims import is_known


def take(a: Any, indices: Any, axis: Any = None, out: None = None, mode: Any = None, **kwargs: Any) -> Any:
    """``jnp.take``; an index beyond an end counts on from the other one."""
    if mode != "wrap" or not isinstance(a, jax.core.Tracer):
        return jnp.take(a, indices, axis, out, mode, **kwargs)
    flat, at = (a.reshape(-1), 0) if axis is None else (a, axis)
    return jnp.take(flat, _round(jnp.asarray(indices), flat.shape[at]), at, out, "clip", **kwargs)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """``jnp.pad``; what goes round is taken index by index where a size varies."""
    if mode != "wrap" or not isinstance(array, jax.core.Tracer) or all(map(is_known, array.shape)):
        return jnp.pad(array, pad_width, mode, **kwargs)
    widths = np.broadcast_to(np.asarray(pad_width, int), (array.ndim, 2))
    for axis, (before, after) in enumerate(widths.tolist()):
        if before or after:
            size = array.shape[axis]
            places = jnp.arange(before + size + after) - before
            array = jnp.take(array, _round(places, size), axis, mode="clip")
    return array


def _round(places: Any, size: Any) -> Any:
    return jnp.mod(places, jnp.asarray(size, places.dtype))
