"""Modules exported with nothing but a sample: what works, at which sizes, and is it correct?

A case has *passed* when onnxruntime computes what the module computes, on the sample and on every other call of the
case. It is *static* when the file takes the sample and refuses another call by a size that it states; *wrong* when the
results differ anywhere or the file fails where it states no limit; *refused* when there is no file.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

import entrepot as ep
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import own_error, sensitivity
from entrepot.parity.untouched import Untouched
from entrepot.runtime.feeds import feeds_of
from tests.export_cases.case import Call, Case
from tests.sweeps.outcome import Outcome, line


def judge(case: Case) -> Outcome:
    """Build, export and run a case."""
    try:
        calls = case.build().calls
        expected = [_eager(case, at) for at in range(len(calls))]
    except Exception as error:  # noqa: BLE001 - whatever a module raises, the case is at fault
        return Outcome(case.name, case.corpus, "invalid", line(error))
    module, sample = case.build().module, calls[0]
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ep.export(module, sample, progress=False)
    except ep.EntrepotError as error:
        return Outcome(case.name, case.corpus, "refused", line(error), seconds=time.process_time() - started)
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "crashed", line(error), seconds=time.process_time() - started)
    seconds = time.process_time() - started
    verdict, why = _judged(model, case, expected)
    nodes = sum(1 for _ in model.ir.graph.all_nodes())
    return Outcome(case.name, case.corpus, verdict, why, model.metadata.get("entrepot.fixed_axes", ""), seconds, nodes)


def _judged(model: ep.Model, case: Case, expected: Sequence[list[np.ndarray]]) -> tuple[str, str]:
    engine = _Engine(model, case, _varying(expected))
    for at, answers in enumerate(expected):
        verdict, why = engine.judge(at, answers)
        if verdict != "passed":
            return verdict, f"{_described(case.build().calls[at])}: {why}" if at else f"at the sample: {why}"
    return "passed", ""


class _Engine:
    """The file in onnxruntime, or in our own runtime where it lacks an operator."""

    def __init__(self, model: ep.Model, case: Case, varying: frozenset[int]) -> None:
        self._model, self._case, self._varying = model, case, varying
        self._inputs = [spec.name for spec in model.inputs]
        self._outputs = [spec.name for spec in model.outputs]
        try:
            self._session: Any = Untouched(model)
        except ep.UnsupportedOpError:
            self._session = ep.Session(model, providers=["cpu"])

    def judge(self, at: int, answers: Sequence[np.ndarray]) -> tuple[str, str]:
        """The verdict on one call of the case."""
        module, calls = self._case.build()
        given = list(arrays(bound(module, calls[at])))
        if len(given) != len(self._inputs):
            return "wrong", f"the file takes {len(self._inputs)} inputs, the call has {len(given)} tensors"
        feeds = dict(zip(self._inputs, given, strict=True))
        try:
            feeds_of(self._model, feeds)
        except ep.InputError as error:
            return "static", _static(self._model, line(error))
        try:
            results = self._session.run(feeds)
        except ep.EntrepotError as error:
            return "wrong", f"does not run: {line(error)}"
        answers = self._returned(answers)
        if len(answers) != len(self._outputs):
            return "wrong", f"the file gives {len(self._outputs)} outputs, the module {len(answers)} tensors"
        problems = self._differences(at, feeds, dict(zip(self._outputs, answers, strict=True)), results)
        return ("wrong", "; ".join(problems)[:300]) if problems else ("passed", "")

    def _differences(self, at: int, feeds: Mapping[str, Any], expected: Mapping[str, Any], results: Any) -> Any:
        scales = scales_of([expected])
        comparison = compare(expected, results, scales=scales)
        if not comparison.ok:  # some networks amplify rounding: the module itself shows how much
            noise = sensitivity(lambda nudged: self._nudged(at, nudged), feeds, expected)
            own = self._own_error(at, expected)
            noise = {name: max(noise.get(name, 0.0), own.get(name, 0.0)) for name in expected}
            comparison = compare(expected, results, scales=scales, noise=noise)
        return () if comparison.ok else comparison.problems

    def _own_error(self, at: int, expected: Mapping[str, Any]) -> Mapping[str, float]:
        """How far off the module is itself: inputs that are whole numbers have no rounding to move them by."""
        if not isinstance(self._case.build().module, torch.nn.Module):
            return {}
        try:
            exact = self._returned(_eager(self._case, at, double=True))
        except (RuntimeError, TypeError, ValueError):
            return {}  # it names the types that it computes in
        return own_error(expected, dict(zip(self._outputs, exact, strict=False)))

    def _nudged(self, at: int, feeds: Mapping[str, Any]) -> dict[str, Any]:
        fresh = iter([torch.from_numpy(np.array(feeds[name])) for name in self._inputs])
        return dict(zip(self._outputs, self._returned(_eager(self._case, at, fresh)), strict=True))

    def _returned(self, answers: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The answers that are outputs: tensors, and Python numbers if they depend on a size."""
        places = [at for at, answer in enumerate(answers) if isinstance(answer, np.ndarray)]
        choices = [[*range(len(answers))], sorted({*places, *self._varying}), places]
        found = next((choice for choice in choices if len(choice) == len(self._outputs)), places)
        return [answers[at] for at in found]


