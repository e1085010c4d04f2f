"""A ``torch.export.ExportedProgram``, with the dynamic axes that it was captured with."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, OutputKind, SymFloatArgument, SymIntArgument

from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.annotate import describe_model, graph_names, rename_symbols
from entrepot.exporters.torch.axes import Axis, Group, all_axes, name_groups
from entrepot.exporters.torch.checks import check_module, check_outputs, check_results, check_tensors
from entrepot.exporters.torch.eager import Eager
from entrepot.exporters.torch.finish import at_opset, proved, settle_sizes
from entrepot.exporters.torch.flatten import Flat, flatten_call, places
from entrepot.exporters.torch.guard import untouched
from entrepot.exporters.torch.limits import program_limits
from entrepot.exporters.torch.notes import PROGRAMMED, Fixed, add_notes, constant_notes
from entrepot.exporters.torch.repair import repair
from entrepot.exporters.torch.translate import translate
from entrepot.exporters.torch.weights import settle_weights
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model


def export_program(program: torch.export.ExportedProgram, sample: Any, options: Options) -> Model:
    """Translate a captured program, and verify the model against it.

    Raises:
        InputError: The dynamic axes asked for are not those of the program, or it has no example inputs.
    """
    module = program.module()
    check_module(module)
    call = program_call(program, module, sample)
    groups, sizes = _groups(program, call)
    if options.dynamic_shapes is not None or (
        options.dynamic is not True and options.dynamic != "auto" and not (options.dynamic is False and not groups)
    ):
        raise InputError(
            "an ExportedProgram has the dynamic axes it was captured with",
            hint="give dynamic_shapes to torch.export.export, or export the module itself",
        )
    with untouched(module) as state:
        eager = Eager(module, call.tree, state)
        options.tell("running the program on the sample")
        eager.numbers = _numbers(program, eager.require_function(call.tensors))
        result = eager(call.tensors)
        check_results(result)
        check_outputs(result)
        options.tell("translating to ONNX")
        graph = translate(_without_constants(program))
        inputs, outputs = graph_names(module, call, result, options)
        repair(graph, module, input_names=inputs, output_names=outputs, optimize=options.optimize)
        rename_symbols(graph, groups)
        describe_model(graph, module, call, result, inputs, outputs)
        settle_weights(graph, share=options.share)
        varying = {axis for group in groups for axis in group.axes}
        add_notes(
            graph,
            {axis: Fixed(PROGRAMMED) for axis in all_axes(call.tensors) if axis not in varying},
            *constant_notes(call, result),
        )
        settle_sizes(graph, program_limits(program, groups, sizes), options)
        return proved(eager, call, at_opset(graph, options), options)


def program_call(program: torch.export.ExportedProgram, module: torch.nn.Module, sample: Any) -> Flat:
    """The flat sample: the caller's, or the one the program was captured with."""
    if sample is None:
        if program.example_inputs is None:
            raise InputError("the program has no example inputs", hint="give a sample")
        sample = Sample(*program.example_inputs)
    call = flatten_call(Sample.of(sample), module.forward)
    check_tensors(call)
    return call


def _groups(program: torch.export.ExportedProgram, call: Flat) -> tuple[list[Group], dict[str, Any]]:
    """The program's dynamic axes, those of one size as a group, and that size as torch writes it, by symbol."""
    members: dict[Any, set[Axis]] = {}
    users = set(program.graph_signature.user_inputs)
    places = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    tensors = [node.meta["val"] for node in places if isinstance(node.meta.get("val"), torch.Tensor)]
    for index, tensor in enumerate(tensors):
        for axis, size in enumerate(tensor.shape):
            if isinstance(size, torch.SymInt):
                members.setdefault(size.node.expr, set()).add((index, axis))
    groups = [Group(frozenset(axes), "", []) for axes in members.values()]
    name_groups(groups, call.tensors, call.names)
    return groups, {group.symbol: size for group, size in zip(groups, members, strict=True)}


def _numbers(program: torch.export.ExportedProgram, result: Flat) -> frozenset[str]:
    """The results of a program that are Python numbers and depend on a size."""
    kinds = [spec.arg for spec in program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    pairs = zip(places(result.tree), kinds, strict=True)
    return frozenset(place.name for place, kind in pairs if isinstance(kind, SymIntArgument | SymFloatArgument))


def _without_constants(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with ``None`` for every result that is a plain number or string: torch.onnx (2.13) fails there."""
    (values,) = program.graph.output_node().args
    if all(value is None or isinstance(value, torch.fx.Node) for value in values):
        return program
    graph = copy.deepcopy(program.graph)
    (values,) = graph.output_node().args
    graph.output_node().args = (tuple(value if isinstance(value, torch.fx.Node) else None for value in values),)
    signature = copy.deepcopy(program.graph_signature)
    for spec in signature.output_specs:
        if isinstance(spec.arg, ConstantArgument):
            spec.arg = ConstantArgument(name="", value=None)
    return torch.export.ExportedProgram(
        program.graph_module,
        graph,
        signature,
        program.state_dict,
        program.range_constraints,
        program.module_call_graph,
        program.example_inputs,
        program.constants,
        verifiers=program.verifiers,
    )
