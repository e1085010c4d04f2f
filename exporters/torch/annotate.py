"""Names of inputs and outputs, symbols of axes, and what a model says about where it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir
import torch

import entrepot
from entrepot.exporters.options import Options
from entrepot.exporters.torch.axes import Group
from entrepot.exporters.torch.flatten import Constant, Flat, leaves, places, structure_json
from entrepot.ir.errors import InputError

_WORD = re.compile(r"[A-Za-z_]\w*")


def graph_names(module: torch.nn.Module, call: Flat, result: Flat, options: Options) -> tuple[list[str], list[str]]:
    """Names of the graph's inputs and outputs: the caller's, or those of the signature and the result.

    Raises:
        InputError: The caller gave too few, too many, or the same twice.
    """
    parameters = {name for name, _ in module.named_parameters()} | {name for name, _ in module.named_buffers()}
    inputs = _chosen(options.input_names, call.names, parameters, "_in", "input_names")
    wanted = [output_name(name) for name in result.names]
    outputs = _chosen(options.output_names, wanted, parameters | set(inputs), "_out", "output_names")
    return inputs, outputs


def rename_symbols(model: onnx_ir.Model, groups: Sequence[Group]) -> None:
    """Replace torch's symbols (``s77``, ``2*s77``) by those of the groups, wherever shapes mention them."""
    names: dict[str, str] = {}
    for group in groups:
        for index, axis in group.axes:
            shape = model.graph.inputs[index].shape
            dim = None if shape is None else shape[axis]
            if isinstance(dim, onnx_ir.SymbolicDim) and dim.value is not None:
                names[dim.value] = group.symbol
    for value in _all_values(model.graph):
        if value.shape is not None:
            value.shape = onnx_ir.Shape([_renamed(dim, names) for dim in value.shape])


def describe_model(
    model: onnx_ir.Model,
    module: torch.nn.Module,
    call: Flat,
    result: Flat,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Record in the file what it was made from, and the structure of its flat inputs and outputs."""
    kind = type(module)
    model.producer_name, model.producer_version = "entrepot", entrepot.__version__
    model.graph.name = kind.__name__
    names = dict(zip((leaf.name for leaf in leaves(call.tree)), inputs, strict=True))
    result_names = dict(zip((leaf.name for leaf in leaves(result.tree)), outputs, strict=True))
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    model.metadata_props["entrepot.framework"] = f"torch {torch.__version__}"
    model.metadata_props["entrepot.class"] = f"{kind.__module__}:{kind.__qualname__}"
    model.metadata_props["entrepot.structure"] = structure_json(call.tree, result.tree, names, result_names)


def numbers_in(metadata: Mapping[str, str], result: Flat) -> frozenset[str]:
    """Which numbers of a result are outputs of a model, according to its description of the structure."""
    try:
        described = [*_described(json.loads(metadata.get("entrepot.structure", "{}"))["outputs"])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return frozenset()  # not one of ours: its outputs are tensors
    pairs = zip(places(result.tree), described, strict=False)
    return frozenset(place.name for place, kind in pairs if isinstance(place, Constant) and kind == "tensor")


def _described(part: Mapping[str, Any]) -> Iterator[str]:
    kind, content = next(iter(part.items()))
    if kind in ("tensor", "constant"):
        yield kind
    else:
        for _, child in content:
            yield from _described(child)


def _chosen(
    given: Sequence[str] | None, found: Sequence[str], taken: Collection[str], suffix: str, what: str
) -> list[str]:
    if given is None:
        return _distinct([f"{name}{suffix}" if name in taken else name for name in found])
    if len(given) != len(found) or len(set(given)) != len(given) or set(given) & set(taken):
        raise InputError(
            f"{what} is {list(given)}, for {list(found)}", hint="give each its own name, and none of a parameter"
        )
    return list(given)


def _distinct(names: Sequence[str]) -> list[str]:
    result: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in result:
            number += 1
            candidate = f"{name}_{number}"
        result.append(candidate)
    return result


def output_name(path: str) -> str:
    """``output`` for the one result, ``output_1`` for the second of a tuple, the key or field name for the rest."""
    if not path:
        return "output"
    return f"output_{path}" if path[0].isdigit() else path


def _renamed(dim: int | onnx_ir.SymbolicDim, names: Mapping[str, str]) -> int | str | None:
    if isinstance(dim, int):
        return dim
    if dim.value is None:
        return None
    if dim.value in names and not names.keys() >= set(_WORD.findall(dim.value)):
        return names[dim.value]  # computed from a size that no axis has: 4*s77 without s77
    return _WORD.sub(lambda word: names.get(word[0], word[0]), dim.value)


def _all_values(graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    yield from graph.inputs
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        for attribute in node.attributes.values():
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                yield from attribute.as_graph().inputs
        yield from node.outputs
