"""An encoder-decoder as optimum and transformers.js read it: an encoder's results, and decoders.

Here an encoder ends in keys and values. There it ends in what they are computed from, and the decoder computes them in
its first step: in a file of its own, or in a branch of one for all steps, which ``use_cache_branch`` chooses.
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


def decoders(package: Package, names: Mapping[str, str]) -> dict[str, Model]:
    """The decoder by the names of optimum's files: for the first step, for those after it, and both in one.

    Args:
        package: An encoder-decoder with a cache.
        names: What its inputs and outputs are called there.

    Raises:
        ConversionError: It is given more of what the encoder is given than a mask.
    """
    found = {}
    for file, rewrite in (
        ("decoder_model", _first),
        ("decoder_with_past_model", _later),
        ("decoder_model_merged", _merged),
    ):
        decoder = _Decoder(package)
        rewrite(decoder)
        found[file] = decoder.named(names)
    return found


class _Decoder:
    """The graph of a decoder that is being rewritten.

    Args:
        package: What it is from.
    """

    def __init__(self, package: Package) -> None:
        self.manifest = manifest = package.manifest
        self.model, self._encoder = package.graphs["decoder"].ir.clone(), package.graphs["encoder"].ir.clone()
        self.graph = self.model.graph
        self.inputs = {value.name or "": value for value in self.graph.inputs}
        self.pasts = [state.past for state in manifest.states]
        known = {manifest.tokens, manifest.source_mask, manifest.first_scored, *manifest.constants, *self.pasts}
        if more := self.inputs.keys() - known:
            raise ConversionError(f"the decoder takes '{min(more)}', for which this layout has no name")

    def branch(self) -> _Branch:
        """What makes keys and values of the encoder's results, which are an input from here on."""
        source = memory_of(self._encoder.graph)
        memory = ir.Value(name=MEMORY, type=source.type, shape=source.shape)
        self.graph.inputs.append(memory)
        self.model.functions.update(self._encoder.functions)
        return _Branch(self.graph, self._encoder.graph, source, memory)

    def return_seen(self, made: list[ir.Value]) -> None:
        """Return keys and values of the encoder's results as well."""
        self.graph.outputs.extend(made)
        for name, value in zip(self.manifest.constants, made, strict=True):
            value.name = f"{_SEEN}{name}"

    def named(self, names: Mapping[str, str]) -> Model:
        """The model under the names of others, in their order: readers go by that, too."""
        known = {**names} | {
            f"{_SEEN}{name}": names[name].replace("past_key_values", "present") for name in self.manifest.constants
        }
        for value in (*self.graph.inputs, *self.graph.outputs):
            value.name = known.get(value.name or "", value.name)
        for values in (self.graph.inputs, self.graph.outputs):
            values[:] = sorted(values, key=lambda value: _place(value.name or ""))
        return Model(self.model)


def _first(decoder: _Decoder) -> None:
    """The first step alone, which takes no cache."""
    graph, pasts = decoder.graph, {state.past: state for state in decoder.manifest.states}
    branch = decoder.branch()
    seen = {name: branch.made(name) for name in decoder.manifest.constants}
    rows = branch.rows(decoder.inputs[decoder.manifest.tokens])
    none = {name: branch.nothing(rows, pasts[name].shape, decoder.inputs[name]) for name in pasts}
    for name, value in (seen | none).items():
        decoder.inputs[name].replace_all_uses_with(value)
        graph.inputs.remove(decoder.inputs[name])
    graph.insert_before(next(iter(graph)), branch.nodes)
    decoder.return_seen(list(seen.values()))


def _later(_: _Decoder) -> None:
    """Every step but the first: the graph as it is."""


def _merged(decoder: _Decoder) -> None:
    """All steps, with a branch that makes keys and values of the encoder's results."""
    graph, constants = decoder.graph, decoder.manifest.constants
    kept = [decoder.inputs[name] for name in (*constants, *decoder.pasts)]
    used = [_like(value, f"used.{value.name}") for value in kept]
    for value, now in zip(kept, used, strict=True):
        value.replace_all_uses_with(now)
    branch = decoder.branch()
    made = [branch.made(name) for name in constants]
    made += [branch.empty(decoder.inputs[name]) for name in decoder.pasts]
    branches = {"else_branch": ir.Graph([], made, nodes=branch.nodes, name="first"), "then_branch": _same(kept)}
    choice = ir.Value(name=CHOICE, type=_BOOL, shape=ir.Shape([1]))
    graph.insert_before(next(iter(graph)), ir.node("If", [choice], branches, outputs=used))
    for value in kept[: len(constants)]:  # readers give others in the first step, which mean nothing
        value.shape = ir.Shape(["past source" if at == _GROWING else dim for at, dim in enumerate(value.shape or ())])
    graph.inputs.append(choice)
    decoder.return_seen(used[: len(constants)])


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
        for node in self.nodes:
            node.name = f"first.{node.name}"
            for value in node.outputs:
                value.name = f"first.{value.name}"

    def made(self, name: str) -> ir.Value:
        """What the encoder left under a name."""
        value = self._outputs[name]
        return self._node("Identity", self._memory[value]) if value in self._memory else value

    def empty(self, past: ir.Value) -> ir.Value:
        """A cache without tokens, however many there are in what is given: readers give one that means nothing."""
        start, stop = self._vector(0), self._vector(0)
        return self._node("Slice", past, start, stop, self._vector(_GROWING))

    def rows(self, tokens: ir.Value) -> ir.Value:
        """How many there are."""
        return self._node("Gather", self._node("Shape", tokens), self._vector(0))

    def nothing(self, rows: ir.Value, shape: tuple[int, ...], like: ir.Value) -> ir.Value:
        """A cache without tokens, of a type; its first axis is the batch's."""
        sizes = self._node("Constant", value=ir.tensor(np.array(shape[1:], np.int64)))
        zero = self._node("Constant", value=ir.tensor(np.zeros((), like.dtype.numpy() if like.dtype else np.float32)))
        return self._node("Expand", zero, self._node("Concat", rows, sizes, axis=0))

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
_SEEN = "seen."


def _place(name: str) -> tuple[int, int, str, str]:
    """Where an input or output stands: caches layer by layer, what decoders saw before what encoders did."""
    kind, _, rest = name.partition(".")
    if kind in ("past_key_values", "present"):
        layer, of, part = rest.split(".")
        return len(_ORDER), int(layer), of, part
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER) + 1), 0, "", ""


_ORDER = ("logits", "encoder_attention_mask", "input_ids", MEMORY)
"""What comes before caches; the choice of a branch comes after."""
