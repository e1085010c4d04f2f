"""TorchScript, by torch.onnx's translation of its graphs, in which loops and branches stay; or else by our reader."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from typing import Any

import onnx_ir
import torch

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured, refuse_modes
from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Flat, flatten_named
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.capture import capture
from entrepot.exporters.torch.capture.shapes import read_shapes, shaped_groups
from entrepot.exporters.torch.lowering.repair import repair
from entrepot.exporters.torch.lowering.translate import NATURAL_OPSET, translate
from entrepot.exporters.torch.lowering.weights import weight_names
from entrepot.exporters.torch.running.checks import check_module, check_outputs, check_results
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.scripts.closed import closed, without_prefix
from entrepot.exporters.torch.scripts.reader import Reader
from entrepot.exporters.torch.scripts.symbolics import more_symbolics
from entrepot.exporters.torch.sources.calling import TorchSource, mode_note
from entrepot.exporters.torch.upstream import without_dividing_by_zero, without_graph_dumps
from entrepot.ir.errors import ConversionError, EntrepotError, InputError, UnsupportedOpError
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.parity.compare import compare
from entrepot.runtime.session import Session

_READ = "read node by node"


class ScriptSource(TorchSource):
    """A scripted or traced module and what it is called with."""

    ways = ("as it is", _READ)

    def __init__(self, module: torch.jit.ScriptModule, sample: Any) -> None:
        self.sample = Sample.of(sample)
        super().__init__(module, _call(module, self.sample))
        self._mode = mode_note(module)

    def accept(self, options: Options) -> None:
        """Refuse to share weights.

        Raises:
            InputError: They are to be shared.
        """
        if options.share:
            raise InputError("the weights of a ScriptModule cannot be shared", hint="leave share out to copy them")
        refuse_modes(options)
        check_module(self.module)

    def check(self, result: Flat) -> None:
        """Refuse results for which ONNX has no type, and modules without results."""
        check_results(result)
        check_outputs(result)

    def shaped_groups(self, prober: Prober, dynamic_shapes: Any) -> tuple[list[Group], Collection[Axis]]:
        """The axes that torch.export's ``dynamic_shapes`` names or hints at."""
        wishes = read_shapes(dynamic_shapes, self.module, self.sample, self.call)
        return shaped_groups(prober, wishes, self.call.names), wishes.keys()

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Translate with torch.onnx; where that fails or is wrong, read the graph node by node. Weights are copies."""
        if self.way == _READ:
            return self._read(prober, groups, options)
        options.tell("translating to ONNX")
        try:
            module = closed(self.module, self.sample)
            graph = translate_script(module, self.call, groups)
            if module is not self.module:
                without_prefix(graph.graph)
            reason = self._fault(graph)
        except ConversionError as error:
            reason = error
        if reason is None:
            return Captured(graph, groups, weights=weight_names(self.module))
        try:
            return self._read(prober, groups, options)
        except (ConversionError, UnsupportedOpError) as error:
            raise ConversionError(f"{reason.message}; {error.message}", hint=error.hint) from reason

    def _fault(self, graph: onnx_ir.Model) -> ConversionError | None:
        """What is wrong with a translation, on the sample already."""
        expected = [TORCH.to_numpy(each) for each in self(self.call.tensors).tensors]
        names = [value.name for value in graph.graph.inputs]
        feeds = dict(zip(names, map(TORCH.to_numpy, self.call.tensors), strict=True))
        try:
            found = list(Session(Model(graph.clone())).run(feeds).values())
        except (EntrepotError, ValueError) as error:  # the latter from a graph that is none, which clone() notices
            return ConversionError(f"torch.onnx cannot translate the TorchScript graph: {error}")
        same = len(found) == len(expected) and compare(dict(enumerate(expected)), dict(enumerate(found)))
        return None if same else ConversionError("torch.onnx translates the TorchScript graph to something else")

    def _read(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        options.tell("reading the graph node by node")
        reader = Reader(self.module)
        captured = capture(reader, self.call, prober, groups, progress=options.tell)
        graph = translate(captured.program)
        repair(graph, reader)
        return Captured(graph, captured.groups, captured.fixed, captured.numbers, weight_names(self.module))

    def notes(self) -> Sequence[str]:
        """The mode that it was in."""
        return [self._mode]


def _call(module: torch.jit.ScriptModule, given: Sample) -> Flat:
    """The flat sample, named by the schema."""
    schema: Any = module.forward.schema  # type: ignore[attr-defined]
    names = [argument.name for argument in schema.arguments[1:]]
    if len(given.args) > len(names) or not set(given.kwargs) <= set(names[len(given.args) :]):
        raise InputError(f"the sample does not fit {schema}")
    return flatten_named(list(zip(names, given.args, strict=False)), dict(given.kwargs), TORCH)


def translate_script(module: torch.jit.ScriptModule, call: Flat, groups: list[Group]) -> onnx_ir.Model:
    """The graph of a scripted or traced module, by torch.onnx; inputs in flat order.

    Raises:
        ConversionError: torch.onnx cannot translate it.
    """
    inputs = [f"entrepot_input_{index}" for index in range(len(call.tensors))]
    axes: dict[str, dict[int, str]] = {}
    for group in groups:
        for index, axis in group.axes:
            axes.setdefault(inputs[index], {})[axis] = group.symbol
    buffer: Any = io.BytesIO()  # what the TorchScript path writes to, though its annotation forgets it
    try:
        with quiet(), without_graph_dumps(), without_dividing_by_zero(), more_symbolics(NATURAL_OPSET):
            torch.onnx.export(
                _copied(module),
                tuple(tensor.clone() for tensor in call.tensors),  # it is run, and may write to them
                buffer,
                dynamo=False,
                opset_version=NATURAL_OPSET,
                input_names=inputs,
                dynamic_axes=axes,
                do_constant_folding=False,
            )
        graph = load(buffer.getvalue(), trust="trusted").ir
    except (*MODEL_ERRORS, EntrepotError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConversionError(
            f"torch.onnx cannot translate the TorchScript graph: {first}", hint="export the nn.Module it was made from"
        ) from error
    if len(graph.graph.inputs) != len(inputs):  # arguments that are no tensors
        raise ConversionError("torch.onnx gives the TorchScript graph inputs that the sample has no tensors for")
    if any(node.op_type == "Optional" for node in onnx_ir.traversal.RecursiveGraphIterator(graph.graph)):
        raise ConversionError("torch.onnx leaves open whether a value of the TorchScript graph is None")
    _forget_carried(graph.graph)
    return graph


def _copied(module: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    """With a graph of its own, in which torch.onnx (2.13) puts operators in the place of functions."""
    buffer: Any = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def _forget_carried(graph: onnx_ir.Graph) -> None:
    """Take the sizes from what loops carry: torch.onnx (2.13) says that all of one rank are alike."""
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        for attribute in node.attributes.values():
            if node.op_type in ("Loop", "Scan") and attribute.type is onnx_ir.AttributeType.GRAPH:
                for value in attribute.as_graph().inputs:
                    if value.shape:
                        value.shape = onnx_ir.Shape([None] * len(value.shape))
