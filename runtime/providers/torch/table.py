"""The torch provider's own tables; the shared meanings and the schemas' function bodies come after them.

The importer ``to_torch`` looks operators up here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.ir.table import OpTable
from entrepot.runtime.binding import Kernels
from entrepot.runtime.kernels.backend import Backend

native: OpTable[Callable[..., Any]] = OpTable("torch native", packages=("entrepot.runtime.providers.torch.native",))
"""``native("Relu", 14)``: a function on tensors with the schema's signature, on whatever device they are.

Here for a measured factor in speed, for exact numerics, or for what torch has as one function. Host operands
(``ir/traits.py``) come as NumPy arrays.
"""

prepared: OpTable[Callable[..., Any]] = OpTable(
    "torch prepared kernel", packages=("entrepot.runtime.providers.torch.prepared",)
)
"""``prepared("Conv", 22)``: ``def conv(node: NodeView) -> Callable | None``, called once when the graph is compiled.

As on the cpu provider: it sees the node's attributes and constant inputs, and returns a callable of all the node's
inputs, or ``None`` when it has nothing better than the native kernel for this node.
"""


def _backend() -> Backend:
    from entrepot.runtime.providers.torch.backend import TORCH  # torch takes two seconds to import

    return TORCH


KERNELS = Kernels(_backend, native, prepared)
"""Where the torch provider finds its kernels on the host's memory."""
