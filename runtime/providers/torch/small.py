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
    nodes = list(_nodes(part))
    values = [*part.inputs, *(value for node in nodes for value in node.outputs if value.name)]
    return (
        all(map(_is_cheap, nodes))
        and all(_is_light(value) for node in nodes for value in node.inputs)
        and all(_has_few(type_of(value)) for value in values)
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


def _has_few(known: Type | None) -> bool:
    if known is None or known.dtype not in _ELEMENTS or known.shape is None:
        return False
    sizes = [size for size in known.shape if isinstance(size, int)]
    return len(sizes) == len(known.shape) and math.prod(sizes) <= MOST


def _is_light(value: ir.Value | None) -> bool:
    tensor = None if value is None else value.const_value
    return tensor is None or tensor.size <= MOST_GIVEN
