"""The ai.onnx.ml operators that changed.

| operator | version | change |
|---|---|---|
| LabelEncoder | 2 | keys and values instead of ``classes_strings`` |
| | 4 | tensors; NaN keys match |
| TreeEnsembleClassifier, -Regressor | 3 | ``*_as_tensor`` attributes, for double |
| | 5 | deprecated for TreeEnsemble |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended, impossible

ML = "ai.onnx.ml"

extended("LabelEncoder", 2, 4, domain=ML)
extended("TreeEnsembleClassifier", 1, 3, domain=ML)
extended("TreeEnsembleRegressor", 1, 3, domain=ML)
impossible("TreeEnsemble", 5, 0, "its two older operators take other leaves", domain=ML)


@adapter("LabelEncoder", 1, 2, domain=ML)
def classes_as_keys_and_values(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A list of classes is a mapping in the direction that the input's type says."""
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


@adapter("LabelEncoder", 4, 2, domain=ML)
def tensors_as_lists(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Lists instead of tensors, for the three types that had lists."""
    for name in ("keys_tensor", "values_tensor"):
        tensor = op.attr(name)
        if tensor is not None:
            array = tensor.numpy().ravel()
            suffix = {"float32": "floats", "int64": "int64s", "object": "strings"}.get(array.dtype.name)
            if suffix is None:
                op.refuse(f"{name} of {array.dtype.name} is not expressible before version 4")
            op.set(**{name.replace("tensor", suffix): array.tolist()})
            op.drop(name)
    default = op.attr("default_tensor")
    if default is not None:
        value = default.numpy().ravel()[0]
        suffix = {"float32": "float", "int64": "int64"}.get(default.numpy().dtype.name, "string")
        op.set(**{f"default_{suffix}": value if suffix == "string" else value.item()})
        op.drop("default_tensor")


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
