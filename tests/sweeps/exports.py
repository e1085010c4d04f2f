"""Modules of torch exported with nothing but a sample, and judged by torch."""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

import entrepot as ep
from entrepot.exporters.torch.running.chosen import ChoosingAs
from entrepot.parity.choices import Choices
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.doubled import Doubled, most_moved, typed_alike
from entrepot.parity.sensitivity import own_error
from entrepot.parity.sigmoids import sigmoids, without_what_is_off
from entrepot.parity.tolerance import default_tolerance
from tests.export_cases.case import Call, Case
from tests.sweeps.judging import Arrays, Subject, judged
from tests.sweeps.outcome import Outcome


def judge(case: Case) -> Outcome:
    """Build, export and run a case."""
    return judged(case, OfModule)


class OfModule(Subject):
    """It is built anew for each call, because calls may change its state."""

    def __init__(self, case: Case) -> None:
        super().__init__(*case.build())
        self._case = case
        self._answers: dict[int, list[np.ndarray]] = {}

    def export(self) -> ep.Model:
        self._exported = ep.export(self._case.build().module, self.calls[0], progress=False)
        return self._exported

    def answers(self, at: int) -> list[np.ndarray]:
        return self._answers.setdefault(at, _eager(self._case, at))

    def feeds(self, exported: ep.Model, at: int) -> dict[str, np.ndarray]:
        module, calls = self._case.build()
        names = [spec.name for spec in exported.inputs]
        given = enumerate(arrays(bound(module, calls[at])))
        return {names[place] if place < len(names) else f"argument {place}": array for place, array in given}

    def answers_to(self, feeds: Arrays, at: int) -> list[np.ndarray]:
        module, calls = self._case.build()
        given = [torch.from_numpy(np.array(array)) for array in feeds.values()]
        fed = [id(tensor) for tensor in tensors(bound(module, calls[at]))]  # a call may name its inputs in any order
        return _eager(self._case, at, iter([given[fed.index(id(tensor))] for tensor in tensors(calls[at])]))

    def noise(self, at: int, feeds: Arrays, wanted: Arrays) -> dict[str, float]:
        """The larger of what rounded inputs change, and of how far off the module is itself."""
        noise, own = super().noise(at, feeds, wanted), self._own_error(at, wanted)
        return {name: max(noise.get(name, 0.0), own.get(name, 0.0)) for name in wanted}

    def is_excused(self, at: int, feeds: Arrays, wanted: Arrays, found: Arrays) -> bool:
        """Whether another order of equal scores is all: told which to take, the module computes the same.

        Or onnxruntime's Sigmoid is all; or in float64, both agree, and the module moves as far by that. The proof of an
        export asks the same (``entrepot/parity/judge.py``).
        """
        names, scales = sigmoids(self._exported.ir), scales_of([wanted])
        for base in (self._told(at, feeds, wanted), wanted):
            if base and compare(base, without_what_is_off(names, base, found), scales=scales).ok:
                return True
        try:
            doubled = Doubled(self._exported)
            with ChoosingAs(doubled.choices(feeds)):
                exact = dict(zip(wanted, self.outputs(_eager(self._case, at, double=True), len(wanted)), strict=True))
        except (ep.EntrepotError, RuntimeError, TypeError, ValueError):
            return False  # it insists on single precision, or cannot be copied
        twin = doubled.run(feeds)
        off = [output for output in compare(wanted, found, scales=scales_of([wanted])).outputs if not output.ok]
        if twin is None or not all(most_moved(wanted, exact, found, output) for output in off):
            return False
        rule = default_tolerance(np.dtype(np.float32))
        return compare(exact, typed_alike(twin, exact), rule, scales=scales_of([exact])).ok

    def _told(self, at: int, feeds: Arrays, wanted: Arrays) -> Arrays:
        """What it computes if it takes what onnxruntime took of scores that rounding tells apart; empty without any."""
        try:
            chosen = Choices(self._exported, "onnxruntime").run(feeds)
            with ChoosingAs(chosen):
                told = self.outputs(_eager(self._case, at), len(wanted)) if chosen else []
        except (ep.EntrepotError, RuntimeError, TypeError, ValueError):
            return {}
        return dict(zip(wanted, told, strict=False))

    def outputs(self, answers: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
        """Tensors, and Python numbers if they depend on a size."""
        places = [at for at, answer in enumerate(answers) if isinstance(answer, np.ndarray)]
        choices = [[*range(len(answers))], sorted({*places, *self._varying()}), places]
        found = next((choice for choice in choices if len(choice) == count), places)
        return [answers[at] for at in found]

    def reason_for_static(self, exported: ep.Model, why: str) -> str:
        """What the export says about the axis that a call was refused for."""
        found = re.match(r"value '([^']*)': axis (\d+) is \d+, expected \d+", why)
        reasons = json.loads(exported.metadata.get("entrepot.fixed_axes", "{}"))
        key = f"{found[1]}.{found[2]}" if found else ""
        return f"{key}: {reasons[key]}" if key in reasons else why

    def _own_error(self, at: int, wanted: Arrays) -> Mapping[str, float]:
        """Inputs that are whole numbers have no rounding to move them by."""
        if not isinstance(self.model, torch.nn.Module):
            return {}
        try:
            exact = self.outputs(_eager(self._case, at, double=True), len(wanted))
        except (RuntimeError, TypeError, ValueError):
            return {}  # it names the types that it computes in
        return own_error(wanted, dict(zip(wanted, exact, strict=False)))

    def _varying(self) -> frozenset[int]:
        """The places of Python numbers that differ from call to call."""
        calls = zip(*self._answers.values(), strict=False)
        varies = (not isinstance(each[0], np.ndarray) and len({*each}) > 1 for each in calls)
        return frozenset(at for at, differs in enumerate(varies) if differs)


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
    return [] if isinstance(value, enum.Enum) else list(getattr(value, "__dict__", {}).values())


def _split(call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((), dict(call)) if isinstance(call, dict) else (tuple(call), {})


def totals(outcomes: Sequence[Outcome]) -> Counter[str]:
    """How many have which verdict."""
    return Counter(outcome.verdict for outcome in outcomes)
