"""Resize and Upsample.

| operator | version | change |
|---|---|---|
| Upsample | 7 | ``scales`` for all axes; modes renamed |
| | 9 | ``scales`` is an input |
| | 10 | deprecated for Resize |
| Resize | 11 | coordinate modes (before: asymmetric; nearest down, or up where it shrinks), ``sizes``, ``roi`` |
| | 13 | ``roi`` and ``scales`` may be absent (before: empty) |
| | 18 | ``antialias``, ``axes``, ``keep_aspect_ratio_policy`` |
| | 19 | ``half_pixel_symmetric`` |

With ``align_corners`` and scales that give no whole size, the standard contradicts itself at every version. Its text
aligns "the length of the resized tensor", a whole number, and onnxruntime computes so. Its tests and onnx.reference
align the product of length and scale, before it is rounded; so does our runtime, which is held to those tests. What is
written below version 11 has no such choice left in it, and keeps what onnxruntime computed before.

What an older version cannot say is written axis by axis: as a Gather, and where elements are mixed as a sum of several
by their weights. Where sizes are fixed, positions and weights are constants.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.computed_resize import as_it_was, mixed, resize_at_run_time, to_mix
from entrepot.ir.opset.adapters.parts.interpolation import Interpolation, Matrix, is_fixed, weights
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended, impossible

extended("Resize", 13, 18)
extended("Resize", 18, 19)
impossible("Upsample", 10, 9, "Upsample 10 is deprecated and not in use")


@adapter("Upsample", 1, 7)
def scales_for_all_axes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write height and width scales for all axes; bilinear is linear."""
    scales = [1.0, 1.0, op.attr("height_scale"), op.attr("width_scale")]
    mode = op.attr("mode", "nearest")
    op.drop("height_scale", "width_scale")
    return op.set(scales=scales, mode="linear" if mode == "bilinear" else mode)


