"""Matrix products.

| Gemm | change |
|---|---|
| 7 | C broadcasts without being asked |
| 11 | C is optional |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended, unchanged

unchanged("MatMul", 1, 9, 13)
unchanged("Gemm", 1, 6)
unchanged("Gemm", 7, 9)
unchanged("Gemm", 11, 13)
extended("Gemm", 9, 11)


@adapter("Gemm", 6, 7)
def gemm_broadcasts(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Broadcasting needs no attribute."""
    return op.drop("broadcast")


@adapter("Gemm", 7, 6)
def gemm_asks_to_broadcast(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Ask for broadcasting, which covers equal shapes too."""
    return op.set(broadcast=1)


@adapter("Gemm", 11, 9)
def gemm_with_zero_bias(op: OpBuilder, _node: ir.Node) -> Replacement:
    """An absent C is a zero of the operands' type."""
    if op.input(2) is None:
        op.inputs(op.x(0), op.x(1), op.const(0, like=op.x(0)))
