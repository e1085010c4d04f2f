"""The ai.onnx.ml operators that changed.

| operator | version | change |
|---|---|---|
| LabelEncoder | 2 | keys and values instead of ``classes_strings`` |
| | 4 | tensors; NaN keys match |
| TreeEnsembleClassifier, -Regressor | 3 | ``*_as_tensor`` attributes, for double |
| | 5 | deprecated for TreeEnsemble |
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended

ML = "ai.onnx.ml"

extended("TreeEnsembleClassifier", 1, 3, domain=ML)
extended("TreeEnsembleRegressor", 1, 3, domain=ML)


@adapter("LabelEncoder", 1, 2, domain=ML)
def classes_as_keys_and_values(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Turn a list of classes into a mapping, in the direction given by the input's type."""
    classes = op.attr("classes_strings", [])
    numbers = list(range(len(classes)))
    op.drop("classes_strings")
    if op.need_dtype(op.x()) == ir.DataType.STRING:
        return op.set(keys_strings=classes, values_int64s=numbers)
    return op.set(keys_int64s=numbers, values_strings=classes)


@adapter("LabelEncoder", 2, 1, domain=ML)
def keys_and_values_as_classes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Only strings and the numbers from 0 on, in order, make a list of classes."""
    strings = op.attr("keys_strings") or op.attr("values_strings")
    numbers = op.attr("values_int64s") or op.attr("keys_int64s")
    if strings is None or numbers != list(range(len(strings))):
        op.refuse("only strings and the numbers from 0 on, in order, could be encoded before version 2")
    op.drop("keys_strings", "values_strings", "keys_int64s", "values_int64s", "default_float")
    return op.set(classes_strings=strings)


@adapter("LabelEncoder", 2, 4, domain=ML)
def keys_that_never_matched(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop a key that is NaN, with its value: it equalled nothing."""
    keys = op.attr("keys_floats", [])
    kept = [index for index, key in enumerate(keys) if not math.isnan(key)]
    if len(kept) == len(keys):
        return None
    if not kept:
        op.refuse("its only key is NaN, which equals nothing before version 4", hint="give it a key that is a number")
    name = next(item for item in ("values_strings", "values_int64s", "values_floats") if op.attr(item))
    values = op.attr(name)
    return op.set(**{"keys_floats": [keys[index] for index in kept], name: [values[index] for index in kept]})


@adapter("LabelEncoder", 4, 2, domain=ML)
def tensors_as_lists(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Lists instead of tensors, for the three types that had lists; a key that is NaN equalled nothing."""
    for name in ("keys_tensor", "values_tensor"):
        tensor = op.attr(name)
        if tensor is not None:
            op.set(**{name.replace("tensor", f"{_suffix(op, name, tensor)}s"): _listed(tensor)})
            op.drop(name)
    default = op.attr("default_tensor")
    if default is not None:
        op.set(**{f"default_{_suffix(op, 'default_tensor', default)}": _listed(default)[0]})
        op.drop("default_tensor")
    if any(math.isnan(key) for key in op.attr("keys_floats", [])):
        op.refuse("a key that is NaN matches nothing before version 4", hint="give it a key that is a number")


_LISTED = {ir.DataType.FLOAT: "float", ir.DataType.INT64: "int64", ir.DataType.STRING: "string"}
"""The element types that had lists before version 4."""


def _suffix(op: OpBuilder, name: str, tensor: ir.TensorProtocol) -> str:
    if tensor.dtype not in _LISTED:
        op.refuse(f"{name} of {tensor.dtype.name.lower()} is not expressible before version 4")
    return _LISTED[tensor.dtype]


def _listed(tensor: ir.TensorProtocol) -> list[Any]:
    values = tensor.numpy().ravel().tolist()
    return [value.decode() if isinstance(value, bytes) else value for value in values]


def lists_only(op: OpBuilder, node: ir.Node) -> Replacement:
    """Float lists instead of tensors; doubles would lose digits."""
    for name in [item for item in node.attributes if item.endswith("_as_tensor")]:
        array = op.attr(name).numpy().ravel()
        if array.dtype.name != "float32":
            op.refuse(f"{name} of {array.dtype.name} is not expressible before version 3")
        op.set(**{name.removesuffix("_as_tensor"): array.tolist()})
        op.drop(name)


for _name in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
    adapter(_name, 3, 1, domain=ML)(lists_only)
