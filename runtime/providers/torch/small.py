"""Parts so small that calling torch takes longer than the arithmetic.

A call of torch takes about a microsecond however little there is to do, and one of NumPy a third of that. On the host
both work on the same memory, so nothing is lost where NumPy's kernels run such a part as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import onnx_ir as ir

from entrepot.ir.traits import traits
from entrepot.ir.typing.plain import Type

MOST = 1024
"""Elements of a result; on more, torch's exponentials and loops are worth their call."""

MOST_GIVEN = 1 << 16
"""Elements of a constant: a product by more is bound by memory, whoever computes it."""

_PRODUCTS = frozenset({"MatMul", "Gemm"})
_ELEMENTS = frozenset({ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL})


def is_small(part: ir.GraphView, type_of: Callable[[ir.Value], Type | None]) -> bool:
    """Whether every result is certainly small, and made by arithmetic, by movement or by a product of matrices."""
    given = [value for value in part.inputs if value is not None]
    return (
        all(_is_cheap(node) for node in _nodes(part))
        and _are_small(given, type_of)
        and all(_are_small(node.outputs, type_of) and all(map(_is_light, node.inputs)) for node in _nodes(part))
    )


def _nodes(graph: Iterable[ir.Node]) -> Iterator[ir.Node]:
    for node in graph:
        yield node
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _nodes(attribute.as_graph())


def _is_cheap(node: ir.Node) -> bool:
    known = traits(node.domain, node.op_type)
    return not node.domain and (
        known.elementwise or known.moves or known.control_flow or node.op_type in {*_PRODUCTS, "Constant", "Softmax"}
    )


def _are_small(values: Iterable[ir.Value], type_of: Callable[[ir.Value], Type | None]) -> bool:
    return all(_is_small(type_of(value)) for value in values if value.name)


def _is_small(known: Type | None) -> bool:
    if known is None or known.dtype not in _ELEMENTS or known.shape is None:
        return False
    return all(isinstance(size, int) for size in known.shape) and math.prod(known.shape) <= MOST  # type: ignore[arg-type]


def _is_light(value: ir.Value | None) -> bool:
    tensor = None if value is None else value.const_value
    return tensor is None or tensor.size <= MOST_GIVEN
