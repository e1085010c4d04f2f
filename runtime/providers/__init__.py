"""Who can run nodes: one folder per provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import onnx_ir as ir


class Provider(Protocol):
    """What a session needs of whoever runs a part of a graph."""

    name: str

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""

    def compile(self, part: ir.Graph) -> Callable[..., tuple[Any, ...]]:
        """A straight-line callable: the part's inputs in order to its outputs in order."""
