"""What a model says about where it came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir

import entrepot
from entrepot.exporters.exporter import Source
from entrepot.exporters.structure import Constant, Flat, leaves, places, structure_json


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
