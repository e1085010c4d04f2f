"""How many nodes ``torch.onnx.export`` writes for a model of the zoo, as a measure for ours."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import onnx_ir
import torch

import entrepot as ep
from entrepot.models_zoo import ZooModel


def operators(model: onnx_ir.Model) -> Counter[str]:
    """How often each operator occurs, also inside branches, loops and functions."""
    scopes = (model.graph, *model.functions.values())
    return Counter(node.op_type for scope in scopes for node in scope.all_nodes())


def export_torch(zoo: ZooModel, like: ep.Model) -> onnx_ir.Model:
    """What ``torch.onnx.export`` makes of a model of the zoo, with the axes dynamic that are dynamic in ``like``.

    It runs with ``dynamo=True`` and its own optimizer, as it does by default.

    Raises:
        torch.onnx.OnnxExporterError: It cannot export the model.
    """
    sample = zoo.samples[-1]  # torch.export fixes axes whose size is 1
    args, kwargs = ((), sample) if isinstance(sample, dict) else (sample, {})
    tensors, structure = torch.utils._pytree.tree_flatten((args, kwargs))
    axes = [_dynamic(spec) for spec in like.inputs]
    assert len(tensors) == len(axes)
    shapes: Any = torch.utils._pytree.tree_unflatten(axes, structure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            zoo.module, args, kwargs=kwargs, dynamo=True, verbose=False, dynamic_shapes=shapes[1 if kwargs else 0]
        )
    assert program is not None
    return program.model


def _dynamic(spec: Any) -> dict[int, Any]:
    return {axis: torch.export.Dim.AUTO for axis, dim in enumerate(spec.shape) if not isinstance(dim, int)}
