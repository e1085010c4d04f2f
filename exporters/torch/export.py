"""``export`` and ``verify`` for what torch makes: modules, exported programs, TorchScript."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

import torch

from entrepot.exporters.options import Judging, Options
from entrepot.exporters.proof.prove import agrees, unequal
from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.annotate import describe_model, graph_names, numbers_in, rename_symbols
from entrepot.exporters.torch.axes import Axis, Group, Prober
from entrepot.exporters.torch.capture import Capture, axis_name, capture
from entrepot.exporters.torch.checks import check_module, check_outputs, check_results, check_tensors
from entrepot.exporters.torch.eager import Eager, EagerRefusal
from entrepot.exporters.torch.finish import at_opset, compare, settle_sizes
from entrepot.exporters.torch.flatten import flatten_call
from entrepot.exporters.torch.guard import ModuleState, untouched
from entrepot.exporters.torch.limits import module_limits
from entrepot.exporters.torch.notes import UNFOLLOWED, Fixed, add_notes, constant_notes, fixed_axes, mode_note
from entrepot.exporters.torch.programs import export_program, program_call
from entrepot.exporters.torch.repair import repair
from entrepot.exporters.torch.scripted import export_script, script_call
from entrepot.exporters.torch.translate import translate
from entrepot.exporters.torch.unsupported import check_quantised, plain_refusals
from entrepot.exporters.torch.wanted import wanted_groups
from entrepot.exporters.torch.weights import settle_weights
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.parity.report.report import Report, Run


def export(obj: Any, sample: Any, options: Options) -> Model:
    """See ``entrepot.export``."""
    if isinstance(obj, torch.export.ExportedProgram):
        return export_program(obj, sample, options)
    _check_kind(obj)
    if sample is None:
        raise InputError("a torch module needs a sample to be exported", hint="ep.export(module, x): as it is called")
    if isinstance(obj, torch.jit.ScriptModule):
        return export_script(obj, sample, options)
    return _Export(obj, sample, options).run()


def verify(obj: Any, model: Model, sample: Any, judging: Judging) -> Report:
    """See ``entrepot.verify``."""
    _check_kind(obj)
    module = obj.module() if isinstance(obj, torch.export.ExportedProgram) else obj
    check_module(module)
    if isinstance(obj, torch.export.ExportedProgram):
        call = program_call(obj, module, sample)
    elif isinstance(module, torch.jit.ScriptModule):
        call = script_call(module, sample)
    else:
        call = flatten_call(Sample.of(sample), module.forward)
    check_tensors(call)
    with untouched(module) as state:
        eager = Eager(module, call.tree, state)
        with contextlib.suppress(EagerRefusal):  # the report will say so
            eager.numbers = numbers_in(model.metadata, eager(call.tensors))
        return compare(eager, call, model, judging)


def _check_kind(obj: Any) -> None:
    if not isinstance(obj, torch.nn.Module | torch.export.ExportedProgram):
        raise InputError(f"cannot export a {type(obj).__qualname__}", hint="wrap it in a torch.nn.Module")


class _Export:
    """One export of a module; the steps in order, and what they share."""

    def __init__(self, module: torch.nn.Module, sample: Any, options: Options) -> None:
        check_quantised(module)
        check_module(module)
        self.module = module
        self.options = options
        self.sample = Sample.of(sample)
        self.call = flatten_call(self.sample, module.forward)
        check_tensors(self.call)
        self.allowed: Collection[Axis] = ()
        self.mode = mode_note(module)
        self.fixed: dict[Axis, Fixed] = {}
        self._first: Report | None = None

    def run(self) -> Model:
        """Probe, capture, translate, prove; with fewer dynamic axes again where the proof fails because of one."""
        with untouched(self.module) as state:
            eager = Eager(self.module, self.call.tree, state)
            self.options.tell("running the module on the sample")
            result = eager.require_function(self.call.tensors)
            check_results(result)
            prober = Prober(eager, self.call.tensors, result)
            groups, self.allowed = wanted_groups(prober, self.module, self.sample, self.call, self.options)
            while True:
                model, captured = self._convert(eager, prober, groups, state)
                if not self.options.verify:
                    return model
                report = compare(eager, self.call, model, self.options.judging, captured.groups)
                if agrees(report):
                    model.report = report
                    return model
                groups = self._without_guilty(captured.groups, report, prober)

    def _convert(self, eager: Eager, prober: Prober, groups: list[Group], state: ModuleState) -> tuple[Model, Capture]:
        with plain_refusals(eager, self.call.tensors):
            self.options.tell("capturing the module")
            captured = capture(self.module, self.call, prober, groups, progress=self.options.tell)
            state.restore()
            self.options.tell("translating to ONNX")
            graph = translate(captured.program)
        self.fixed |= captured.fixed
        eager.numbers = captured.numbers
        result = prober.result = eager(self.call.tensors)
        check_outputs(result)
        inputs, outputs = graph_names(self.module, self.call, result, self.options)
        repair(graph, self.module, input_names=inputs, output_names=outputs)
        rename_symbols(graph, captured.groups)
        describe_model(graph, self.module, self.call, result, inputs, outputs)
        settle_weights(graph, share=self.options.share)
        notes = (self.mode, *constant_notes(self.call, result))
        add_notes(graph, fixed_axes(prober, captured.groups, self.allowed, self.fixed), *notes)
        settle_sizes(graph, module_limits(prober, captured.groups), self.options)
        return at_opset(graph, self.options), captured

    def _without_guilty(self, groups: list[Group], report: Report, prober: Prober) -> list[Group]:
        """The groups whose sizes did not lead to the failure, or with two of them bound together.

        Raises:
            VerificationError: There is nothing to give up: no axis varies, or the axes were asked for.
        """
        self._first = report if self._first is None else self._first
        failed = {run.symbol: run for run in report.failures}
        at_sample = any(run.label in ("sample", "other values") for run in report.failures)
        if all(run.edge for run in report.failures):
            raise unequal(report)
        if at_sample:  # the operators for varying sizes may be at fault
            guilty = groups[1:] if len(groups) > 1 else groups
        else:
            guilty = [group for group in groups if group.symbol in failed] or groups[-1:]  # only together: give up one
        if not guilty or any(group.required for group in guilty):
            raise unequal(self._first)  # later ones say of axes that they were given up, which did not help
        bound = prober.bind(guilty[0], groups) if not at_sample and guilty[0].symbol in failed else None
        if bound is not None and _required(bound) == _required(groups):
            self.options.tell(f"axes of '{guilty[0].symbol}' vary only together with others")
            return bound
        for group in guilty:
            self._fix(group, report.failures[0] if at_sample else failed.get(group.symbol))
        return [group for group in groups if group not in guilty]

    def _fix(self, group: Group, run: Run | None) -> None:
        reason = Fixed(UNFOLLOWED, "" if run is None else f"{run.label} on {run.provider}: {run.message}")
        for axis in sorted(group.axes):
            self.fixed[axis] = reason
            self.options.tell(f"axis {axis_name(axis, self.call.names)} is fixed: {reason}")


def _required(groups: list[Group]) -> set[str]:
    return {group.symbol for group in groups if group.required}
