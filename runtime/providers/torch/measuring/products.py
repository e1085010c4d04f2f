"""A product by a constant matrix, in the way that is measured to be fastest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from entrepot.runtime import room
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.providers.torch.linear import (
    LEAST,
    SLOW_ROWS,
    HostArray,
    Product,
    least_rows,
    packed_by,
    plain,
    with_more_rows,
)
from entrepot.runtime.providers.torch.measuring.chooser import Chooser


def by_measurement(
    chooser: Chooser, weights: HostArray, bias: HostArray | None, rows: int = 0, activation: Activation | None = None
) -> Callable[..., Tensor]:
    """``x @ weights + bias`` and its activation for x of any rank.

    The callable takes x, then the constants, which it does not look at. It measures at the first x of so many rows, to
    the next power of two, or where rows are declared when it is made.

    Args:
        chooser: Measures.
        weights: Of shape (in, out).
        bias: Of shape (out,).
        rows: How many rows x has in all, if that is declared; else 0.
        activation: Its end.
    """
    inner, outer = weights.shape
    ways = _Ways(chooser, weights, bias, rows)
    change = None if activation is None else activation.change
    if rows and weights.size:
        with torch.inference_mode():
            ways.at(torch.ones(rows, inner))

    def run(x: Tensor, *_: Tensor | None) -> Tensor:
        room.claim((*x.shape[:-1], outer), 4)
        y = ways.at(x)(x)
        if change is not None:
            change(y)
        return y

    return run


class _Ways:
    """All ways to one product; what is not taken is not kept."""

    def __init__(self, chooser: Chooser, weights: HostArray, bias: HostArray | None, rows: int) -> None:
        self._chooser, self._weights, self._bias, self._rows = chooser, weights, bias, rows
        self._as_given = _of_rows(plain(weights, bias, in_order=False))
        self._taken: dict[int, Product] = {}
        self._by_name: dict[str, Product] = {}

    def at(self, x: Tensor) -> Product:
        """What multiplies as many rows as x has."""
        inner = self._weights.shape[0]
        rows = x.numel() // max(inner, 1)
        if not rows or not self._weights.size or x.shape[-1] != inner:
            return self._as_given  # nothing to measure, or torch's own error
        kind = 0 if rows == self._rows else rows.bit_length()
        if kind not in self._taken:
            self._taken[kind] = self._fastest(x, rows)
        return self._taken[kind]

    def _fastest(self, x: Tensor, rows: int) -> Product:
        count = f"{rows}" if rows == self._rows else f"below {1 << rows.bit_length()}"
        inner, outer = self._weights.shape
        laid = "rows" if self._weights.flags.c_contiguous else "columns"
        computation = f"product {count} x {inner} x {outer} in {laid}" + " and bias" * (self._bias is not None)
        makers = self._makers(rows)
        made: dict[str, Product] = {}

        def way(name: str) -> Product:
            if name not in made:
                made[name] = self._by_name.get(name) or makers[name]()
            return made[name]

        ways = {name: partial(_run, way, name, x) for name in makers}
        taken = self._chooser.fastest(computation, ways, self._usual(makers, rows))
        self._by_name[taken] = way(taken)
        return self._by_name[taken]

    def _usual(self, makers: Mapping[str, object], rows: int) -> str:
        is_packed = rows >= least_rows(*self._weights.shape) and self._weights.size >= LEAST
        return next(iter(makers)) if is_packed else "as given"

    def _makers(self, rows: int) -> dict[str, Callable[[], Product]]:
        weights, bias, linear, of_rows = self._weights, self._bias, private.linear(), private.linear_of_rows()
        makers: dict[str, Callable[[], Product]] = {}
        if linear is not None:
            makers["packed by oneDNN"] = pack = partial(packed_by, linear, weights, bias, 0)
            if rows <= SLOW_ROWS:
                makers["packed by oneDNN with more rows"] = lambda: with_more_rows(pack(), *weights.shape)
        if of_rows is not None and rows == self._rows:
            makers["packed by MKL"] = partial(packed_by, of_rows, weights, bias, rows)
        if not weights.flags.c_contiguous:
            makers["in order of memory"] = lambda: _of_rows(plain(weights, bias, in_order=True))
        return {**makers, "as given": lambda: self._as_given}


def _run(way: Callable[[str], Product], name: str, x: Tensor) -> Tensor:
    return way(name)(x)


def _of_rows(product: Product) -> Product:
    """A product of matrices, for x of any rank."""

    def run(x: Tensor) -> Tensor:
        y = product(x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
        return y if x.ndim == 2 else y.reshape(*x.shape[:-1], y.shape[-1])

    return run
