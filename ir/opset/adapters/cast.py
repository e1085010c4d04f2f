"""Conversions of element type.

| Cast | change |
|---|---|
| 6 | ``to`` is a number, not a name |
| 9 | strings |
| 13 | bfloat16 |
| 19 | float8, ``saturate`` |
| 24 | ``round_mode`` for float8e8m0 |
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, decomposition, extended, impossible, unchanged

unchanged("Cast", 9, 13)
unchanged("Cast", 19, 21, 23)
unchanged("Cast", 24, 25, 28)
unchanged("CastLike", 19, 21, 23)
unchanged("CastLike", 24, 25)
impossible("BitCast", 26, 0, "no operator reinterpreted bits before opset 26")
extended("Cast", 6, 9)


def only_narrow_types(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The attributes concern float8 only; for other types they are dropped, whatever they say."""
    names = [dtype.name for dtype in (op.dtype(op.x()), op.dtype(op.node.outputs[0])) if dtype is not None]
    if len(names) < 2 or any(name.startswith("FLOAT8") for name in names):
        op.refuse("saturation and rounding of float8 are not expressible there")
    return op.drop("saturate" if op.since == 19 else "round_mode")


for _name, _older in (("Cast", 13), ("CastLike", 15)):
    added(_name, _older, 19, saturate=1, otherwise=only_narrow_types)
    added(_name, 23, 24, round_mode="up", otherwise=only_narrow_types)


@adapter("Cast", 1, 6)
def cast_target_as_number(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The name of the type becomes its number."""
    name = str(op.attr("to")).upper()
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 - not a dict
        op.refuse(f"to='{name}' is no element type")
    op.drop("to")
    return op.set(to=onnx.TensorProto.DataType.Value(name))


@adapter("Cast", 6, 1)
def cast_target_as_name(op: OpBuilder, node: ir.Node) -> Replacement:
    """The number of the type becomes its name, from which onnx infers no type: that is written down."""
    to = ir.DataType(op.attr("to"))
    op.drop("to")
    node.attributes.add(ir.AttrString("to", to.name))
    node.outputs[0].type = node.outputs[0].type or ir.TensorType(to)


@adapter("Cast", 9, 6)
def cast_without_strings(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Keep, except for strings, which were not converted."""
    if ir.DataType.STRING in (op.dtype(op.x()), ir.DataType(op.attr("to"))):
        op.refuse("strings are not cast before version 9")


@decomposition("CastLike", 15)
def cast_like(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Cast to the second input's element type, which has to be known."""
    return op.Cast(op.x(), to=int(op.need_dtype(op.x(1))))
