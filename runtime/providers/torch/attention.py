"""Attention as one kernel of torch, or block by block where NumPy's BLAS multiplies faster than torch's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime import blas
from entrepot.runtime.providers.torch import vectors
from entrepot.runtime.providers.torch.measuring.chooser import Chooser
from entrepot.runtime.threads import each, one_blas_thread

_SCORES = 1 << 18
"""Scores of a block: 1 MiB, which stay in the cache between the products before and after the softmax."""

_LEAST = 1 << 20
"""Multiplications of each product from which the calls cost little beside them."""

_Block: TypeAlias = tuple[int, slice, slice]
"""An image, some of its heads, and some of their rows."""

_NARROWEST = 16
"""Rows, columns or features below which a product is bound by memory, whatever multiplies."""


def attended(scale: float, *, transposed: bool, guarded: bool, chooser: Chooser | None = None) -> Callable[..., Tensor]:
    """Attention with a mask that is added.

    Args:
        scale: What scores are multiplied by.
        transposed: Whether the key comes with its last two axes swapped.
        guarded: Whether weights that are NaN are zero instead, as those of a row are that sees no key.
        chooser: Measures which kernel is fastest; by default sizes decide.
    """
    is_better_in_blocks = _is_better_in_blocks if chooser is None else _Measured(chooser)

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        key = k.transpose(2, 3) if transposed else k
        in_blocks = is_better_in_blocks(q, key, v, mask)
        y = (_in_blocks if in_blocks else _at_once)(q, key, v, mask, scale)
        odd = _has_nan(y) if guarded else _has_zero(y)
        return _spelled_out(q, key, v, mask, scale, guarded=guarded) if odd else y

    return attend


class _Measured:
    """Whether attention is faster block by block, measured once for sizes up to the same powers of two."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._known: dict[tuple[object, ...], bool] = {}

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> bool:
        if not _fits_blocks(q, k, v, mask):
            return False
        below = [1 << size.bit_length() for size in (q.shape[0] * q.shape[1], q.shape[2], k.shape[2], *q.shape[3:])]
        kind = (*below, v.shape[3], mask is not None)
        if kind not in self._known:
            ways = {"torch": _at_once, "blocks": _in_blocks}
            runs = {name: partial(way, q, k, v, mask, 1.0) for name, way in ways.items()}
            usual = "blocks" if _is_better_in_blocks(q, k, v, mask) else "torch"
            self._known[kind] = self._chooser.fastest(f"attention below {kind}", runs, usual) == "blocks"
        return self._known[kind]


def _at_once(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """A row whose scores are all NaN or all infinitely low is zero by torch's own kernel, and NaN in blocks."""
    return functional.scaled_dot_product_attention(q, k, v, mask, scale=scale)


def _has_nan(y: Tensor) -> bool:
    """Whether the weights of a row may be NaN: then each of its features is."""
    return bool(y.numel()) and math.isnan(y.numpy()[..., 0].sum())


def _has_zero(y: Tensor) -> bool:
    """Whether a row may have been made zero: then each of its features is."""
    return bool(y.numel()) and not y.numpy()[..., 0].all()


def _spelled_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, *, guarded: bool) -> Tensor:
    scores = torch.matmul(q, k.transpose(2, 3)) * scale
    weights = torch.softmax(scores if mask is None else scores + mask, -1)
    return torch.matmul(torch.where(torch.isnan(weights), 0.0, weights) if guarded else weights, v)


def _is_better_in_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> bool:
    return vectors.is_mkl_narrow() and blas.is_tuned() and _fits_blocks(q, k, v, mask)


def _fits_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> bool:
    """Whether blocks are possible, and large enough that something other than calls takes the time."""
    if any(each.ndim != 4 or each.device.type != "cpu" for each in (q, k, v)):
        return False
    kinds = {each.dtype for each in (q, k, v, mask) if each is not None}
    if kinds != {torch.float32} or not q.shape[:2] == k.shape[:2] == v.shape[:2]:
        return False
    sizes = (q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    work = q.shape[0] * q.shape[1] * math.prod(sizes[:3])
    return min(sizes) >= _NARROWEST and work >= _LEAST and all(each.stride(3) == 1 for each in (q, k, v))


def _in_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Softmax of all scores of some rows at a time; the result lies in memory as its heads are joined."""
    batch, heads, length, _ = q.shape
    keys = k.shape[2]
    y = torch.empty(batch, length, heads, v.shape[3]).transpose(1, 2)
    left, right, value, result = q.numpy(), k.transpose(2, 3).numpy(), v.numpy(), y.numpy()
    added = None if mask is None else mask.expand(batch, heads, length, keys)

    def make(block: _Block) -> None:
        image, some, rows = block
        scores = torch.empty(some.stop - some.start, rows.stop - rows.start, keys)
        array = scores.numpy()
        blas.product(left[image, some, rows], right[image, some], array)
        if added is None:
            scores.mul_(scale)
        else:
            whole = (
                scores.shape[0] == heads and scores.shape[1] == length
            )  # an index of slices costs four of one number
            torch.add(added[image] if whole else added[image, some, rows], scores, alpha=scale, out=scores)
        torch.softmax(scores, -1, out=scores)
        blas.product(array, value[image, some], result[image, some, rows])

    blocks = list(_blocks(batch, heads, length, keys))
    with one_blas_thread:
        if len(blocks) == 1:
            make(blocks[0])
        else:
            each(_without_gradients(make), blocks, 2 * y.numel() * keys)
    return y


def _without_gradients(make: Callable[[_Block], None]) -> Callable[[_Block], None]:
    def run(block: _Block) -> None:
        with torch.inference_mode():  # which is each thread's own
            make(block)

    return run


def _blocks(batch: int, heads: int, length: int, keys: int) -> Iterator[_Block]:
    """Whole heads, or where one has more scores than a block some of its rows."""
    rows = max(_NARROWEST, min(length, _SCORES // keys))
    some = max(1, _SCORES // (keys * rows)) if rows >= length else 1
    for image, head, row in itertools.product(range(batch), range(0, heads, some), range(0, length, rows)):
        yield image, slice(head, min(head + some, heads)), slice(row, min(row + rows, length))
