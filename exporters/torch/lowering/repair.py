"""What torch.onnx returns, as the pipeline takes it: annotated, inlined, with weights named."""

from __future__ import annotations

import re
from pathlib import Path

import onnx_ir
import torch
from onnx_ir.passes import common

from entrepot.exporters import structure
from entrepot.exporters.torch.lowering.operators import add_bodies
from entrepot.exporters.torch.quantised.stored import dequantise_by_node
from entrepot.exporters.torch.quantised.weight_only import keep_exact
from entrepot.ir.opset.names import Names
from entrepot.ir.subgraphs import with_subgraphs

_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(structure.__file__).parent)
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')


def repair(model: onnx_ir.Model, module: torch.nn.Module) -> None:
    """Annotate ``model`` in place, inline it, name its weights, and give operators of users their bodies."""
    _annotate(model)
    common.InlinePass()(model)
    _name_weights(model, module)
    dequantise_by_node(model)
    keep_exact(model)
    add_bodies(model)


def source_of(stack_trace: str) -> str:
    """``net.py:12``: the user's innermost line of a torch stack trace, or torch's own when there is no other."""
    frames = [match.groups() for match in _FRAME.finditer(stack_trace) if not match[1].startswith(_OURS)]
    mine = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    for path, line, _ in reversed(mine or frames):
        return f"{Path(path).name}:{line}"
    return ""


def _annotate(model: onnx_ir.Model) -> None:
    """Keep the origin of a node in two short keys; torch's own annotations are larger than the graph."""
    graphs: list[onnx_ir.Graph | onnx_ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
            origin = node.meta.get("node")
            node.metadata_props.clear()
            for value in node.outputs:
                value.metadata_props.clear()
            if origin is None:
                continue
            notes = {
                "entrepot.module": _module_path(origin),
                "entrepot.source": source_of(origin.meta.get("stack_trace") or ""),
            }
            node.metadata_props.update({key: text for key, text in notes.items() if text})
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        value.metadata_props.clear()


def _module_path(origin: torch.fx.Node) -> str:
    stack = origin.meta.get("nn_module_stack") or {}
    path = next((name for name, _ in reversed(stack.values())), "")
    return re.sub(r"^(L\['self'\]\.?|module\.?|_empty_nn_module_stack_from_metadata_hook)", "", str(path)).removeprefix(
        "module."
    )


def _name_weights(model: onnx_ir.Model, module: torch.nn.Module) -> None:
    """Name weights as ``module.named_parameters()`` does; one that several parts share gets its first name there.

    During the capture the user's module is a child of ours, so the names begin with ``module.`` at first.
    """
    names = {id(tensor): name for name, tensor in (*module.named_buffers(), *module.named_parameters())}
    _make_room(model, frozenset(names.values()))
    for value in list(model.graph.initializers.values()):
        tensor = value.const_value
        first = names.get(id(getattr(tensor, "raw", None)), (value.name or "").removeprefix("module."))
        twin = model.graph.initializers.get(first)
        if twin is not None and twin is not value:
            value.replace_all_uses_with(twin)
            del model.graph.initializers[str(value.name)]
            continue
        value.name = first
        if tensor is not None:
            tensor.name = first
    _note_roles(model, module)


def _make_room(model: onnx_ir.Model, wanted: frozenset[str]) -> None:
    """Give what is computed other names than weights are to have: ``val_1`` may be the name of a buffer, too."""
    names = Names(model)
    for graph in with_subgraphs(model.graph):
        inputs = () if graph is model.graph else graph.inputs
        for value in (*inputs, *(value for node in graph for value in node.outputs)):
            while value.name in wanted:
                value.name = names.fresh(value.name)


def _note_roles(model: onnx_ir.Model, module: torch.nn.Module) -> None:
    """Say what weights were to the module, which an importer cannot tell from their names."""
    saved = module.state_dict(keep_vars=True)
    roles = {name: "buffer" if name in saved else "unsaved" for name, _ in module.named_buffers()}
    roles |= {name: "parameter" for name, _ in module.named_parameters()}
    for name, value in model.graph.initializers.items():
        if role := roles.get(name):
            value.metadata_props["entrepot.role"] = role
