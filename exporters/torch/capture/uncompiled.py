"""Graphs that nobody runs are not made into Python code while a module is captured and translated.

torch (2.13) writes and compiles the code of a whole program a dozen times on its way through an export, once after each
of its passes. Nothing calls what comes of it: graphs are walked, node by node. Here the code is made when it is called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from torch.fx import GraphModule


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Inside, a graph's code is written when it is first called, or read; graphs made here stay so afterwards."""
    with mock.patch.object(GraphModule, "recompile", _put_off):
        yield


_recompile = GraphModule.recompile


class _Unwritten:
    """The code of a graph that has none yet; what is written stands before it."""

    def __get__(self, graph: Any, kind: type) -> str:
        _recompile(graph)
        return str(vars(graph)["_code"])


def _put_off(graph: Any) -> None:
    """Let the first call of a graph compile it."""
    kind, signature = type(graph), getattr(graph.graph._codegen, "pytree_info", None)  # noqa: SLF001 - as torch does
    if signature is not None:
        graph._in_spec, graph._out_spec = signature.in_spec, signature.out_spec  # noqa: SLF001

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        _recompile(self)
        return kind.forward(self, *args, **kwargs)

    kind.forward, kind._code = forward, _Unwritten()  # noqa: SLF001 - where torch keeps it
    vars(graph).pop("_code", None)
