"""Functions and files of TensorFlow exported with nothing but a sample, or without one, and judged by TensorFlow.

The verdicts are those of ``exports``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

import entrepot as ep
from entrepot.parity.compare import NOISE, compare, scales_of
from entrepot.parity.untouched import Untouched
from entrepot.runtime.feeds import feeds_of
from tests.export_cases.tensorflow.case import FunctionCase
from tests.sweeps.outcome import Outcome, line

_SIDES = 6.0
"""Results of quantised kernels may lie this many steps from those of a graph, after some layers."""


def judge(case: FunctionCase) -> Outcome:
    """Build, export and run a case."""
    try:
        module, calls = case.build()
        reference = module if case.call is None else case.call(module)
        expected = [[*_arrays(_called(reference, call))] for call in calls]
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "invalid", line(error))
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ep.export(module, _tensors(calls[0]) if case.call is None else None, progress=False)
    except ep.EntrepotError as error:
        wrong = isinstance(error, ep.VerificationError)
        why = f"not proved: {line(error)}" if wrong else line(error)
        return Outcome(case.name, case.corpus, "refused", why, seconds=time.process_time() - started)
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "crashed", line(error), seconds=time.process_time() - started)
    seconds = time.process_time() - started
    verdict, why = "passed", ""
    for call, answers in zip(calls, expected, strict=True):
        if verdict == "passed":
            verdict, why = _judged(model, call, answers, case.steps)
    nodes = sum(1 for _ in model.ir.graph.all_nodes())
    return Outcome(case.name, case.corpus, verdict, why, model.metadata.get("entrepot.fixed_axes", ""), seconds, nodes)


def _called(function: Any, call: Any) -> Any:
    if isinstance(call, dict):
        return function(**{name: _tensors(value) for name, value in call.items()})
    return function(*map(_tensors, call))


def _tensors(value: Any) -> Any:
    return tf.nest.map_structure(tf.constant, value)


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays in a structure, in order."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _arrays(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _arrays(each)
    elif value is not None and not isinstance(value, int | float):
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        yield array if array.dtype.kind not in "OS" else _texts(array)


def _texts(array: Any) -> Any:
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.array(texts, object).reshape(array.shape)


def _judged(model: ep.Model, call: Any, answers: list[Any], steps: float) -> tuple[str, str]:
    inputs, outputs = ([spec.name for spec in side] for side in (model.inputs, model.outputs))
    feeds = call if isinstance(call, dict) else dict(zip(inputs, _arrays(call), strict=True))
    if len(answers) != len(outputs):
        return "wrong", f"the file gives {len(outputs)} outputs, TensorFlow {len(answers)}"
    try:
        feeds_of(model, feeds)
    except ep.InputError as error:
        return "static", line(error)
    try:
        session: Any = Untouched(model)
    except ep.UnsupportedOpError:
        session = ep.Session(model, providers=["cpu"])
    try:
        results = session.run(feeds)
    except ep.EntrepotError as error:
        return "wrong", f"does not run: {line(error)}"
    expected = dict(zip(outputs, answers, strict=True))
    found = compare(expected, results, scales=scales_of([expected]))
    if not found.ok and steps:
        wide = dict.fromkeys(outputs, _SIDES * steps / NOISE)
        found = compare(expected, results, scales=scales_of([expected]), noise=wide)
    return ("passed", "") if found.ok else ("wrong", "; ".join(found.problems)[:300])
