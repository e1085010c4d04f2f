"""The in-place hint ``consumed_inputs`` of opset 1, which had no effect on the result."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, keep


def hint_dropped(op_type: str) -> None:
    """Declare that version 6 dropped the optional hint, and may have added element types."""
    adapter(op_type, 1, 6)(_drop)
    adapter(op_type, 6, 1)(keep)


def _drop(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop the in-place hint."""
    return op.drop("consumed_inputs")
