"""What a model says about where it came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir

import entrepot
from entrepot.exporters.containers import is_plain
from entrepot.exporters.exporter import Source
from entrepot.exporters.options import Options
from entrepot.exporters.tree import Constant, Container, Flat, Leaf, Shared, Size, Tree, below, constants, leaves


def describe_model(
    model: onnx_ir.Model, source: Source, result: Flat, inputs: Sequence[str], outputs: Sequence[str]
) -> None:
    """Record in the file what it was made from, and the structure of its flat inputs and outputs."""
    model.producer_name, model.producer_version = "entrepot", entrepot.__version__
    model.graph.name = source.name
    names = dict(zip((leaf.name for leaf in leaves(source.call.tree)), inputs, strict=True))
    result_names = dict(zip((leaf.name for leaf in leaves(result.tree)), outputs, strict=True))
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    model.metadata_props["entrepot.framework"] = source.framework
    model.metadata_props["entrepot.class"] = source.origin
    model.metadata_props["entrepot.structure"] = structure_json(source.call.tree, result.tree, names, result_names)


def describe_modes(model: onnx_ir.Model, options: Options) -> None:
    """Record in the file how its source was called, as far as that was asked for."""
    asked = {name: getattr(options, name) for name in _MODES if getattr(options, name) != getattr(Options, name)}
    if asked:
        model.metadata_props["entrepot.modes"] = json.dumps(asked)


def modes_in(metadata: Mapping[str, str]) -> Options:
    """How the source of a model was called, according to its description."""
    try:
        found = json.loads(metadata.get("entrepot.modes", "{}"))
        return Options(**{name: value for name, value in found.items() if name in _MODES})
    except (ValueError, AttributeError):
        return Options()  # not one of ours


_MODES = ("state", "random", "training", "strings")


def numbers_in(metadata: Mapping[str, str], result: Flat) -> frozenset[str]:
    """Which numbers of a result are outputs of a model, according to its description of the structure."""
    try:
        described = {*_described(json.loads(metadata.get("entrepot.structure", "{}"))["outputs"], "")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return frozenset()  # not one of ours: its outputs are tensors
    return frozenset(place.name for place in constants(result.tree) if place.name in described)


def structure_json(inputs: Tree, outputs: Tree, input_names: Mapping[str, str], output_names: Mapping[str, str]) -> str:
    """The structure of inputs and outputs as JSON, for a model's metadata; the names map paths to graph names."""
    return json.dumps({"inputs": _describe(inputs, input_names), "outputs": _describe(outputs, output_names)})


def _described(part: Mapping[str, Any], path: str) -> Iterator[str]:
    """The paths of tensors."""
    kind, content = next(iter(part.items()))
    if kind == "tensor":
        yield path
    elif kind not in ("constant", "size", "shared"):
        for key, child in content:
            yield from _described(child, below(path, key))


def _describe(tree: Tree, names: Mapping[str, str]) -> Any:
    match tree:
        case Leaf(name=name):
            return {"tensor": names[name]}
        case Constant(value=value):
            return {"constant": _plain(value)}
        case Size(index=index, axis=axis):
            return {"size": [index, axis]}
        case Shared(path=path):
            return {"shared": path}
        case Container(kind, prototype, children):
            if kind == "object" and not any(leaves(tree)):
                return {"constant": _class(prototype)}
            items = [[key if isinstance(key, int) else str(key), _describe(child, names)] for key, child in children]
            described: dict[str, Any] = {kind: items}
            if not is_plain(prototype):
                described["type"] = _class(prototype)
            return described


def _plain(value: Any) -> Any:
    """A constant that JSON has, or text that says the same in every process."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    text = repr(value)
    return _class(value) if " at 0x" in text else text


def _class(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"
