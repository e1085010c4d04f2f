"""Sums and products of three sizes or more, which a capture makes of two at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import sympy  # type: ignore[import-untyped]

from entrepot.exporters.torch.upstream import node_meanings

_OPERATIONS = (sympy.Add, sympy.Mul)


@contextlib.contextmanager
def terms_in_pairs() -> Iterator[None]:
    """Inside, a size such as ``frames * rows * columns`` is computed where a capture has not seen it before.

    torch (2.13) does so in branches and loops, and there calls Python's ``mul`` with all three.
    """
    meanings: Any = node_meanings
    plain = meanings._build_proxy_for_sym_expr  # noqa: SLF001 - has no other name

    def built(tracer: Any, expr: Any, out: Any = None) -> Any:
        if isinstance(expr, _OPERATIONS) and len(expr.args) > 2 and tracer.sympy_expr_tracker.get(expr) is None:
            *first, last = expr.args
            expr = expr.func(expr.func(*first), last, evaluate=False)
        return plain(tracer, expr, out)

    with mock.patch.object(node_meanings, "_build_proxy_for_sym_expr", built):
        yield
