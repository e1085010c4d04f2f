"""Graphs in graphs: iterations that end when a value says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.sklearn.array import Array, Symbolic


class Scope:
    """The graph that formulas are written into at the moment: the main one, or a body inside of it.

    Args:
        build: The main one.
    """

    def __init__(self, build: Builder) -> None:
        self.current = build

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)


def repeated(times: int, carried: Sequence[Array], step: Callable[..., Any]) -> list[Symbolic]:
    """Arrays after at most so many steps.

    Args:
        times: The largest number of steps.
        carried: What the first step starts from.
        step: From arrays to a pair: what they become, and whether to go on.
    """
    scope: Any = carried[0].build
    outer = scope.current
    body = outer.body("step")
    body.input("round", np.int64, [])
    body.input("go_on", np.bool_, [])
    inside = [
        Array(scope, body.input(f"carried_{n}", x.dtype, x.shape), x.dtype, x.shape) for n, x in enumerate(carried)
    ]
    scope.current = body
    try:
        new, go_on = step(*inside)
        graph = body.graph([go_on.value, *(x.value for x in new)])
    finally:
        scope.current = outer
    found = outer.op(
        "Loop", np.array(times, np.int64), np.array(True), *(x.value for x in carried), body=graph, outputs=len(carried)
    )
    values = [found] if len(carried) == 1 else found
    return [Array(scope, value, x.dtype, x.shape) for value, x in zip(values, carried, strict=True)]
