"""The end of every export: the opset that was asked for, and the proof."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir

from entrepot.exporters.options import Judging, Options
from entrepot.exporters.proof.prove import agrees, prove, unequal
from entrepot.exporters.size_checks import check_conditions, state_conditions
from entrepot.exporters.torch.axes import Group
from entrepot.exporters.torch.eager import Eager
from entrepot.exporters.torch.flatten import Flat
from entrepot.exporters.torch.source import ModuleSource, to_numpy
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.opset import DEFAULT
from entrepot.ir.opset.convert import convert_opset
from entrepot.parity.report.report import Report


def settle_sizes(graph: onnx_ir.Model, limits: Sequence[str], options: Options) -> None:
    """State the conditions on the sizes of inputs, and check them in the graph if that is wanted."""
    state_conditions(graph, limits)
    if options.checks:
        check_conditions(graph, limits)


def at_opset(graph: onnx_ir.Model, options: Options) -> Model:
    """The model at the requested opset, converted only if it is at another."""
    model = Model(graph)
    opset = DEFAULT if options.opset is None else options.opset
    return model if opset == model.opset else convert_opset(model, opset)


def proved(eager: Eager, call: Flat, model: Model, options: Options) -> Model:
    """The model, with its report if a verification is wanted.

    Raises:
        VerificationError: It does not compute the same thing.
    """
    if options.verify:
        report = compare(eager, call, model, options.judging)
        if not agrees(report):
            raise unequal(report)
        model.report = report
    return model


def compare(eager: Eager, call: Flat, model: Model, judging: Judging, groups: Sequence[Group] = ()) -> Report:
    """Run the module and the model side by side; inputs and outputs are matched by position.

    Raises:
        InputError: The model takes a different number of inputs.
    """
    inputs = [spec.name for spec in model.inputs]
    if len(inputs) != len(call.tensors):
        raise InputError(f"the sample has {len(call.tensors)} tensors, the model takes {len(inputs)}")
    source = ModuleSource(eager, inputs, [spec.name for spec in model.outputs], type(eager.module).__name__, groups)
    feeds = dict(zip(inputs, map(to_numpy, call.tensors), strict=True))
    edges = {group.symbol: group.bounds["min"] - 1 for group in groups if group.bounds["min"] > 2}
    return prove(source, model, feeds, judging, edges=edges)
