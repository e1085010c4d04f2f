"""Rows written, added and so on at indices. What lies out of range is an error in TensorFlow on CPU."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.building import Builder
from entrepot.exporters.kernels import KINDS, wider
from entrepot.exporters.tensorflow.flow.variables import Handle
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number
from entrepot.exporters.tensorflow.sizes import int64
from entrepot.exporters.tensorflow.table import translates

_REDUCTIONS = {"Update": None, "Add": "add", "Sub": "add", "Max": "max", "Min": "min"}
_IN_ROWS = {**_REDUCTIONS, "Mul": "mul"}


@translates(*(f"TensorScatter{name}" for name in _REDUCTIONS))
def tensor_scatter(node: Node, build: Builder, x: Any, indices: Any, updates: Any) -> Any:
    """Into a tensor."""
    return _written(build, x, indices, updates, node.op.removeprefix("TensorScatter"))


def _written(build: Builder, x: Any, indices: Any, updates: Any, how: str) -> Any:
    updates = computed(build, "Sub", number(build, 0, updates), updates) if how == "Sub" else updates
    return scattered(build, x, int64(build, indices), updates, _IN_ROWS[how])


@translates(*(f"ResourceScatterNd{name}" for name in _REDUCTIONS), handles=True)
def variable_scatter(node: Node, build: Builder, handle: Handle, indices: Any, updates: Any) -> Any:
    """Into a variable."""
    how = node.op.removeprefix("ResourceScatterNd")
    return handle.assign(node, build, _written(build, handle.read(build), indices, updates, how))


@translates(*(f"ResourceScatter{name}" for name in _IN_ROWS), handles=True)
def variable_rows(node: Node, build: Builder, handle: Handle, indices: Any, updates: Any) -> Any:
    """Into rows of a variable; one number is meant for all of them."""
    x = handle.read(build)
    if node.shape(2) == ():
        shape = build.op("Concat", build.shape(indices), build.shape(x, 1), axis=0)
        updates = computed(build, "Expand", updates, shape)
    rows = build.op("Unsqueeze", int64(build, indices), [-1])
    return handle.assign(node, build, _written(build, x, rows, updates, node.op.removeprefix("ResourceScatter")))


@translates("ScatterNdNonAliasingAdd")
def scatter_add(node: Node, build: Builder, x: Any, indices: Any, updates: Any) -> Any:
    """Into a tensor, added."""
    return scattered(build, x, int64(build, indices), updates, "add")


@translates("ScatterNd")
def scatter_nd(node: Node, build: Builder, indices: Any, updates: Any, shape: Any) -> Any:
    """Into zeros, added."""
    zeros = computed(build, "Expand", number(build, 0, updates), int64(build, shape))
    return scattered(build, zeros, int64(build, indices), updates, "add")


@translates("InplaceUpdate", "InplaceAdd", "InplaceSub")
def at_rows(node: Node, build: Builder, x: Any, rows: Any, value: Any) -> Any:
    """Along the first axis."""
    index = build.op("Unsqueeze", int64(build, rows), [-1])
    if node.op == "InplaceSub":
        value = computed(build, "Sub", number(build, 0, value), value)
    return scattered(build, x, index, value, None if node.op == "InplaceUpdate" else "add")


def scattered(build: Builder, x: Any, indices: Any, updates: Any, reduction: str | None) -> Any:
    """``ScatterND``; halves are added up in float32."""
    wide = wider(x.dtype, KINDS["ScatterND"]) if reduction else x.dtype
    rows = (build.cast(each, wide) for each in (x, updates))
    data, added = rows
    return build.cast(build.op("ScatterND", data, indices, added, reduction=reduction), x.dtype)
