"""A fitted estimator, the rows that it is exported with, and others that it is called with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.export_cases.case import Built, Case


@dataclass(frozen=True)
class EstimatorCase(Case):
    """One export of something that has ``predict``, ``transform`` or the like."""

    def build(self) -> Built:
        """The same estimator and rows at every time."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.random.seed(0)  # noqa: NPY002 - estimators without random_state draw from it
            return self.make()


def calls(x: Any) -> tuple[Any, ...]:
    """Seven rows as the sample, then others: all, one, three."""
    if isinstance(x, dict):
        return tuple({name: column[rows] for name, column in x.items()} for rows in _ROWS)
    return tuple(x[rows] for rows in _ROWS)


_ROWS = (slice(0, 7), slice(None), slice(9, 10), slice(11, 14))


def case(name: str, make: Any) -> EstimatorCase:
    """A case from a function that returns a fitted estimator and its data."""

    def built() -> Built:
        model, x = make()
        return Built(model, calls(x))

    return EstimatorCase(f"sklearn_{name}", "sklearn", built)
