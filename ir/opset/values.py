"""One query for "is this value known?": constants, weights, and chains that fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.folding import FOLDS, elements_made

Array: TypeAlias = np.ndarray[Any, Any]

INITIALIZERS_ARE_INPUTS = 3
"""Up to this IR version every initializer has to be a graph input as well."""

LIMIT = 1 << 16
"""In elements; larger tensors are weights, which no adapter has to read."""

_TENSORS = (ir.AttributeType.TENSOR, ir.AttributeType.SPARSE_TENSOR)

_EXTENTS = ("Shape", "Size")

_CHOOSING = ("Gather", "Slice")
"""Operators that may leave out the sizes that are not fixed."""

DEPTH = 64
"""Nodes in a foldable chain."""


class Shapes(Protocol):
    """Who tells the shapes of values, which may depend on what is known here."""

    def shape(self, value: ir.Value | None) -> ir.Shape | None:
        """The shape, or ``None`` when not even the rank is known."""


class Known:
    """What is known about the values of a model without running it.

    Args:
        ir_version: Of the model; up to IR 3 the format forces initializers to be inputs, later it means "may be fed".
    """

    def __init__(self, ir_version: int) -> None:
        self.ir_version = ir_version
        self._inputs_may_be_fed = ir_version > INITIALIZERS_ARE_INPUTS
        self._memo: dict[ir.Value, Array] = {}
        self.types: Shapes | None = None

    def array(self, value: ir.Value | None, depth: int = DEPTH) -> Array | None:
        """The value, or ``None`` when it is absent, not known, or larger than an adapter may read."""
        if value is None:
            return None
        found = self._memo.get(value)
        if found is None:
            found = self._read(value, depth)
            if found is not None:
                self._memo[value] = found
        return found

    def _read(self, value: ir.Value, depth: int) -> Array | None:
        if value.is_initializer():
            fed = value.is_graph_input() and self._inputs_may_be_fed
            return None if fed else _small(value.const_value)
        node = value.producer()
        if node is None or node.domain or depth == 0:
            return None
        if node.op_type == "Constant":
            return constant(node)
        if node.op_type in _EXTENTS:
            return self._extent(node)
        return self._fold(node, value, depth)

    def _extent(self, node: ir.Node) -> Array | None:
        sizes = _settled(self._sizes(node))
        return np.asarray(sizes.prod(), np.int64) if sizes is not None and node.op_type == "Size" else sizes

    def _sizes(self, node: ir.Node | None) -> Array | None:
        """What a Shape returns, or a Size multiplies, as objects: ``None`` is a size that is not fixed."""
        if node is None or node.domain or node.op_type not in _EXTENTS or self.types is None:
            return None
        shape = self.types.shape(node.inputs[0])
        if shape is None or any(attr.is_ref() for attr in node.attributes.values()):
            return None
        start, end = (node.attributes.get_int(name, default) for name, default in (("start", 0), ("end", len(shape))))
        return np.array([dim if isinstance(dim, int) else None for dim in shape], object)[start:end]

    def _fold(self, node: ir.Node, value: ir.Value, depth: int) -> Array | None:
        fold: Callable[..., Any] | None = FOLDS.get(node.op_type)
        if fold is None or value.index() != 0 or any(attr.is_ref() for attr in node.attributes.values()):
            return None
        inputs: list[Array | None] = []
        sizes = self._sizes(node.inputs[0].producer()) if node.op_type in _CHOOSING and node.inputs[0] else None
        for item in node.inputs:  # stop at the first unknown one: asking for all would walk every path back
            inputs.append(self.array(item, depth - 1) if sizes is None or inputs else sizes)
            if item is not None and inputs[-1] is None:
                return None
        try:
            if elements_made(node.op_type, inputs) > LIMIT:
                return None
            with np.errstate(all="ignore"):  # a folded quotient by 0 is as infinite as a computed one
                result = fold(*inputs, **{name: attr.value for name, attr in node.attributes.items()})
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ):  # a form that folding does not cover
            return None
        if np.size(result) > LIMIT:
            return None
        return np.asarray(result) if sizes is None else _settled(np.asarray(result))


def _settled(sizes: Array | None) -> Array | None:
    """Sizes as integers, if all of them are fixed."""
    return None if sizes is None or any(size is None for size in sizes.flat) else sizes.astype(np.int64)


def constant(node: ir.Node) -> Array | None:
    """What a Constant node holds, in any of its attribute forms; ``None`` for a reference to a function's attribute."""
    for name, attr in node.attributes.items():
        if attr.is_ref():
            return None
        if name in ("value", "sparse_value"):
            return _small(attr.value if attr.type in _TENSORS else None)  # isinstance with a protocol is slow
        return constant_array(name, attr.value)
    return None


def constant_array(form: str, value: Any) -> Array:
    """What a Constant holds whose attribute ``form`` has this value: an array, or Python numbers or strings."""
    return np.array(value, _FORMS[form]) if form in _FORMS else np.asarray(value)


_FORMS: dict[str, Any] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def _small(tensor: Any) -> Array | None:
    if tensor is None or tensor.size > LIMIT:
        return None
    return np.asarray(tensor.numpy())
