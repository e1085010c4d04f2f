from __future__ import annotations

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.table import shared


@shared("RotaryEmbedding", 23)
def rotary_embedding(
    xp: Backend,
    X: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Array:
    """Rotate pairs of each head's first features by angles that grow with the token's position."""
    shape = xp.shape(X)
    x = _sequence_first(xp, widen(xp, X), num_heads)
    size = rotary_embedding_dim or xp.shape(x)[-1]
    caches = tuple(xp.shape(cos_cache)), tuple(xp.shape(sin_cache))
    if not all(is_shape(cache, (*caches[0][:-1], size // 2)) for cache in caches):
        raise InputError(f"caches of shapes {caches[0]} and {caches[1]} do not turn {size} features")
    cos, sin = (_angles(xp, widen(xp, cache), position_ids) for cache in (cos_cache, sin_cache))
    turned, kept = x[..., :size], x[..., size:]
    y = xp.concat([(_turn_pairs if interleaved else _turn_halves)(xp, turned, cos, sin), kept], 3)
    y = xp.transpose(y, (0, 2, 1, 3)) if len(shape) == 4 else xp.reshape(y, shape)
    return narrow(xp, y, xp.dtype(X))


def _sequence_first(xp: Backend, x: Array, num_heads: int | None) -> Array:
    """(batch, sequence, heads, size)."""
    shape = xp.shape(x)
    if len(shape) == 4:
        return xp.transpose(x, (0, 2, 1, 3))
    if not num_heads:
        raise InputError("RotaryEmbedding on a rank-3 input needs num_heads")
    return xp.reshape(x, (*shape[:2], num_heads, shape[2] // num_heads))


def _angles(xp: Backend, cache: Array, position_ids: Array | None) -> Array:
    """(batch, sequence, 1, size / 2), looked up by position where positions are given."""
    if position_ids is not None:
        positions = xp.shape(position_ids)
        rows = xp.take(cache, xp.reshape(position_ids, (-1,)), 0)
        cache = xp.reshape(rows, (*positions, xp.shape(cache)[-1]))
    return xp.expand_dims(cache, 2)


def _turn_halves(xp: Backend, x: Array, cos: Array, sin: Array) -> Array:
    half = xp.shape(x)[-1] // 2
    left, right = x[..., :half], x[..., half:]
    return xp.concat([cos * left - sin * right, sin * left + cos * right], 3)


def _turn_pairs(xp: Backend, x: Array, cos: Array, sin: Array) -> Array:
    even, odd = x[..., 0::2], x[..., 1::2]
    return xp.reshape(xp.stack([cos * even - sin * odd, sin * even + cos * odd], 4), xp.shape(x))
