"""Normalisation layers.

| operator | version | change |
|---|---|---|
| BatchNormalization, InstanceNormalization | 6 | any number of axes, before: four |
| BatchNormalization | 7 | ``is_test`` gone: more than one output means training |
| | 9 | ``spatial`` gone |
| | 14 | ``training_mode``; three outputs instead of five |
| GroupNormalization | 21 | scale and bias per channel instead of per group; 18 is deprecated and never written |
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended, unchanged

unchanged("InstanceNormalization", 6, 22)
extended("BatchNormalization", 14, 15)
unchanged("LRN", 1, 13)
unchanged("LpNormalization", 1, 22)
unchanged("MeanVarianceNormalization", 9, 13)
expanded("MeanVarianceNormalization", 9)


@adapter("BatchNormalization", 1, 6)
@adapter("InstanceNormalization", 1, 6)
def hint_and_rank_dropped(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop the in-place hint; version 6 takes more than images."""
    return op.drop("consumed_inputs")


@adapter("BatchNormalization", 6, 1)
def batch_of_images(op: OpBuilder, node: ir.Node) -> Replacement:
    """Version 1 takes four axes and requires the in-place hint: mean and variance are updated."""
    return _as_images(op, node, consumed=[0, 0, 0, 1, 1])


@adapter("InstanceNormalization", 6, 1)
def instances_of_images(op: OpBuilder, node: ir.Node) -> Replacement:
    """Version 1 takes four axes."""
    return _as_images(op, node)


def _as_images(op: OpBuilder, node: ir.Node, *, consumed: list[int] | None = None) -> Replacement:
    rank = op.need_rank(op.x())
    if rank == 4:
        return None if consumed is None else op.set(consumed_inputs=consumed)
    if rank > 4 or not op.attr("spatial", 1):
        op.refuse(f"an input of rank {rank} is not expressible before version 6, which takes images")
    axes = list(range(rank, 4))
    results = op.again(op.Unsqueeze(op.x(), axes=axes), *node.inputs[1:], consumed_inputs=consumed)
    results = [results] if isinstance(results, ir.Value) else list(results)
    return [op.Squeeze(results[0], axes=axes), *results[1:]]


@adapter("BatchNormalization", 6, 7)
def batch_mode_by_outputs(op: OpBuilder, node: ir.Node) -> Replacement:
    """Drop ``is_test``: from version 7 the number of outputs says whether it trains."""
    if op.attr("is_test", 0):
        if any(op.used(index) for index in range(1, len(node.outputs))):
            op.refuse("training outputs are used although is_test is set")
        node.resize_outputs(1)
    elif not any(output.name for output in node.outputs[1:]):  # one output means test mode, whatever is_test says
        node.resize_outputs(1)
    return op.drop("is_test")


@adapter("BatchNormalization", 7, 6)
def batch_mode_written(op: OpBuilder, node: ir.Node) -> Replacement:
    """One output means inference."""
    return op.set(is_test=int(len(node.outputs) == 1))


