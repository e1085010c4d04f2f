"""An encoder-decoder as optimum and transformers.js read it: an encoder's results, and one decoder with a branch.

Here an encoder ends in keys and values. There it ends in what they are computed from, and the decoder computes them in
its first step, which ``use_cache_branch`` tells from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.runtime.generation.memory import between, memory_of

if TYPE_CHECKING:
    from entrepot.runtime.generation.package import Package

MEMORY, CHOICE = "encoder_hidden_states", "use_cache_branch"
_GROWING = 2
"""The axis of keys and values that gets longer."""


def encoder_model(package: Package) -> Model:
    """The encoder, with its results as ``last_hidden_state``.

    Raises:
        ConversionError: Nothing in its graph is that.
    """
    model = package.graphs["encoder"].ir.clone()
    memory = memory_of(model.graph)
    model.graph.outputs[:] = [memory]
    memory.name = "last_hidden_state"
    common.RemoveUnusedNodesPass()(model)
    return Model(model)


def merged_decoder(package: Package, names: Mapping[str, str]) -> Model:
    """The decoder, with a branch that makes keys and values of the encoder's results.

    Args:
        package: An encoder-decoder with a cache.
        names: What its inputs and outputs are called there.

    Raises:
        ConversionError: It is given more of what the encoder is given than a mask.
    """
    manifest = package.manifest
    decoder, encoder = package.graphs["decoder"].ir.clone(), package.graphs["encoder"].ir.clone()
    graph, inputs = decoder.graph, {value.name or "": value for value in decoder.graph.inputs}
    pasts = [state.past for state in manifest.states]
    more = inputs.keys() - {manifest.tokens, manifest.source_mask, manifest.first_scored, *manifest.constants, *pasts}
    if more:
        raise ConversionError(f"the decoder takes '{min(more)}', for which this layout has no name")
    source = memory_of(encoder.graph)
    memory = ir.Value(name=MEMORY, type=source.type, shape=source.shape)
    choice = ir.Value(name=CHOICE, type=_BOOL, shape=ir.Shape([1]))
    kept = [inputs[name] for name in (*manifest.constants, *pasts)]
    used = [_like(value, f"used.{value.name}") for value in kept]
    for value, now in zip(kept, used, strict=True):
        value.replace_all_uses_with(now)
    first = _Branch(graph, encoder.graph, source, memory)
    made = [first.made(name) for name in manifest.constants] + [first.empty(inputs[name]) for name in pasts]
    branches = {"else_branch": ir.Graph([], made, nodes=first.nodes, name="first"), "then_branch": _same(kept)}
    graph.insert_before(next(iter(graph)), ir.node("If", [choice], branches, outputs=used))
    for value in kept[: len(manifest.constants)]:  # readers give others in the first step, which mean nothing
        value.shape = ir.Shape(["past source" if at == _GROWING else dim for at, dim in enumerate(value.shape or ())])
    graph.inputs.extend([memory, choice])
    graph.outputs.extend(used[: len(manifest.constants)])
    for name, value in zip(manifest.constants, used, strict=False):
        value.name = names[name].replace("past_key_values", "present")
    for value in (*graph.inputs, *graph.outputs):
        value.name = names.get(value.name or "", value.name)
    decoder.functions.update(encoder.functions)
    return Model(decoder)


class _Branch:
    """The first step: keys and values of the encoder's results, and no tokens before."""

    def __init__(self, graph: ir.Graph, encoder: ir.Graph, source: ir.Value, memory: ir.Value) -> None:
        self.nodes = between(encoder, source)
        self._outputs = {value.name or "": value for value in encoder.outputs}
        self._memory = {source: memory}
        weights = {
            value for node in self.nodes for value in node.inputs if value is not None and value.is_initializer()
        }
        encoder.outputs.clear()
        encoder.remove(self.nodes)
        for weight in weights:
            del encoder.initializers[weight.name or ""]
            weight.name = f"first.{weight.name}"
            graph.register_initializer(weight)
        for node in self.nodes:
            for at, value in enumerate(node.inputs):
                if value is source:
                    node.replace_input_with(at, memory)
        for value in (value for node in self.nodes for value in node.outputs):
            value.name = f"first.{value.name}"

    def made(self, name: str) -> ir.Value:
        """What the encoder left under a name."""
        value = self._outputs[name]
        return self._node("Identity", self._memory[value]) if value in self._memory else value

    def empty(self, past: ir.Value) -> ir.Value:
        """A cache without tokens, however many there are in what is given: readers give one that means nothing."""
        start, stop = self._vector(0), self._vector(0)
        return self._node("Slice", past, start, stop, self._vector(_GROWING))

    def _vector(self, number: int) -> ir.Value:
        return self._node("Constant", value=ir.tensor(np.array([number], np.int64)))

    def _node(self, op_type: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        node = ir.node(op_type, inputs, attributes)
        node.outputs[0].name = f"first.{op_type}.{len(self.nodes)}"
        self.nodes.append(node)
        return node.outputs[0]


def _same(values: list[ir.Value]) -> ir.Graph:
    """A branch that gives what there is."""
    nodes = [ir.node("Identity", [value]) for value in values]
    for node, value in zip(nodes, values, strict=True):
        node.outputs[0].name = f"same.{value.name}"
    return ir.Graph([], [node.outputs[0] for node in nodes], nodes=nodes, name="same")


def _like(value: ir.Value, name: str) -> ir.Value:
    """A value of the same element type; sizes differ between branches."""
    return ir.Value(name=name, type=value.type)


_BOOL = ir.TensorType(ir.DataType.BOOL)
