"""A ``torch.export.ExportedProgram``, with the dynamic axes that it was captured with."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, OutputKind, SymFloatArgument, SymIntArgument

from entrepot.exporters.axes.groups import Axis, Group, all_axes, name_groups
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.counting import has_state
from entrepot.exporters.exporter import Captured, refuse_modes
from entrepot.exporters.notes import PROGRAMMED, Fixed
from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Flat, flatten_call, places
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.limits import program_limits
from entrepot.exporters.torch.lowering.repair import repair
from entrepot.exporters.torch.lowering.translate import translate
from entrepot.exporters.torch.lowering.weights import weight_names
from entrepot.exporters.torch.running.checks import check_module, check_outputs, check_results
from entrepot.exporters.torch.sources.calling import TorchSource
from entrepot.ir.errors import InputError


class ProgramSource(TorchSource):
    """A program, with its own sample unless the caller gives another.

    Raises:
        InputError: It has no example inputs, and no sample is given.
    """

    noun = "program"

    def __init__(self, program: torch.export.ExportedProgram, sample: Any) -> None:
        module = program.module()
        super().__init__(module, _call(program, module, sample))
        _check_plain(self.call)
        self._program = program
        self._groups, self._sizes = _groups(program, self.call)

    def accept(self, options: Options) -> None:
        """Refuse other axes than those it was captured with.

        Raises:
            InputError: Other axes are asked for.
        """
        own = options.dynamic in (True, "auto", "all") or (options.dynamic is False and not self._groups)
        if options.dynamic_shapes is not None or not own:
            raise InputError(
                "an ExportedProgram has the dynamic axes it was captured with",
                hint="give dynamic_shapes to torch.export.export, or export the module itself",
            )
        refuse_modes(options)
        check_module(self.module)

    def settled(self) -> Flat:
        """The result, with numbers that depend on a size as tensors.

        Raises:
            InputError: There is an object in it.
        """
        result = super().settled()
        _check_plain(result)
        self.numbers = self._own_numbers = _numbers(self._program, result)
        return self(self.call.tensors)

    def check(self, result: Flat) -> None:
        """Refuse results for which ONNX has no type, and programs without results."""
        check_results(result)
        check_outputs(result)

    def groups(self, prober: Prober, options: Options) -> tuple[list[Group], Collection[Axis], Mapping[Axis, Fixed]]:
        """The program's own dynamic axes; all others were fixed by its capture."""
        axes = all_axes(self.call.tensors)
        varying = {axis for group in self._groups for axis in group.axes}
        return self._groups, axes, {axis: Fixed(PROGRAMMED) for axis in axes if axis not in varying}

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Translate the program as it is."""
        options.tell("translating to ONNX")
        graph = translate(_without_constants(self._program))
        repair(graph, self.module)
        return Captured(graph, groups, numbers=self._own_numbers, weights=weight_names(self.module))

    def limits(self, prober: Prober, groups: Sequence[Group]) -> list[str]:
        """Those that the program was captured with."""
        return program_limits(self._program, groups, self._sizes)


def _call(program: torch.export.ExportedProgram, module: torch.nn.Module, sample: Any) -> Flat:
    if sample is None:
        if program.example_inputs is None:
            raise InputError("the program has no example inputs", hint="give a sample")
        sample = Sample(*program.example_inputs)
    return flatten_call(Sample.of(sample), module.forward, TORCH)


def _check_plain(flat: Flat) -> None:
    if has_state(flat.tree):
        raise InputError(
            "objects in the inputs and outputs of an ExportedProgram have lost their attributes",
            hint="export the module itself, which keeps them",
        )


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
    groups = [Group(frozenset(axes), "", [], required=True) for axes in members.values()]
    name_groups(groups, TORCH, call.tensors, call.names)
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
