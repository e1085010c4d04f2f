"""Activation functions.

Version 6 dropped ``consumed_inputs`` everywhere. Beyond that:

| operator | version | change |
|---|---|---|
| Selu | 6 | the defaults gained digits |
| PRelu | 7 | the slope broadcasts; before, a 1-D slope was per channel |
| Clip | 11 | bounds are inputs |
| Relu | 14 | integers |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.consumed import hint_dropped
from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended, unchanged

for _name in ("Relu", "LeakyRelu", "Elu", "Sigmoid", "HardSigmoid", "Tanh", "PRelu"):
    hint_dropped(_name)
for _name in ("Elu", "HardSigmoid", "Selu"):
    unchanged(_name, 6, 22)
for _name in ("Sigmoid", "Tanh"):
    unchanged(_name, 6, 13)
for _name in ("Softplus", "Softsign"):
    unchanged(_name, 1, 22)
for _name, _born in (("HardSwish", 14), ("Mish", 18), ("Gelu", 20), ("Swish", 24), ("SwiGLU", 28)):
    expanded(_name, _born)
unchanged("Celu", 12, 28)
unchanged("HardSwish", 14, 22)
unchanged("Mish", 18, 22)
unchanged("LeakyRelu", 6, 16)
unchanged("PRelu", 7, 9, 16)
unchanged("Relu", 6, 13)
unchanged("ThresholdedRelu", 10, 22)
unchanged("Clip", 12, 13)
extended("Clip", 11, 12)
extended("Relu", 13, 14)


@adapter("Relu", 14, 13)
def relu_of_integers(op: OpBuilder, _node: ir.Node) -> Replacement:
    """max(x, 0): Relu takes floats only before version 14."""
    dtype = op.dtype(op.x())
    if dtype is None or dtype.is_floating_point():
        return None
    return op.Max(op.x(), op.const(0, dtype=dtype))


@adapter("Selu", 1, 6)
def selu_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the old defaults out."""
    op.drop("consumed_inputs")
    return op.set(alpha=op.attr("alpha", 1.6732), gamma=op.attr("gamma", 1.0507))


