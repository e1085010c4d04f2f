"""What must hold for the values of a model's inputs: checked by the graph itself, as ``size_checks`` does for sizes.

Each output is returned through a check (``exporters/checks.py``), so that no runtime returns one where a check fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import onnx_ir

from entrepot.exporters.checks import CheckWriter
from entrepot.exporters.exporter import Required

_KEY = "entrepot.required"


def require_values(model: onnx_ir.Model, wanted: Sequence[Required]) -> None:
    """Make checks of the last outputs of a graph, which are truths.

    Args:
        model: Changed in place; those outputs are taken away.
        wanted: What each of them has to be, and the line that decides by it, for the name of its node.
    """
    if not wanted:
        return
    graph = model.graph
    kept = len(graph.outputs) - len(wanted)
    conditions = list(graph.outputs)[kept:]
    del graph.outputs[kept:]
    writer = CheckWriter(graph)
    zeros = [
        writer.zero_unless(writer("Not", condition) if holds else condition, f"{line} to be {holds}")
        for condition, (line, holds) in zip(conditions, wanted, strict=True)
    ]
    total = writer.total(zeros)
    for at, value in enumerate(list(graph.outputs)):
        graph.outputs[at] = writer.guarded(value, total)
    graph.extend(writer.nodes)


def state_required(model: onnx_ir.Model, wanted: Sequence[Required]) -> None:
    """Write into the file what its graph checks."""
    if wanted:
        model.metadata_props[_KEY] = json.dumps(wanted)


def required_in(metadata: Mapping[str, str]) -> list[Required]:
    """What a file says that its graph checks; nothing where it is not one of ours."""
    try:
        return [Required(str(line), bool(holds)) for line, holds in json.loads(metadata.get(_KEY, "[]"))]
    except (ValueError, TypeError, RecursionError):
        return []
