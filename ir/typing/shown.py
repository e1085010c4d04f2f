"""What shape inference is shown of a node. Where that is the same for two nodes, only the first is shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
from onnx_ir import AttributeType as A

from entrepot.ir.opset.schemas import canonical
from entrepot.ir.opset.values import Known
from entrepot.ir.table import OpKey
from entrepot.ir.traits import host_operands
from entrepot.ir.typing.spec import Spec

SHOWN = 1024
"""Elements of a known input that is shown to shape inference: shapes, axes, sizes."""

_PLAIN = {A.INT, A.FLOAT, A.STRING, A.INTS, A.FLOATS, A.STRINGS}


class Shown(NamedTuple):
    """What is known of a node's inputs, in their order: type and shape, and the value where it is small and known."""

    specs: tuple[Spec | None, ...]
    arrays: tuple[np.ndarray[Any, Any] | None, ...]


def show(node: ir.Node, version: int, known: Known, spec_of: Callable[[ir.Value], Spec]) -> Shown:
    """Look at the inputs of a node.

    Args:
        node: The node.
        version: The since-version that gives it its meaning.
        known: Tells whether an input is constant, since shapes may depend on it.
        spec_of: Gives what is known of an input.
    """
    specs = tuple(None if value is None else spec_of(value) for value in node.inputs)
    telling = host_operands(OpKey(canonical(node.domain), node.op_type, version))
    arrays = (
        _small(known.array(value)) if index or index in telling else None for index, value in enumerate(node.inputs)
    )
    return Shown(specs, tuple(arrays))


def _small(array: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any] | None:
    return array if array is not None and array.size <= SHOWN and array.dtype.kind in "iufb" else None


def likeness(node: ir.Node, version: int, shown: Shown) -> Hashable | None:
    """Equal for nodes whose outputs have the same types and shapes; ``None`` where that takes inference to say."""
    attributes = node.attributes.data.values()
    if any(attribute.type not in _PLAIN or attribute.is_ref() for attribute in attributes):
        return None
    kinds = [None if spec is None else _kind(spec) for spec in shown.specs]
    if () in kinds:
        return None
    return (
        node.domain, node.op_type, version, tuple(bool(output.name) for output in node.outputs), *kinds, "with",
        *[None if array is None else (array.dtype.str, array.shape, array.tobytes()) for array in shown.arrays], "and",
        *[(attribute.name, attribute.type, attribute.value) for attribute in attributes],
    )  # fmt: skip


def _kind(spec: Spec) -> tuple[Hashable, ...]:
    """Type and sizes; empty where they are not those of a plain tensor."""
    if type(spec.type) is not ir.TensorType or spec.type.denotation:
        return ()
    return spec.type.dtype, None if spec.shape is None else tuple(map(_size, spec.shape))


def _size(dim: int | ir.SymbolicDim) -> int | str | None:
    return dim if isinstance(dim, int) else dim.value
