"""Cases of JAX exported with nothing but a sample, and judged by JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import entrepot as ep
from tests.export_cases.case import Case
from tests.export_cases.jax.making import callee
from tests.sweeps.judging import Arrays, Subject, judged
from tests.sweeps.outcome import Outcome


def judge(case: Case) -> Outcome:
    """Build, export and run a case."""
    return judged(case, Jax)


def answers(module: Any, call: Sequence[Any]) -> list[np.ndarray]:
    """The arrays that the model returns, in order."""
    compiled = jax.jit(callee(module)).lower(*call).compile({"xla_backend_optimization_level": 0})
    return [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*call))]


class Jax(Subject):
    """A function or a module of JAX."""

    def __init__(self, case: Case) -> None:
        super().__init__(*case.build())
        self._case = case

    def export(self) -> ep.Model:
        return ep.export(self._case.build().module, self.calls[0], progress=False)

    def answers(self, at: int) -> list[np.ndarray]:
        return answers(self.model, self.calls[at])

    def feeds(self, exported: ep.Model, at: int) -> dict[str, np.ndarray]:
        leaves = [np.asarray(jax.numpy.asarray(leaf)) for leaf in jax.tree.leaves(self.calls[at])]
        return dict(zip([spec.name for spec in exported.inputs], leaves, strict=True))

    def answers_to(self, feeds: Arrays, at: int) -> list[np.ndarray]:
        return answers(self.model, jax.tree.unflatten(jax.tree.structure(self.calls[at]), list(feeds.values())))
