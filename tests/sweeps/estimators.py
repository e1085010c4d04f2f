"""Fitted estimators exported with nothing but a sample: is every method's result the same, on other rows as well?

The methods are called here by themselves, and the file runs in onnxruntime, so that neither the exporter's view of an
estimator nor our own runtime is asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import pandas as pd

import entrepot as ep
from tests.export_cases.case import Case
from tests.sweeps.judging import Arrays, Subject, judged
from tests.sweeps.outcome import Outcome

_SINGLE = 8 * float(np.finfo(np.float32).eps)
"""Relative: a sum of eight numbers, which is more than the cases have columns."""
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def judge(case: Case) -> Outcome:
    """Fit, export and run a case."""
    return judged(case, Estimator)


class Estimator(Subject):
    """A fitted estimator."""

    def __init__(self, case: Case) -> None:
        super().__init__(*case.build())
        self._is_single = False

    def export(self) -> ep.Model:
        model = ep.export(self.model, self.calls[0], progress=False)
        sums = (node for node in model.ir.graph.all_nodes() if node.op_type in ("MatMul", "Gemm"))
        self._is_single = any(node.outputs[0].dtype == ir.DataType.FLOAT for node in sums)
        return model

    def answers(self, at: int) -> list[np.ndarray]:
        return answers(self.model, self.calls[at])

    def feeds(self, exported: ep.Model, at: int) -> dict[str, np.ndarray]:
        return as_feeds(exported, self.calls[at])

    def is_excused(self, at: int, feeds: Arrays, wanted: Arrays, found: Arrays) -> bool:
        """Where rows are cast to float32 and multiplied, BLAS sums in the order of its own choice, in each library."""
        return self._is_single and all(
            array.dtype.kind == "f"
            and np.allclose(found[name], array, rtol=_SINGLE, atol=_SINGLE * np.abs(array).max())
            for name, array in wanted.items()
        )

    def answers_to(self, feeds: Arrays, at: int) -> list[np.ndarray]:
        if isinstance(self.calls[at], pd.DataFrame):
            return answers(self.model, pd.DataFrame(dict(feeds)))
        return answers(self.model, dict(feeds) if isinstance(self.calls[at], dict) else next(iter(feeds.values())))


def answers(model: Any, x: Any) -> list[np.ndarray]:
    """What each method says, in order; text as objects, sparse results as dense ones."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = x if not isinstance(x, dict) else _table(x)
        if type(model).__name__ == "Booster":
            return _of_booster(model, x)
        for method in METHODS:
            if hasattr(model, method) and (type(model).__name__, method) != ("BernoulliRBM", "score_samples"):
                result = getattr(model, method)(x)
                found += result if isinstance(result, list) else [result]
    rows = len(x)
    dense = [result.toarray() if hasattr(result, "toarray") else np.asarray(result) for result in found]
    dense = [array[None] if array.ndim == 1 and rows == 1 != len(array) else array for array in dense]  # SparsePCA
    return [array.astype(object) if array.dtype.kind == "U" else array for array in dense]


def _of_booster(model: Any, x: Any) -> list[np.ndarray]:
    if type(model).__module__.startswith("lightgbm"):
        return [model.predict(x), model.predict(x, raw_score=True)]
    import xgboost

    return [model.predict(xgboost.DMatrix(x)), model.predict(xgboost.DMatrix(x), output_margin=True)]


def _table(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.stack([column.astype(object) for column in columns.values()], 1)


def as_feeds(exported: ep.Model, call: Any) -> dict[str, np.ndarray]:
    """The rows as the file takes them."""
    if isinstance(call, pd.DataFrame):
        call = {name: np.asarray(call[name]) for name in call}
    if isinstance(call, dict):
        return {name: column.astype(object) if column.dtype.kind == "U" else column for name, column in call.items()}
    array = np.asarray(call)
    if len(exported.inputs) == 1:
        return {exported.inputs[0].name: array.astype(object) if array.dtype.kind == "U" else array}
    kinds = [np.asarray(list(column)) for column in array.T]
    return {
        spec.name: column.astype(object) if column.dtype.kind == "U" else column
        for spec, column in zip(exported.inputs, kinds, strict=True)
    }