@adapter("BatchNormalization", 7, 9)
def batch_per_activation(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell out ``spatial=0``: statistics per activation, which only need broadcasting over the batch."""
    if op.attr("spatial", 1):
        return op.drop("spatial")
    if any(op.used(index) for index in range(1, len(node.outputs))):
        op.refuse("training with spatial=0 has no newer form")
    x, scale, bias, mean, variance = (op.x(index) for index in range(5))
    deviation = op.Sqrt(op.Add(variance, op.const(op.attr("epsilon", 1e-5), like=x)))
    result: ir.Value = op.Add(op.Mul(op.Sub(x, mean), op.Div(scale, deviation)), bias)
    return [result, *[None] * (len(node.outputs) - 1)]


@adapter("BatchNormalization", 9, 7)
def batch_always_spatial(_op: OpBuilder, _node: ir.Node) -> Replacement:
    """``spatial`` is 1 by default."""
    return None


@adapter("BatchNormalization", 9, 14)
def batch_training_mode(op: OpBuilder, node: ir.Node) -> Replacement:
    """Several outputs meant training; the saved statistics are gone."""
    if op.used(3) or op.used(4):
        op.refuse("its outputs saved_mean and saved_var have no newer form")
    if len(node.outputs) > 1:
        node.resize_outputs(3)
        return op.set(training_mode=1)
    return None


@adapter("BatchNormalization", 15, 14)
def batch_of_one_type(op: OpBuilder, node: ir.Node) -> Replacement:
    """Compute in float where input, scale and statistics differ in type."""
    return _batch_in_float(op, node, [op.dtype(value) for value in node.inputs])


def _batch_in_float(op: OpBuilder, node: ir.Node, dtypes: Sequence[ir.DataType | None]) -> Replacement:
    if len(set(dtypes)) == 1 or None in dtypes:
        return None
    wide = ir.DataType.DOUBLE if ir.DataType.DOUBLE in dtypes else ir.DataType.FLOAT
    results = op.again(*(op.Cast(value, to=int(wide)) for value in node.inputs))
    results = [results] if isinstance(results, ir.Value) else results
    kinds = (dtypes[0], dtypes[3], dtypes[3])
    return [op.Cast(value, to=int(kind or wide)) for value, kind in zip(results, kinds, strict=False)]


@adapter("BatchNormalization", 14, 9)
def batch_without_training_mode(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell out training: statistics of the batch, and updated running ones."""
    in_float = _batch_in_float(op, node, [op.dtype(value) for value in node.inputs])
    if in_float is not None:
        return in_float
    if not op.attr("training_mode", 0):
        node.resize_outputs(1)
        return op.drop("training_mode")
    x, scale, bias, mean, variance = (op.x(index) for index in range(5))
    rank = op.need_rank(x)
    axes = [axis for axis in range(rank) if axis != 1]
    batch_mean = op.ReduceMean(x, axes=axes)
    centred = op.Sub(x, batch_mean)
    batch_variance = op.ReduceMean(op.Mul(centred, centred), axes=axes)
    deviation = op.Sqrt(op.Add(batch_variance, op.const(op.attr("epsilon", 1e-5), like=x)))
    per_channel = [1, -1] + [1] * (rank - 2)
    scaled = op.Mul(op.Div(centred, deviation), op.Reshape(scale, op.ints(*per_channel)))
    y = op.Add(scaled, op.Reshape(bias, op.ints(*per_channel)))
    running = [_running(op, old, new) for old, new in ((mean, batch_mean), (variance, batch_variance))]
    return [y, *running][: len(node.outputs)]


def _running(op: OpBuilder, old: ir.Value, new: ir.Value) -> ir.Value:
    momentum = op.attr("momentum", 0.9)
    kept = op.Mul(old, op.const(momentum, like=old))
    fresh = op.Reshape(op.Mul(new, op.const(1 - momentum, like=old)), op.ints(-1))
    return op.Add(kept, fresh)


def _axes_from(op: OpBuilder, x: ir.Value) -> list[int]:
    """The axes from ``axis`` to the last, without the rank where it is not needed."""
    axis = op.attr("axis", -1)
    return list(range(axis, 0)) if axis < 0 else list(range(axis, op.need_rank(x)))


def _stash(op: OpBuilder, x: ir.Value) -> tuple[ir.Value, ir.DataType, ir.DataType]:
    """``x`` in the type that statistics are computed in, that type, and the type of ``x``.

    Runtimes treat the stash type as the least precision: ``x`` is not narrowed to it.
    """
    own, stash = op.need_dtype(x), ir.DataType(op.attr("stash_type", 1))
    stash = own if own.bitwidth > stash.bitwidth else stash
    return (x if own == stash else op.Cast(x, to=int(stash))), stash, own


@decomposition("LayerNormalization", 17)
def layer_normalization(op: OpBuilder, node: ir.Node) -> Replacement:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, statistics in the stash type."""
    x, axes = op.x(), _axes_from(op, op.x())
    wide, stash, own = _stash(op, x)
    mean = op.ReduceMean(wide, axes=axes)
    centred = op.Sub(wide, mean)
    variance = op.ReduceMean(op.Mul(centred, centred), axes=axes)
    inverse = op.Reciprocal(op.Sqrt(op.Add(variance, op.const(op.attr("epsilon", 1e-5), dtype=stash))))
    normal = op.Mul(centred, inverse)
    y = op.Mul(normal if own == stash else op.Cast(normal, to=int(own)), op.x(1))
    if op.input(2) is not None:
        y = op.Add(y, op.x(2))
    saved = [_saved(op, value, stash) for value in (mean, inverse)[: len(node.outputs) - 1]]
    return [y, *saved]


def _saved(op: OpBuilder, value: ir.Value, dtype: ir.DataType) -> ir.Value:
    stash = ir.DataType(op.attr("stash_type", 1))
    result: ir.Value = value if dtype == stash else op.Cast(value, to=int(stash))
    return result


@decomposition("RMSNormalization", 23)
def rms_normalization(op: OpBuilder, _node: ir.Node) -> Replacement:
    """X / sqrt(mean(x²) + epsilon) * scale, in the stash type up to the scale."""
    x, axes = op.x(), _axes_from(op, op.x())
    wide, stash, own = _stash(op, x)
    square = op.ReduceMean(op.Mul(wide, wide), op.ints(*axes))
    root = op.Sqrt(op.Add(square, op.const(op.attr("epsilon", 1e-5), dtype=stash)))
    normal = op.Div(wide, root)
    return op.Mul(normal if own == stash else op.Cast(normal, to=int(own)), op.x(1))


@adapter("GroupNormalization", 18, 21)
def group_normalization_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Repeat each group's scale and bias for its channels."""
    x, groups = op.x(), op.attr("num_groups")
    channels = _channels(op, x)
    if channels is not None:
        target = op.ints(groups, channels // groups)
    else:
        target = op.Concat(op.ints(groups), op.Div(op.Shape(x, start=1, end=2), op.ints(groups)), axis=0)
    scale, bias = (op.Reshape(op.Expand(op.Unsqueeze(op.x(i), op.ints(1)), target), op.ints(-1)) for i in (1, 2))
    return op.inputs(x, scale, bias)


@adapter("GroupNormalization", 21, 18)
def group_normalization_per_channel(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Normalise over each group's flattened values, then scale per channel; any rank."""
    x = op.x()
    normal = _normal_groups(op, x)
    channels = _channels(op, x)
    middle = op.ints(channels) if channels is not None else op.Shape(x, start=1, end=2)
    by_channel = op.Reshape(normal, op.Concat(op.ints(0), middle, op.ints(-1), axis=0))
    scale, bias = (op.Unsqueeze(op.x(index), op.ints(1)) for index in (1, 2))
    return op.Reshape(op.Add(op.Mul(by_channel, scale), bias), op.Shape(x))


@decomposition("GroupNormalization", 18)
def group_normalization_per_group(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Normalise over each group's flattened values and scale per group; any rank."""
    x = op.x()
    scale, bias = (op.Unsqueeze(op.x(index), op.ints(1)) for index in (1, 2))
    return op.Reshape(op.Add(op.Mul(_normal_groups(op, x), scale), bias), op.Shape(x))


def _normal_groups(op: OpBuilder, x: ir.Value) -> ir.Value:
    """(N, groups, rest), normalised over the rest."""
    own, stash = op.need_dtype(x), ir.DataType(op.attr("stash_type", 1))
    wide = op.Reshape(x, op.ints(0, op.attr("num_groups"), -1))
    wide = wide if own == stash else op.Cast(wide, to=int(stash))  # narrowed or not, as in the body of version 21
    axis = op.ints(-1) if op.version >= 18 else None
    mean = _mean(op, wide, axis)
    centred = op.Sub(wide, mean)
    variance = _mean(op, op.Mul(centred, centred), axis)
    normal = op.Div(centred, op.Sqrt(op.Add(variance, op.const(op.attr("epsilon", 1e-5), dtype=stash))))
    return normal if own == stash else op.Cast(normal, to=int(own))


def _mean(op: OpBuilder, x: ir.Value, axis: ir.Value | None) -> ir.Value:
    return op.ReduceMean(x, axes=[-1]) if axis is None else op.ReduceMean(x, axis)


def _channels(op: OpBuilder, x: ir.Value) -> int | None:
    shape = op.shape(x)
    return None if shape is None else shape[1]
