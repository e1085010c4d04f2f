"""How many nodes ``torch.onnx.export`` writes for a model of the zoo, as a measure for ours."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import onnx_ir
import torch

import entrepot as ep
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.traits import traits_of
from entrepot.models_zoo import ZooModel


def operators(model: onnx_ir.Model) -> Counter[str]:
    """How often each operator occurs, also inside branches, loops and functions."""
    scopes = (model.graph, *model.functions.values())
    return Counter(node.op_type for scope in scopes for node in scope.all_nodes())


def operators_of_inputs(model: onnx_ir.Model) -> Counter[str]:
    """The same without what depends on no input: weights that are computed from others, once for a session."""
    given = {each for scope in (model.graph, *model.functions.values()) for each in scope.inputs}
    found: Counter[str] = Counter()
    for scope in (model.graph, *model.functions.values()):
        _count_dependent(scope, given, found)
    return found


def _count_dependent(graph: Any, given: set[onnx_ir.Value | None], found: Counter[str]) -> bool:
    """Count nodes that depend on ``given``, to which their results are added; whether a result of the graph does."""
    for node in graph:
        bodies = list(subgraphs(node))
        given.update(each for body in bodies for each in body.inputs)
        inside = [_count_dependent(body, given, found) for body in bodies]
        if any(each in given for each in node.inputs) or traits_of(node).random or any(inside):
            found[node.op_type] += 1
            given.update(node.outputs)
    return any(each in given for each in graph.outputs)


def export_torch(zoo: ZooModel, like: ep.Model) -> onnx_ir.Model:
    """What ``torch.onnx.export`` makes of a model of the zoo, with the axes dynamic that are dynamic in ``like``.

    Raises:
        torch.onnx.OnnxExporterError: It cannot export the model.
    """
    return torch_export(zoo.module, zoo.samples[-1], like).model  # torch.export fixes axes whose size is 1


def without_caches(module: Any) -> Any:
    """A module of transformers that returns no caches, for which torch.onnx has no form; others as they are."""
    for part in module.modules() if isinstance(module, torch.nn.Module) else ():
        if hasattr(getattr(part, "config", None), "use_cache"):
            part.config.use_cache = False
    return module


def is_plain(sample: Any) -> bool:
    """Whether torch takes a sample apart into tensors and nothing else."""
    return all(isinstance(leaf, torch.Tensor) for leaf in torch.utils._pytree.tree_leaves(sample))


def torch_export(module: Any, sample: Any, like: ep.Model) -> torch.onnx.ONNXProgram:
    """The same for any module; it runs with ``dynamo=True`` and its own optimizer, as it does by default.

    Raises:
        torch.onnx.OnnxExporterError: It cannot export the module.
        ValueError: The sample holds objects that torch does not take apart as we do.
    """
    args, kwargs = ((), sample) if isinstance(sample, dict) else (sample, {})
    tensors, structure = torch.utils._pytree.tree_flatten((args, kwargs))
    axes = [_dynamic(spec) for spec in like.inputs]
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors) or len(tensors) != len(axes):
        raise ValueError("torch takes the sample apart in another way")
    shapes: Any = torch.utils._pytree.tree_unflatten(axes, structure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, args, kwargs=kwargs, dynamo=True, verbose=False, dynamic_shapes=shapes[1 if kwargs else 0]
        )
    assert program is not None
    return program


def _dynamic(spec: Any) -> dict[int, Any]:
    return {axis: torch.export.Dim.AUTO for axis, dim in enumerate(spec.shape) if not isinstance(dim, int)}