@adapter("Selu", 6, 1)
def selu_down(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the new defaults out."""
    return op.set(alpha=op.attr("alpha", 1.67326319217681884765625), gamma=op.attr("gamma", 1.05070102214813232421875))


@adapter("PRelu", 6, 7)
def prelu_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Give a slope per channel the trailing axes that put it on axis 1."""
    x, slope = op.x(0), op.x(1)
    if op.shape(slope) == [1] and not op.rank(x):  # broadcasting would turn a scalar into a vector
        return op.inputs(x, op.Squeeze(slope, axes=[0]))
    if op.shape(slope) == [1] or op.rank(slope) == 0:
        return None
    rank = op.need_rank(x)
    if rank > 2 and op.need_rank(slope) == 1:
        op.inputs(x, op.Unsqueeze(slope, axes=list(range(1, rank - 1))))
    return None


@adapter("PRelu", 7, 6)
def prelu_down(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A slope per channel, or one for all, as a vector."""
    x, slope = op.x(0), op.x(1)
    rank, shape = op.need_rank(x), op.shape(slope)
    if shape is None or None in shape:
        op.refuse("the shape of the slope is unknown", hint="possible if the file states it")
    channel_axis = len(shape) - (rank - 1)
    if any(dim != 1 for axis, dim in enumerate(shape) if axis != channel_axis):
        op.refuse("a slope that varies over more than the channels is not expressible before version 7")
    if len(shape) != 1:
        op.inputs(x, op.Reshape(slope, op.ints(-1)))
    return None


@adapter("Clip", 1, 6)
def clip_hint_dropped(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop the in-place hint; nothing else changed."""
    return op.drop("consumed_inputs")


@adapter("Clip", 6, 1)
def clip_without_defaults(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Keep: absent bounds mean no bounds in either version."""
    return None


@adapter("Clip", 6, 11)
def clip_bounds_to_inputs(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Make the bounds scalars of the input's own element type."""
    x = op.x()
    op.inputs(x, *(_bound(op, x, name) for name in ("min", "max")))
    return op.drop("min", "max")


def _bound(op: OpBuilder, x: ir.Value, name: str) -> ir.Value | None:
    attr = op.node.attributes.get(name)
    if attr is None:
        return None
    if not attr.is_ref():
        return op.const(attr.as_float(), like=x)
    given = op.Constant(value_float=ir.RefAttr("value_float", attr.ref_attr_name or "", attr.type))
    return op.Cast(given, to=int(op.need_dtype(x)))


@adapter("Clip", 12, 11)
def clip_of_integers(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Select by comparison: Clip takes floats only before version 12."""
    dtype = op.dtype(op.x())
    if dtype is None or dtype.is_floating_point():
        return None
    return _clip_integers(op, op.x(), op.input(1), op.input(2))


@adapter("Clip", 11, 6)
def clip_bounds_to_attributes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Known bounds become attributes, computed or crossing ones a Max and a Min, integers a selection."""
    x, low, high = op.x(), op.input(1), op.input(2)
    dtype = op.need_dtype(x)
    if not dtype.is_floating_point():
        return _clip_integers(op, x, low, high)
    bounds = [op.known(low), op.known(high)]
    crossing = bounds[0] is not None and bounds[1] is not None and bounds[0].item() > bounds[1].item()
    known = all(array is not None or value is None for array, value in zip(bounds, (low, high), strict=True))
    if known and not crossing:  # onnxruntime refuses attributes that cross, and as inputs the upper bound wins
        op.inputs(x)
        named = zip(("min", "max"), bounds, strict=True)
        return op.set(**{name: float(array.item()) for name, array in named if array is not None})
    result = x if low is None else op.Max(x, low)
    return result if high is None else op.Min(result, high)


def _clip_integers(op: OpBuilder, x: ir.Value, low: ir.Value | None, high: ir.Value | None) -> ir.Value:
    if low is not None:
        x = op.Where(op.Less(x, low), low, x)
    if high is not None:
        x = op.Where(op.Greater(x, high), high, x)
    return x


@decomposition("ThresholdedRelu", 10)
def thresholded_relu(op: OpBuilder, _node: ir.Node) -> Replacement:
    """X where x > alpha, else 0."""
    x = op.x()
    above = op.Greater(x, op.const(op.attr("alpha", 1.0), like=x))
    return op.Where(above, x, op.const(0, like=x))


@decomposition("Celu", 12)
def celu(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Alpha · Elu(x / alpha); the schema's own body turns a scalar into a vector."""
    alpha = op.const(op.attr("alpha", 1.0), like=op.x())
    return op.Mul(op.Elu(op.Div(op.x(), alpha)), alpha)


@decomposition("Shrink", 9)
def shrink(op: OpBuilder, _node: ir.Node) -> Replacement:
    """(x + bias) below -lambd, (x - bias) above lambd, 0 between; integers are computed as doubles."""
    x, own = op.x(), op.need_dtype(op.x())
    dtype = own if own.is_floating_point() else ir.DataType.DOUBLE
    x = x if dtype == own else op.Cast(x, to=int(dtype))
    lambd, bias = op.attr("lambd", 0.5), op.attr("bias", 0.0)
    below = op.Cast(op.Less(x, op.const(-lambd, dtype=dtype)), to=int(dtype))
    above = op.Cast(op.Greater(x, op.const(lambd, dtype=dtype)), to=int(dtype))
    shifted = op.Add(op.Mul(below, op.const(bias, dtype=dtype)), op.Mul(above, op.const(-bias, dtype=dtype)))
    shrunk = op.Mul(op.Add(x, shifted), op.Add(below, above))
    return shrunk if dtype == own else op.Cast(shrunk, to=int(own))
