"""``export`` and ``verify`` for what torch makes: modules, exported programs, TorchScript."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.options import Options
from entrepot.exporters.proof import prove
from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.annotate import describe_model, graph_names, rename_symbols
from entrepot.exporters.torch.axes import Group, Prober, name_groups
from entrepot.exporters.torch.capture import Capture, axis_name, capture
from entrepot.exporters.torch.checks import check_module, check_tensors
from entrepot.exporters.torch.eager import Eager
from entrepot.exporters.torch.flatten import Flat, flatten_call
from entrepot.exporters.torch.guard import ModuleState, untouched
from entrepot.exporters.torch.repair import repair
from entrepot.exporters.torch.required import required_groups
from entrepot.exporters.torch.source import ModuleSource, to_numpy
from entrepot.exporters.torch.translate import translate
from entrepot.ir.errors import InputError, VerificationError
from entrepot.ir.model import Model
from entrepot.ir.opset import DEFAULT
from entrepot.ir.opset.convert import convert_opset
from entrepot.parity.report.report import Report
from entrepot.parity.tolerance import Tolerance


def export(obj: Any, sample: Any, options: Options) -> Model:
    """See ``entrepot.export``."""
    if isinstance(obj, torch.nn.Module):
        if sample is None:
            raise InputError(
                "a torch module needs a sample to be exported",
                hint="ep.export(module, x), with tensors as it is called",
            )
        return _Export(obj, sample, options).run()
    raise InputError(f"cannot export a {type(obj).__qualname__}", hint="wrap it in a torch.nn.Module")


def verify(
    obj: Any,
    model: Model,
    sample: Any,
    *,
    providers: Sequence[str] | None = None,
    tolerance: Tolerance | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """See ``entrepot.verify``."""
    check_module(obj)
    call = flatten_call(Sample.of(sample), obj.forward)
    check_tensors(call)
    with untouched(obj) as state:
        eager = Eager(obj, call.tree, state)
        return _verified(eager, call, model, providers=providers, tolerance=tolerance, progress=progress)


class _Export:
    """One export; the steps in order, and what they share."""

    def __init__(self, module: torch.nn.Module, sample: Any, options: Options) -> None:
        check_module(module)
        self.module = module
        self.options = options
        self.call = flatten_call(Sample.of(sample), module.forward)
        check_tensors(self.call)
        self.fixed: dict[str, str] = {}

    def run(self) -> Model:
        with untouched(self.module) as state:
            eager = Eager(self.module, self.call.tree, state)
            self.options.tell("running the module on the sample")
            result = eager.require_function(self.call.tensors)
            prober = Prober(eager, self.call.tensors, result)
            groups = self._groups(prober)
            while True:
                model, captured = self._convert(prober, groups, result, state)
                if not self.options.verify:
                    return model
                report = _verified(
                    eager, self.call, model, tolerance=self.options.tolerance, progress=self.options.tell
                )
                if report.ok:
                    model.report = report
                    return model
                groups = self._without_guilty(captured.groups, report)

    def _groups(self, prober: Prober) -> list[Group]:
        dynamic = self.options.dynamic
        if dynamic is False:
            return []
        if dynamic != "auto":
            names = self.options.input_names or self.call.names
            return required_groups(prober, dynamic, names)  # type: ignore[arg-type]
        self.options.tell("finding the axes that vary")
        groups = prober.find_groups()
        name_groups(groups, prober.base, self.call.names)
        return groups

    def _convert(self, prober: Prober, groups: list[Group], result: Flat, state: ModuleState) -> tuple[Model, Capture]:
        self.options.tell("capturing the module")
        required = self.options.dynamic != "auto"
        captured = capture(self.module, self.call, prober, groups, required=required, progress=self.options.tell)
        state.restore()
        self.fixed |= captured.fixed
        self.options.tell("translating to ONNX")
        graph = translate(captured.program)
        inputs, outputs = graph_names(self.module, self.call, result, self.options)
        repair(graph, input_names=inputs, output_names=outputs)
        rename_symbols(graph, captured.groups)
        describe_model(graph, self.module, self.call, result, inputs, outputs)
        if self.fixed:
            graph.metadata_props["entrepot.fixed_axes"] = json.dumps(self.fixed)
        model = Model(graph)
        opset = self.options.opset or DEFAULT
        return (model if opset == model.opset else convert_opset(model, opset)), captured

    def _without_guilty(self, groups: list[Group], report: Report) -> list[Group]:
        """The groups whose sizes did not lead to the failure.

        Raises:
            VerificationError: There is nothing left to give up: the model differs at the sample, or every axis was asked for.
        """
        failed = [run for run in report.runs if run.verdict in ("differs", "error")]
        symbols = {run.symbol for run in failed}
        at_sample = any(run.label in ("sample", "other values") for run in failed)
        if at_sample or self.options.dynamic != "auto" or not groups:
            raise VerificationError(f"the exported model does not compute the same: {report.summary()}", report=report)
        known = {group.symbol for group in groups}
        guilty = symbols & known or known
        for group in groups:
            if group.symbol in guilty:
                reason = next(
                    (f"{run.label} on {run.provider}: {run.message}" for run in failed if run.symbol == group.symbol),
                    "",
                )
                reason = f"the graph does not follow other sizes ({reason})" if reason else "sizes do not vary together"
                for axis in sorted(group.axes):
                    self.fixed[axis_name(axis, self.call.names)] = reason
                    self.options.tell(f"axis {axis_name(axis, self.call.names)} is fixed: {reason}")
        return [group for group in groups if group.symbol not in guilty]


def _verified(
    eager: Eager,
    call: Flat,
    model: Model,
    *,
    providers: Sequence[str] | None = None,
    tolerance: Tolerance | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    inputs = [spec.name for spec in model.inputs]
    if len(inputs) != len(call.tensors):
        raise InputError(f"the sample has {len(call.tensors)} tensors, the model takes {len(inputs)}")
    outputs = [spec.name for spec in model.outputs]
    source = ModuleSource(eager, inputs, outputs, type(eager.module).__name__)
    feeds = dict(zip(inputs, map(to_numpy, call.tensors), strict=True))
    return prove(source, model, feeds, providers=providers, tolerance=tolerance, progress=progress)
