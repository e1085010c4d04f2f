"""The proof of an imported module: run beside the model on our own runtime and on onnxruntime."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import nn

from entrepot.importers.torch.dtypes import NAMES
from entrepot.ir.errors import EntrepotError, VerificationError
from entrepot.ir.model import Model
from entrepot.ir.opset.scopes import scopes
from entrepot.ir.traits import traits_of
from entrepot.parity.compare import NOISE, Tolerance, compare
from entrepot.parity.doubled import Doubled, typed_alike
from entrepot.parity.feeds import Feeds, generate, holds_nothing
from entrepot.parity.few_steps import apart_by_few_steps
from entrepot.parity.leaves import with_columns
from entrepot.parity.plan import Case, plan_cases
from entrepot.parity.proposals import that_runs
from entrepot.parity.report.report import Report, Run
from entrepot.parity.sources import ModelSource, SourceRefusal
from entrepot.parity.verify import verify
from entrepot.runtime.feeds import feeds_of
from entrepot.runtime.planning.fold import KERNEL_ERRORS
from entrepot.runtime.providers.torch.dtypes import array_of_tensor, tensor_of
from entrepot.runtime.session import Session


class ModuleSource:
    """A module that is run on NumPy arrays.

    Args:
        module: The module.
        model: What it was made from, for the names of inputs and outputs.
    """

    def __init__(self, module: nn.Module, model: Model) -> None:
        self.name = f"{type(module).__name__} in torch"
        self._module = module
        self._model = model
        self._inputs = [spec.name for spec in model.inputs]
        self._outputs = [spec.name for spec in model.outputs]

    def steps(self, feeds: dict[str, Any]) -> Mapping[str, float]:
        """How far each output may move where the model rounds to steps, as the module then does."""
        return self._own.steps(feeds)

    @property
    def precision(self) -> np.dtype[Any] | None:
        """The least exact type that the model computes in, and the module with it."""
        return self._own.precision

    @functools.cached_property
    def _own(self) -> ModelSource:
        return ModelSource(self._model)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by the model's names.

        Raises:
            SourceRefusal: The module raises an error.
        """
        try:
            with torch.no_grad():
                made = self._module(*(_tensors(feeds.get(name)) for name in self._inputs))
        except KERNEL_ERRORS as error:
            raise SourceRefusal(f"{type(error).__name__}: {error}") from error
        results = made if isinstance(made, tuple) and len(self._outputs) > 1 else (made,)
        return with_columns({name: _arrays(result) for name, result in zip(self._outputs, results, strict=True)})


def _tensors(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_tensors(item) for item in value]
    if value is None or ir.DataType.from_numpy(np.asarray(value).dtype) not in NAMES:
        return value
    return tensor_of(np.array(value))


def _arrays(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_arrays(item) for item in value]
    return array_of_tensor(value.detach()) if isinstance(value, torch.Tensor) else value


def prove(module: nn.Module, model: Model, sample: Any, tolerance: Tolerance | None) -> Report | None:
    """The report; ``None`` for a model that draws random numbers, which no two runs agree about.

    Raises:
        VerificationError: They differ, or only one of them runs.
    """
    if _draws(model):
        return None
    source = ModuleSource(module, model)
    feeds = _sample(model, sample)
    report, problem = _compared(source, model, feeds, tolerance)
    if not report.ok and report.refusals and sample is None and not _differing(report):
        # what was made up may be nothing but what our own runtime goes on to run
        others = that_runs(model, ("cpu", "onnxruntime"))
        report, problem = (report, problem) if others is None else _compared(source, model, others, tolerance)
    if problem:
        raise VerificationError(
            f"the imported module does not do what the model does: {problem}", report=report,
            hint="pass a sample that the model runs on, or verify=False to look at the module",
        )  # fmt: skip
    return report


def _compared(source: ModuleSource, model: Model, feeds: Feeds, tolerance: Tolerance | None) -> tuple[Report, str]:
    """The report for a sample and others like it, and what is wrong."""
    cases = _cases(model, feeds)
    providers = ["cpu"] if all(_is_empty(case.feeds) for case in cases) else None
    report = verify(source, model, cases, tolerance=tolerance, providers=providers)
    report = _settled(report, source, model, cases, tolerance)
    return report, _problem(report, model, cases)


def _draws(model: Model) -> bool:
    hub = model.at_hub().ir
    nodes = (node for scope in scopes(hub) for node in scope.all_nodes() if node.op_identifier() not in hub.functions)
    return any(traits_of(node).random and node.op_type != "Dropout" for node in nodes)


