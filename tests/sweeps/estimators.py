"""Fitted estimators exported with nothing but a sample: is every method's result the same, on other rows as well?

The methods are called here by themselves, and the file runs in onnxruntime, so that neither the exporter's view of an
estimator nor our own runtime is asked.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import entrepot as ep
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import sensitivity
from entrepot.parity.untouched import Untouched
from tests.export_cases.case import Case
from tests.sweeps.outcome import Outcome, line

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def judge(case: Case) -> Outcome:
    """Fit, export and run a case."""
    try:
        model, calls = case.build()
        expected = [answers(model, call) for call in calls]
    except Exception as error:  # noqa: BLE001 - whatever an estimator raises, the case is at fault
        return Outcome(case.name, case.corpus, "invalid", line(error))
    started = time.process_time()
    try:
        exported = ep.export(model, calls[0], progress=False)
    except ep.EntrepotError as error:
        return Outcome(case.name, case.corpus, "refused", line(error), seconds=time.process_time() - started)
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "crashed", line(error), seconds=time.process_time() - started)
    seconds = time.process_time() - started
    verdict, why = _judged(exported, model, calls, expected)
    nodes = sum(1 for _ in exported.ir.graph.all_nodes())
    return Outcome(
        case.name, case.corpus, verdict, why, exported.metadata.get("entrepot.fixed_axes", ""), seconds, nodes
    )


def _judged(exported: ep.Model, model: Any, calls: Sequence[Any], expected: Sequence[Any]) -> tuple[str, str]:
    session = Untouched(exported)
    names = [spec.name for spec in exported.outputs]
    for at, (call, answer) in enumerate(zip(calls, expected, strict=True)):
        if len(names) != len(answer):
            return "wrong", f"the file gives {len(names)} outputs, the estimator {len(answer)} results"
        feeds = as_feeds(exported, call)
        try:
            results = session.run(feeds)
        except ep.EntrepotError as error:
            return "wrong", f"call {at} does not run: {line(error)}"
        wanted = dict(zip(names, answer, strict=True))
        scales = scales_of([wanted])
        comparison = compare(wanted, results, scales=scales)
        if not comparison.ok:
            noise = sensitivity(lambda nudged: _nudged(model, call, nudged, names), feeds, wanted)  # noqa: B023
            comparison = compare(wanted, results, scales=scales, noise=noise)
        if not comparison.ok:
            return "wrong", f"call {at}: {'; '.join(comparison.problems)}"[:300]
    return "passed", ""


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


def _nudged(model: Any, call: Any, nudged: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    x = dict(nudged) if isinstance(call, dict) else next(iter(nudged.values()))
    return dict(zip(names, answers(model, x), strict=True))
