"""TorchScript, by torch.onnx's translation of its graphs: loops and branches stay loops and branches."""

from __future__ import annotations

import io
from typing import Any

import torch

from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.annotate import describe_model, graph_names
from entrepot.exporters.torch.axes import Group, Prober
from entrepot.exporters.torch.checks import check_module, check_outputs, check_results, check_tensors
from entrepot.exporters.torch.eager import MODEL_ERRORS, Eager
from entrepot.exporters.torch.finish import at_opset, proved, settle_sizes
from entrepot.exporters.torch.flatten import Flat, flatten_named
from entrepot.exporters.torch.guard import quiet, untouched
from entrepot.exporters.torch.limits import module_limits
from entrepot.exporters.torch.notes import add_notes, constant_notes, fixed_axes, mode_note
from entrepot.exporters.torch.repair import weight_names
from entrepot.exporters.torch.translate import NATURAL_OPSET
from entrepot.exporters.torch.wanted import wanted_groups
from entrepot.ir.errors import ConversionError, InputError
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.ir.passes.cleanup import clean_up
from entrepot.runtime.constants import evaluate


def export_script(module: torch.jit.ScriptModule, sample: Any, options: Options) -> Model:
    """Translate a scripted or traced module.

    Raises:
        ConversionError: torch.onnx cannot translate its graph.
        VerificationError: The result does not compute the same thing.
    """
    check_module(module)
    if options.share:
        raise InputError("the weights of a ScriptModule cannot be shared", hint="leave share out to copy them")
    call = script_call(module, sample)
    check_tensors(call)
    mode = mode_note(module)
    with untouched(module) as state:
        eager = Eager(module, call.tree, state)
        options.tell("running the module on the sample")
        result = eager.require_function(call.tensors)
        check_results(result)
        check_outputs(result)
        prober = Prober(eager, call.tensors, result)
        groups, allowed = wanted_groups(prober, module, Sample.of(sample), call, options)
        inputs, outputs = graph_names(module, call, result, options)
        options.tell("translating to ONNX")
        graph = _translate(module, call, groups, inputs, outputs).ir
        clean_up(graph, level=options.optimize, evaluate=evaluate, weights=weight_names(module))
        describe_model(graph, module, call, result, inputs, outputs)
        add_notes(graph, fixed_axes(prober, groups, allowed, {}), mode, *constant_notes(call, result))
        settle_sizes(graph, module_limits(prober, groups), options)
        return proved(eager, call, at_opset(graph, options), options)


def script_call(module: torch.jit.ScriptModule, sample: Any) -> Flat:
    """The flat sample of a scripted module, named by its schema.

    Raises:
        InputError: The sample does not fit the schema.
    """
    given = Sample.of(sample)
    schema: Any = module.forward.schema  # type: ignore[attr-defined]
    names = [argument.name for argument in schema.arguments[1:]]
    if len(given.args) > len(names) or not set(given.kwargs) <= set(names[len(given.args) :]):
        raise InputError(f"the sample does not fit {schema}")
    return flatten_named(list(zip(names, given.args, strict=False)), dict(given.kwargs))


def _translate(
    module: torch.jit.ScriptModule, call: Flat, groups: list[Group], inputs: list[str], outputs: list[str]
) -> Model:
    axes: dict[str, dict[int, str]] = {}
    for group in groups:
        for index, axis in group.axes:
            axes.setdefault(inputs[index], {})[axis] = group.symbol
    buffer: Any = io.BytesIO()  # what the TorchScript path writes to, though its annotation forgets it
    try:
        with quiet():
            torch.onnx.export(
                module,
                tuple(call.tensors),
                buffer,
                dynamo=False,
                opset_version=NATURAL_OPSET,
                input_names=inputs,
                output_names=outputs,
                dynamic_axes=axes,
                do_constant_folding=False,
            )
    except MODEL_ERRORS as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConversionError(
            f"torch.onnx cannot translate the TorchScript graph: {first}", hint="export the nn.Module it was made from"
        ) from error
    return load(buffer.getvalue(), trust="trusted")
