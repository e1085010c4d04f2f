"""Cases of JAX exported with nothing but a sample, and judged as ``tests.sweeps.exports`` judges those of torch."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import entrepot as ep
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import sensitivity
from entrepot.parity.untouched import Untouched
from entrepot.runtime.feeds import feeds_of
from tests.export_cases.case import Case
from tests.export_cases.jax.making import callee
from tests.sweeps.outcome import Outcome


def judge(case: Case) -> Outcome:
    """Build, export and run a case."""
    try:
        module, calls = case.build()
        expected = [answers(module, call) for call in calls]
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the case is at fault
        return Outcome(case.name, case.corpus, "invalid", _line(error))
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ep.export(case.build().module, calls[0], progress=False)
    except ep.EntrepotError as error:
        return Outcome(case.name, case.corpus, "refused", _line(error), seconds=time.process_time() - started)
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "crashed", _line(error), seconds=time.process_time() - started)
    seconds = time.process_time() - started
    verdict, why = _judged(model, module, calls, expected)
    nodes = sum(1 for _ in model.ir.graph.all_nodes())
    return Outcome(case.name, case.corpus, verdict, why, model.metadata.get("entrepot.fixed_axes", ""), seconds, nodes)


def answers(module: Any, call: Sequence[Any]) -> list[np.ndarray]:
    """The arrays that the model returns, in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = jax.jit(callee(module)).lower(*call).compile({"xla_backend_optimization_level": 0})
        return [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*call))]


def _judged(model: ep.Model, module: Any, calls: Any, expected: Any) -> tuple[str, str]:
    names, results = [spec.name for spec in model.inputs], [spec.name for spec in model.outputs]
    try:
        session: Any = Untouched(model)
    except ep.UnsupportedOpError:
        session = ep.Session(model, providers=["cpu"])
    for at, (call, known) in enumerate(zip(calls, expected, strict=True)):
        feeds = dict(zip(names, (np.asarray(jax.numpy.asarray(each)) for each in jax.tree.leaves(call)), strict=True))
        where = "at the sample" if not at else f"at {', '.join(str(np.shape(each)) for each in call)}"
        try:
            feeds_of(model, feeds)
        except ep.InputError as error:
            return "static", f"{where}: {_static(model, _line(error))}"
        try:
            found = session.run(feeds)
        except ep.EntrepotError as error:
            return "wrong", f"{where}: does not run: {_line(error)}"
        wanted = dict(zip(results, known, strict=True))
        if problems := _differences(module, call, feeds, wanted, found):
            return "wrong", f"{where}: {'; '.join(problems)[:300]}"
    return "passed", ""


def _differences(module: Any, call: Any, feeds: Any, wanted: Any, found: Any) -> Any:
    scales = scales_of([wanted])
    comparison = compare(wanted, found, scales=scales)
    if not comparison.ok:  # some networks amplify rounding: the model itself shows how much
        tree = jax.tree.structure(call)
        noise = sensitivity(
            lambda nudged: dict(
                zip(wanted, answers(module, jax.tree.unflatten(tree, [nudged[name] for name in feeds])), strict=True)
            ),
            feeds,
            wanted,
        )
        comparison = compare(wanted, found, scales=scales, noise=noise)
    return () if comparison.ok else comparison.problems


def _static(model: ep.Model, why: str) -> str:
    reasons = json.loads(model.metadata.get("entrepot.fixed_axes", "{}"))
    return f"{why}; {reasons}" if reasons else why


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ep.EntrepotError) else f"{type(error).__name__}: {text}"
