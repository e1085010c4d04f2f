"""Weights that ONNX lays out differently from a framework: rearranged when they are read, and not before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir

from entrepot.ir.derived import DerivedTensor

_PACKED = {"LSTM": {1: "W", 2: "R", 3: "B"}, "GRU": {1: "W", 2: "R", 3: "B"}, "RNN": {1: "W", 2: "R", 3: "B"}}


@dataclass(frozen=True)
class Recipe:
    """How to build an array from parameters, its shape, and the parameters."""

    make: Callable[[], np.ndarray]
    shape: tuple[int, ...]
    sources: tuple[onnx_ir.TensorProtocol, ...]


def pack_weights(model: onnx_ir.Model) -> None:
    """Replace inputs of LSTM, GRU and RNN that are rows of parameters put together by initializers of that layout."""
    made: dict[onnx_ir.Value, onnx_ir.Value] = {}
    for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph):
        for index, part in _PACKED.get(node.op_type, {}).items():
            value = node.inputs[index] if index < len(node.inputs) else None
            if value is None or value.producer() is None:
                continue
            if value not in made:
                recipe = _recipe(value)
                if recipe is None:
                    continue
                made[value] = _initializer(model.graph, recipe, part, value.dtype)
            node.replace_input_with(index, made[value])


def _initializer(graph: onnx_ir.Graph, recipe: Recipe, part: str, dtype: onnx_ir.DataType | None) -> onnx_ir.Value:
    owner, _, parameter = (recipe.sources[0].name or "").rpartition(".")
    layer = parameter.rpartition("_l")[2].removesuffix("_reverse")
    base = f"{owner}.{part}_l{layer}" if owner else f"{part}_l{layer}"
    name = base if base not in graph.initializers else f"{base}_{len(graph.initializers)}"
    dtype = dtype or onnx_ir.DataType.from_numpy(recipe.make().dtype)
    tensor = DerivedTensor(recipe.make, recipe.sources, dtype=dtype, shape=recipe.shape, name=name)
    roles = [source.metadata_props.get("entrepot.role") for source in _sources(graph, recipe)]
    notes = {"entrepot.role": "parameter"} if roles and set(roles) == {"parameter"} else {}
    value = onnx_ir.Value(
        name=name, shape=tensor.shape, type=onnx_ir.TensorType(dtype), const_value=tensor, metadata_props=notes
    )
    graph.register_initializer(value)
    return value


def _sources(graph: onnx_ir.Graph, recipe: Recipe) -> list[onnx_ir.Value]:
    """The weights that an array is built from."""
    names = [source.name for source in recipe.sources if source.name]
    return [graph.initializers[name] for name in names if name in graph.initializers]


def _recipe(value: onnx_ir.Value) -> Recipe | None:
    """How ``value`` is built, if it is built from parameters only by slicing, stacking and concatenating rows."""
    node = value.producer()
    if node is None:
        tensor = value.const_value
        return None if tensor is None else Recipe(tensor.numpy, tuple(tensor.shape.numpy()), (tensor,))
    if node.op_type not in ("Slice", "Concat", "Unsqueeze"):
        return None
    data = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    parts = [None if part is None else _recipe(part) for part in data]
    known = [part for part in parts if part is not None]
    return _combine(node, known) if len(known) == len(parts) else None


def _combine(node: onnx_ir.Node, parts: list[Recipe]) -> Recipe | None:
    sources = tuple(source for part in parts for source in part.sources)
    first, *_ = parts
    if node.op_type == "Concat":
        ranks = {len(part.shape) for part in parts}
        if node.attributes["axis"].as_int() != 0 or len(ranks) > 1:
            return None
        rows = sum(part.shape[0] for part in parts)
        return Recipe(lambda: np.concatenate([part.make() for part in parts]), (rows, *first.shape[1:]), sources)
    numbers = [onnx_ir.convenience.get_const_tensor(each) if each is not None else None for each in node.inputs[1:]]
    integers = [None if number is None else number.numpy().tolist() for number in numbers]
    if node.op_type == "Unsqueeze":
        return Recipe(lambda: first.make()[None], (1, *first.shape), sources) if integers == [[0]] else None
    if len(integers) != 3 or integers[2] != [0] or integers[0] is None or integers[1] is None:
        return None
    rows_taken = slice(integers[0][0], integers[1][0])
    count = len(range(*rows_taken.indices(first.shape[0])))
    return Recipe(lambda: first.make()[rows_taken], (count, *first.shape[1:]), sources)