def _sample(model: Model, sample: Any) -> Feeds:
    if sample is not None:
        return feeds_of(model, sample)
    feeds = that_runs(model)
    return generate(model) if feeds is None else feeds


def _cases(model: Model, feeds: Feeds) -> Sequence[Case]:
    """All but empty inputs, on some of which onnxruntime 1.31 aborts the process; unless there are no others."""
    cases = plan_cases(model, feeds)
    return [case for case in cases if not _is_empty(case.feeds)] or cases


def _is_empty(feeds: Feeds) -> bool:
    return any(map(holds_nothing, feeds.values()))


def _settled(
    report: Report, source: ModuleSource, model: Model, cases: Sequence[Case], tolerance: Tolerance | None
) -> Report:
    """The report, in which onnx's reference decides where onnxruntime alone disagrees.

    Products and means over nothing are whatever is in memory on onnxruntime 1.31, and inputs that were made up may well
    select nothing. Where the model rounds to steps, it may now and then take the other one.
    """
    agreed = {run.label for run in report.runs if run.ok and run.provider == "cpu"}
    feeds = {case.label: case.feeds for case in cases}

    def confirmed(run: Run) -> bool:
        try:
            third = Session(model, providers=["reference"]).run(feeds[run.label])
        except EntrepotError:
            return False
        return compare(source.run(feeds[run.label]), third, tolerance).ok

    alone = _alone(report, agreed)
    report = _noted(report, {run for run in alone if confirmed(run)}, _ALONE)
    alone = _alone(report, agreed)
    few = apart_by_few_steps(report, "onnxruntime", model, [feeds[run.label] for run in alone])
    report = _noted(report, alone & few, _FEW)
    if tolerance is not None or not _differing(report):
        return report
    try:
        session, twin = Session(model), Doubled(model)
    except EntrepotError:
        return report
    labels = {run.label for run in _differing(report)}
    exact = {label for label in labels if _is_as_exact(source, session, twin, feeds[label])}
    return _noted(report, {run for run in _differing(report) if run.label in exact}, _UNSURE)


def _is_as_exact(source: ModuleSource, session: Session, twin: Doubled, feeds: Feeds) -> bool:
    """Whether a module is as near to what a model computes in float64 as the model itself is in float32."""
    try:
        single, double, made = session.run(feeds), twin.run(feeds), source.run(feeds)
    except (EntrepotError, SourceRefusal):
        return False
    if double is None:
        return False
    own = compare(typed_alike(double, single), single).outputs
    noise = {each.name: each.metrics.max_abs / NOISE for each in own if each.metrics is not None}
    if not all(map(math.isfinite, noise.values())):
        return False
    return compare(typed_alike(double, single), made, noise=noise).ok


def _alone(report: Report, agreed: set[str]) -> set[Run]:
    """Runs where onnxruntime differs and our own runtime agrees."""
    differing = (run for run in report.failures if run.verdict == "differs" and run.provider == "onnxruntime")
    return {run for run in differing if run.label in agreed}


def _noted(report: Report, excused: set[Run], why: str) -> Report:
    runs = (replace(run, verdict="noted", excuse=why) if run in excused else run for run in report.runs)
    return replace(report, runs=tuple(runs))


_ALONE = "disagrees with onnx's reference, too"
_UNSURE = "is as near to float64 as the model itself"
_FEW = "takes the other of two steps now and then"


def _problem(report: Report, model: Model, cases: Sequence[Case]) -> str:
    """What is wrong; refusals of the module count where the model itself runs and something is computed."""
    if differing := _differing(report):
        return f"{differing[0].message or differing[0].label} ({differing[0].label}, {differing[0].provider})"
    refused = {run.label: run.message for run in report.refusals}
    for case in cases:
        if case.label in refused and _runs(model, case.feeds):
            return f"at {case.label}: {refused[case.label]}"
    compared = any(run.ok or run.verdict == "noted" for run in report.runs)
    return "" if compared else "nothing could be compared"


def _differing(report: Report) -> list[Run]:
    return [run for run in report.failures if run.verdict == "differs"]  # an error of a runtime is the model's


def _runs(model: Model, feeds: Feeds) -> bool:
    """Whether our own runtime computes something, and onnxruntime does as well if it can load the model."""
    if not _computes(Session(model), feeds):
        return False
    try:
        other = Session(model, providers=["onnxruntime"])
    except EntrepotError:
        return True
    return _computes(other, feeds)


def _computes(session: Session, feeds: Feeds) -> bool:
    try:
        session.run(feeds)
    except EntrepotError:
        return False
    return True
