"""Users' operators in a module: computed by their Python function, captured as one node of their domain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir
import torch

from entrepot.exporters.torch.arrays import TORCH
from entrepot.ir.errors import InputError
from entrepot.ir.operators import Definition, Shaped, defined, in_force
from entrepot.ir.table import OpKey

_library = torch.library.Library("entrepot", "FRAGMENT")
_library.define("python(Tensor?[] inputs, str operator, str attributes) -> Tensor[]")

_KINDS = """
bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
"""
_DTYPES: list[torch.dtype] = [getattr(torch, name) for name in _KINDS.split()]
_NUMPY = {kind: TORCH.to_numpy(torch.empty(0, dtype=kind)).dtype for kind in _DTYPES}
_TORCH = {numpy: kind for kind, numpy in _NUMPY.items()}


def call(definition: Definition, args: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """A tensor, or a tuple of all where there are several."""
    inputs = [each if each is None or isinstance(each, torch.Tensor) else torch.as_tensor(each) for each in args]
    stated = json.dumps({**definition.attributes, **attributes})
    results = torch.ops.entrepot.python(inputs, json.dumps(definition.key), stated)
    return results[0] if definition.outputs == 1 else tuple(results)


def _definition(operator: str) -> Definition:
    found = defined(OpKey(*json.loads(operator)))
    if found is None:
        raise InputError(f"{'::'.join(map(str, json.loads(operator)[:2]))} is no longer registered")
    return found


def _run(inputs: Sequence[torch.Tensor | None], operator: str, attributes: str) -> list[torch.Tensor]:
    definition = _definition(operator)
    arrays = [None if each is None else TORCH.to_numpy(each.detach()) for each in inputs]
    results = definition.function(*arrays, **json.loads(attributes))
    return [TORCH.from_numpy(each.copy()) for each in definition.checked(results, arrays, json.loads(attributes))]


def _shapes(inputs: Sequence[torch.Tensor | None], operator: str, attributes: str) -> list[torch.Tensor]:
    first = next(each for each in inputs if each is not None)
    given = [None if each is None else Shaped(tuple(each.shape), _NUMPY[each.dtype]) for each in inputs]
    results = _definition(operator).shapes(given, json.loads(attributes))
    return [first.new_empty(each.shape, dtype=_TORCH[each.dtype]) for each in results]


_library.impl("python", _run, "CPU")
torch.library.register_fake("entrepot::python", _shapes, lib=_library)


def as_node(inputs: Sequence[torch.Tensor | None], operator: str, attributes: str) -> Sequence[torch.Tensor]:
    """A node of the operator's domain, in the captured graph."""
    domain, op_type, since = json.loads(operator)
    results = _shapes(inputs, operator, attributes)
    given = list(inputs)
    while given and given[-1] is None:
        given.pop()
    return torch.onnx.ops.symbolic_multi_out(
        f"{domain}::{op_type}",
        given,
        json.loads(attributes),
        dtypes=[each.dtype for each in results],
        shapes=[tuple(each.shape) for each in results],
        version=since,
    )


def add_bodies(model: onnx_ir.Model) -> None:
    """Write the function of every user's operator that has one into the file."""
    for node in list(onnx_ir.traversal.RecursiveGraphIterator(model.graph)):
        if not node.domain:
            continue
        version = model.graph.opset_imports.setdefault(node.domain, node.version or 1)
        definition = in_force(node.domain, node.op_type, version)
        if definition is not None and definition.body and node.op_identifier() not in model.functions:
            function = onnx_ir.serde.deserialize_function(onnx.parser.parse_function(definition.body))
            model.functions[function.identifier()] = function
            for name, opset in function.opset_imports.items():
                model.graph.opset_imports.setdefault(name, opset)


DECOMPOSITIONS = {torch.ops.entrepot.python.default: as_node}