def _varying(expected: Sequence[Sequence[np.ndarray]]) -> frozenset[int]:
    """The places of Python numbers that differ from call to call."""
    calls = zip(*expected, strict=False)
    return frozenset(at for at, each in enumerate(calls) if not isinstance(each[0], np.ndarray) and len({*each}) > 1)


def _eager(
    case: Case, at: int, fresh: Iterator[torch.Tensor] | None = None, *, double: bool = False
) -> list[np.ndarray]:
    """What the module computes in evaluation mode for one of its calls, perhaps with other tensors, or in float64."""
    module, calls = case.build()
    if isinstance(module, torch.nn.Module):
        module.eval()
    if double:
        module, fresh = module.double(), map(_widened, tensors(calls[at]))
    args, kwargs = _split(calls[at] if fresh is None else replaced(calls[at], fresh))
    with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(arrays(module(*args, **kwargs), numbers=True))


def bound(module: Any, call: Call) -> list[Any]:
    """The arguments of a call in the order of the signature."""
    args, kwargs = _split(call)
    if isinstance(module, torch.jit.ScriptModule):
        return [*args, *kwargs.values()]
    forward = module.forward if isinstance(module, torch.nn.Module) else module
    return list(inspect.signature(forward).bind(*args, **kwargs).arguments.values())


def arrays(value: Any, *, numbers: bool = False) -> Iterator[np.ndarray]:
    """The tensors in a structure, in order: members of containers, fields of dataclasses, attributes of objects.

    Args:
        value: The structure.
        numbers: Whether Python numbers count, too, as NumPy scalars.
    """
    if isinstance(value, torch.Tensor):
        yield value.detach().resolve_conj().resolve_neg().numpy()
        return
    if numbers and isinstance(value, int | float) and not isinstance(value, bool):
        yield np.int64(value) if isinstance(value, int) else np.float32(value)
        return
    for member in _members(value):
        yield from arrays(member, numbers=numbers)


def replaced(value: Any, fresh: Iterator[torch.Tensor]) -> Any:
    """The same plain containers around other tensors."""
    if isinstance(value, torch.Tensor):
        return next(fresh)
    if isinstance(value, dict):
        return {key: replaced(member, fresh) for key, member in value.items()}
    if isinstance(value, tuple | list):
        members = [replaced(member, fresh) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    value = copy.deepcopy(value)
    for key, member in list(getattr(value, "__dict__", {}).items()):
        value.__dict__[key] = replaced(member, fresh)
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a structure, in order."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    for member in _members(value):
        yield from tensors(member)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype is torch.float32 else tensor


def _members(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, tuple | list):
        return value
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return list(getattr(value, "__dict__", {}).values())


def _split(call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((), dict(call)) if isinstance(call, dict) else (tuple(call), {})


def _static(model: ep.Model, why: str) -> str:
    """What the export says about the axis that a call was refused for."""
    found = re.match(r"value '([^']*)': axis (\d+) is \d+, expected \d+", why)
    reasons = json.loads(model.metadata.get("entrepot.fixed_axes", "{}"))
    key = f"{found[1]}.{found[2]}" if found else ""
    return f"{key}: {reasons[key]}" if key in reasons else why


def _described(call: Call) -> str:
    args, kwargs = _split(call)
    shapes = [str(tuple(array.shape)) for array in arrays([*args, *kwargs.values()])]
    return f"at {', '.join(shapes[:6])}{', ...' if len(shapes) > 6 else ''}"


def totals(outcomes: Sequence[Outcome]) -> Counter[str]:
    """How many have which verdict."""
    return Counter(outcome.verdict for outcome in outcomes)
