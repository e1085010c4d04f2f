"""Lookup tables, whose entries are those that they have when they are exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.dtypes import onnx_type
from entrepot.exporters.tensorflow.flow.variables import Handle
from entrepot.exporters.tensorflow.node import Node, known
from entrepot.exporters.tensorflow.table import translates


@translates("LookupTableFindV2", "LookupTableFind", handles=True)
def find(node: Node, build: Builder, table: Handle, keys: ir.Value, default: ir.Value) -> Any:
    """What a table has for each key."""
    missing = known(default)
    if missing is None or missing.size != 1:
        node.refuse("has a default that is not known before a run")
    names, values = _entries(node, table)
    if not len(names):
        shape = build.shape(keys)
        return build.op("Expand", default, shape)
    found = build.op(
        "LabelEncoder",
        _plain(build, keys, names),
        domain="ai.onnx.ml",
        **_attributes("keys", names),
        **_attributes("values", values),
        **_default(missing, values),
    )
    return build.cast(found, onnx_type(node.result_dtype()))


@translates("LookupTableSizeV2", "LookupTableSize", handles=True)
def size(node: Node, build: Builder, table: Handle) -> Any:
    """How many entries there are."""
    return build.constant(np.array(tf.raw_ops.LookupTableSizeV2(table_handle=table.tensor).numpy(), np.int64))


def _entries(node: Node, table: Handle) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    types = node.operation.get_attr("Tin"), node.operation.get_attr("Tout")
    try:
        keys, values = tf.raw_ops.LookupTableExportV2(table_handle=table.tensor, Tkeys=types[0], Tvalues=types[1])
    except (tf.errors.AbortedError, tf.errors.FailedPreconditionError):
        node.refuse("reads a table that nothing has filled: make it outside of the function")
    return texts(keys.numpy()), texts(values.numpy())


def _plain(build: Builder, keys: ir.Value, names: np.ndarray[Any, Any]) -> ir.Value:
    return keys if names.dtype.kind == "O" else build.cast(keys, np.float32 if names.dtype.kind == "f" else np.int64)


_WORDS = {"O": "strings", "f": "floats"}


def _attributes(what: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    word = _WORDS.get(array.dtype.kind, "int64s")
    convert = {"strings": str, "floats": float, "int64s": int}[word]
    return {f"{what}_{word}": [convert(each) for each in array.ravel()]}


def _default(missing: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> dict[str, Any]:
    value = texts(missing).item()
    word = {"O": "default_string", "f": "default_float"}.get(values.dtype.kind, "default_int64")
    return {word: value if isinstance(value, str) else float(value) if word == "default_float" else int(value)}