@adapter("Upsample", 7, 1)
def scales_of_images(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Keep the scales of height and width, the only ones there were."""
    scales, mode = op.attr("scales"), op.attr("mode", "nearest")
    if len(scales) != 4 or scales[:2] != [1.0, 1.0]:
        op.refuse("only height and width of a 4-D input could be scaled before version 7")
    op.drop("scales")
    return op.set(height_scale=scales[2], width_scale=scales[3], mode="bilinear" if mode == "linear" else mode)


@adapter("Upsample", 7, 9)
def scales_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move the scales to an input."""
    op.inputs(op.x(), op.const(np.array(op.attr("scales"), np.float32)))
    return op.drop("scales")


@adapter("Upsample", 9, 7)
def scales_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move known scales to an attribute."""
    scales = op.need_known(1, "scales").tolist()
    op.inputs(op.x())
    return op.set(scales=scales)


@adapter("Upsample", 9, 10)
def upsample_renamed(op: OpBuilder, node: ir.Node) -> Replacement:
    """The same meaning under another name."""
    return op.Resize(*node.inputs, mode=op.attr("mode", "nearest"))


@decomposition("Resize", 10)
def resize_renamed(op: OpBuilder, node: ir.Node) -> Replacement:
    """Upsample where every scale is known to enlarge, else by constants."""
    scales = op.known(op.x(1))
    if scales is None or (scales < 1).any():
        return by_constants(op, node)
    return op.Upsample(*node.inputs, mode=op.attr("mode", "nearest"))


@adapter("Resize", 10, 11)
def old_modes_written(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write out the only coordinates there were, since the defaults changed; nearest rounds up on axes that shrink."""
    x, roi, scales = op.x(0), op.const(np.zeros(0, np.float32)), op.known(op.x(1))
    shrinks = scales is not None and op.attr("mode", "nearest") == "nearest" and bool((scales < 1).any())
    if shrinks and scales is not None and (scales > 1).any():
        grown = op.Resize(
            x, roi, op.const(np.maximum(scales, 1)), coordinate_transformation_mode="asymmetric", nearest_mode="floor"
        )
        return op.Resize(
            grown,
            roi,
            op.const(np.minimum(scales, 1)),
            coordinate_transformation_mode="asymmetric",
            nearest_mode="ceil",
        )
    op.inputs(x, roi, op.x(1))
    return op.set(coordinate_transformation_mode="asymmetric", nearest_mode="ceil" if shrinks else "floor")


@adapter("Resize", 11, 10)
def only_old_modes(op: OpBuilder, node: ir.Node) -> Replacement:
    """Asymmetric coordinates with given scales stay; else by constants or computed; corners as onnxruntime aligns them.

    That is to whole sizes; onnx.reference aligns length times scale.
    """
    plain = _asymmetric(op) or _repeats(op)
    if not plain or _present(op, 3) is not None or _present(op, 2) is None:
        return spelled_out(op, node)
    op.inputs(op.x(0), op.x(2))
    return op.drop(*(name for name in list(node.attributes) if name != "mode"))


def _asymmetric(op: OpBuilder) -> bool:
    """Whether the node asks for what Resize 10 always did."""
    mode = op.attr("mode", "nearest")
    scales = op.known(_present(op, 2))
    grows = scales is not None and bool((scales >= 1).all())  # where an axis shrinks, version 10 rounded up
    floor = mode == "nearest" and grows and op.attr("nearest_mode", "round_prefer_floor") == "floor"
    kind = op.attr("coordinate_transformation_mode", "half_pixel")
    return kind == "asymmetric" and (floor or mode == "linear")


def _repeats(op: OpBuilder) -> bool:
    """Whether it repeats every element a whole number of times, which Resize 10 does whatever the sizes are.

    For a whole scale k and half pixels, position x falls at (x + 0.5) / k - 0.5, at most 0.5 - 0.5 / k away from
    floor(x / k): rounding to the nearest gives that element, and there is never a tie.
    """
    scales = op.known(_present(op, 2))
    if op.attr("mode", "nearest") != "nearest" or scales is None:
        return False
    rounds = op.attr("nearest_mode", "round_prefer_floor").startswith("round")
    half = op.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return rounds and half and bool((scales >= 1).all() and (scales == np.floor(scales)).all())


@adapter("Resize", 11, 13)
def empty_is_absent(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Leave out an empty roi or scales."""
    kept = [_present(op, index) for index in (1, 2)]
    return op.inputs(op.x(0), *kept, op.input(3))


@adapter("Resize", 13, 11)
def absent_is_empty(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write an absent roi or scales as an empty tensor."""
    given = [op.input(index) or op.const(np.zeros(0, np.float32)) for index in (1, 2)]
    return op.inputs(op.x(0), *given, op.input(3))


@adapter("Resize", 19, 18)
def without_symmetric_half_pixel(op: OpBuilder, node: ir.Node) -> Replacement:
    """Compute the newest coordinates by constants."""
    if op.attr("coordinate_transformation_mode", "half_pixel") != "half_pixel_symmetric":
        return None
    return spelled_out(op, node)


@adapter("Resize", 18, 13)
def without_axes(op: OpBuilder, node: ir.Node) -> Replacement:
    """Sizes or scales for all axes; antialiasing and one scale for all axes spelled out."""
    policy, axes = op.attr("keep_aspect_ratio_policy", "stretch"), op.attr("axes")
    sizes = _present(op, 3)
    if op.attr("antialias", 0) or (policy != "stretch" and sizes is not None):
        return spelled_out(op, node)
    op.drop("antialias", "keep_aspect_ratio_policy", "axes")
    if axes is None:
        return None
    rank, axes = op.need_rank(op.x()), [axis % op.need_rank(op.x()) for axis in axes]
    ones, roi = op.const(np.ones(1, np.float32)), _present(op, 1)
    if roi is not None:
        ends = [op.const(np.full(1, end), like=roi) for end in (0, 1)]
        both = [*axes, *(axis + rank for axis in axes)]
        roi = _spread(op, roi, both, [ends[0]] * rank + [ends[1]] * rank)
    if sizes is None:
        return op.inputs(op.x(), roi, _spread(op, op.x(2), axes, [ones] * rank))
    shape = op.Shape(op.x())
    own = [op.Slice(shape, op.ints(axis), op.ints(axis + 1)) for axis in range(rank) if axis not in axes]
    own_by_axis = iter(own)
    rest = [sizes if axis in axes else next(own_by_axis) for axis in range(rank)]
    return op.inputs(op.x(), roi, None, _spread(op, sizes, axes, rest))


def _spread(op: OpBuilder, given: ir.Value, axes: list[int], rest: list[ir.Value]) -> ir.Value:
    """``given`` at its axes, ``rest`` elsewhere."""
    parts = list(rest)
    for index, axis in enumerate(axes):
        parts[axis] = op.Slice(given, op.ints(index), op.ints(index + 1))
    return op.Concat(*parts, axis=0)


def _present(op: OpBuilder, index: int) -> ir.Value | None:
    """An input that is neither absent nor empty."""
    value = op.input(index)
    return None if value is None or op.shape(value) == [0] else value


def spelled_out(op: OpBuilder, node: ir.Node) -> Replacement:
    """By constants, or computed where sizes are not fixed."""
    return by_constants(op, node) if is_fixed(op) else resize_at_run_time(op)


def by_constants(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Each axis that changes as a Gather, or as a sum of several with constant weights."""
    plan, matrices = Interpolation.of(op), []
    for axis, matrix in weights(op, plan):
        if not matrix.size:
            op.refuse("an axis of size 0 is not expressible there")
        matrices.append((axis, matrix))
    if plan.mode == "nearest" or not matrices:
        return _all(_gathered, op, op.x(), matrices)
    return as_it_was(op, _all(_multiplied, op, to_mix(op), matrices))


def _all(resize: Callable[..., ir.Value], op: OpBuilder, x: ir.Value, matrices: list[tuple[int, Matrix]]) -> ir.Value:
    for axis, matrix in matrices:
        x = resize(op, x, axis, matrix)
    return x


def _gathered(op: OpBuilder, x: ir.Value, axis: int, matrix: Matrix) -> ir.Value:
    return op.Gather(x, op.const(matrix.argmax(1).astype(np.int64)), axis=axis)


def _multiplied(op: OpBuilder, x: ir.Value, axis: int, matrix: Matrix) -> ir.Value:
    count = int((matrix != 0).sum(1).max())
    heaviest = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]  # those of weight 0 come last
    share = np.take_along_axis(matrix, heaviest, 1)
    index = np.where(share != 0, heaviest, heaviest[:, :1])  # and are not read: 0 times NaN is not 0
    return mixed(op, x, axis, op.const(index), op.const(share, like=x))
