"""Cases of Keras exported with nothing but a sample, or without one, and judged by calls of the model at other sizes.

The verdicts are those of ``exports``. The model is called here as a user calls it, so that the exporter's view of it is
not asked.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

import entrepot as ep
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import sensitivity
from entrepot.parity.untouched import Untouched
from entrepot.runtime.feeds import feeds_of
from tests.export_cases.keras.case import KerasCase
from tests.sweeps.outcome import Outcome, line

Answers = list[np.ndarray]


def judge(case: KerasCase) -> Outcome:
    """Build, export and run a case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, calls = case.build()
            expected = [answers(model, call) for call in calls]
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the case is at fault
        return Outcome(case.name, case.corpus, "invalid", line(error))
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = ep.export(model, _sample(calls[0]) if case.sample else None, progress=False)
    except ep.EntrepotError as error:
        return Outcome(case.name, case.corpus, "refused", line(error), seconds=time.process_time() - started)
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "crashed", line(error), seconds=time.process_time() - started)
    seconds = time.process_time() - started
    verdict, why = _judged(exported, model, calls, expected)
    nodes = [node.op_type for node in exported.ir.graph.all_nodes()]
    fixed = exported.metadata.get("entrepot.fixed_axes", "")
    return Outcome(case.name, case.corpus, verdict, why, fixed, seconds, len(nodes), nodes.count("Transpose"))


def answers(model: Any, call: Sequence[np.ndarray]) -> Answers:
    """The arrays that a model returns in inference, in order; text as objects."""
    given = [_tensor(array) for array in call]
    results = model(given[0] if len(given) == 1 else keras.tree.pack_sequence_as(model.input, given), training=False)
    return [_array(each) for each in keras.tree.flatten(results)]


def _sample(call: Sequence[np.ndarray]) -> Any:
    return call[0] if len(call) == 1 else list(call)


def _tensor(array: np.ndarray) -> Any:
    if array.dtype != object:
        return array
    import tensorflow as tf

    return tf.constant(array)


def _array(result: Any) -> np.ndarray:
    array = np.asarray(keras.ops.convert_to_numpy(result))
    if array.dtype.kind not in "OS":
        return array
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.array(texts, object).reshape(array.shape)


def _judged(exported: ep.Model, model: Any, calls: Sequence[Any], expected: Sequence[Answers]) -> tuple[str, str]:
    names, results = [spec.name for spec in exported.inputs], [spec.name for spec in exported.outputs]
    try:
        session: Any = Untouched(exported)
    except ep.UnsupportedOpError:
        session = ep.Session(exported, providers=["cpu"])
    for call, known in zip(calls, expected, strict=True):
        feeds, where = dict(zip(names, call, strict=True)), f"at {', '.join(str(each.shape) for each in call)}"
        if len(known) != len(results):
            return "wrong", f"the file gives {len(results)} outputs, the model {len(known)}"
        try:
            feeds_of(exported, feeds)
        except ep.InputError as error:
            return "static", f"{where}: {line(error)}; {_reasons(exported)}"
        try:
            found = session.run(feeds)
        except ep.EntrepotError as error:
            return "wrong", f"{where}: does not run: {line(error)}"
        wanted = dict(zip(results, known, strict=True))
        if problems := _differences(model, feeds, wanted, found):
            return "wrong", f"{where}: {'; '.join(problems)[:300]}"
    return "passed", ""


def _differences(model: Any, feeds: Any, wanted: Any, found: Any) -> Sequence[str]:
    comparison = compare(wanted, found, scales=scales_of([wanted]))
    if not comparison.ok:  # some networks amplify rounding: the model itself shows how much

        def nudged(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return dict(zip(wanted, answers(model, [given[name] for name in feeds]), strict=True))

        noise = sensitivity(nudged, feeds, wanted)
        comparison = compare(wanted, found, scales=scales_of([wanted]), noise=noise)
    return () if comparison.ok or _is_as_exact(model, feeds, wanted, found) else comparison.problems


def _is_as_exact(model: Any, feeds: Any, wanted: Any, found: Any) -> bool:
    """Whether results are as close to those of the model in double precision as its own are."""
    if type(model).__name__ != "Functional" or not all(array.dtype == np.float32 for array in wanted.values()):
        return False

    def widened(layer: Any) -> Any:
        return type(layer).from_config({**layer.get_config(), "dtype": "float64"})

    double = keras.models.clone_model(model, clone_function=widened, recursive=True)
    double.set_weights(model.get_weights())
    exact = dict(zip(wanted, answers(double, list(feeds.values())), strict=True))
    return all(
        found[at].shape == exact[at].shape
        and np.abs(found[at] - exact[at]).max() <= np.abs(wanted[at] - exact[at]).max()
        for at in wanted
    )


def _reasons(exported: ep.Model) -> Any:
    return json.loads(exported.metadata.get("entrepot.fixed_axes", "{}"))
