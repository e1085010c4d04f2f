"""The cpu provider's own tables; the shared meanings and the schemas' function bodies come after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.ir.table import OpTable
from entrepot.runtime.binding import Kernels
from entrepot.runtime.kernels.backend import Backend

native: OpTable[Callable[..., Any]] = OpTable("cpu native", packages=("entrepot.runtime.providers.cpu.native",))
"""``native("Relu", 14)``: a function on NumPy arrays with the schema's signature and no ``xp``.

Here only for a measured factor in speed, for exact numerics (NaN, overflow), or for what NumPy has as one function.
"""

prepared: OpTable[Callable[..., Any]] = OpTable(
    "cpu prepared kernel", packages=("entrepot.runtime.providers.cpu.prepared",)
)
"""``prepared("Conv", 22)``: ``def conv(node: NodeView) -> Callable | None``, called once when the graph is compiled.

It sees the node's attributes and constant inputs, and returns a callable of *all* the node's inputs by position
(constants are passed too, so the emitted source stays uniform) that has packed weights, buffers and choices bound; or
``None`` when it has nothing better than the native kernel for this node.
"""


def _backend() -> Backend:
    from entrepot.runtime.providers.cpu.backend import NUMPY  # its kernels register in these tables

    return NUMPY


KERNELS = Kernels(_backend, native, prepared)
"""Where the cpu provider, and whatever else runs on NumPy, finds its kernels."""
