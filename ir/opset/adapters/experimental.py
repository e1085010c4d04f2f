"""Experimental ai.onnx operators of opset 6 and before that no schema describes any more.

Source: the operator documents of ONNX 1.0 to 1.4.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, vanished


@vanished("Affine")
def affine(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Alpha * x + beta."""
    x = op.x()
    scaled = op.Mul(x, op.const(op.attr("alpha", 1.0), like=x))
    return op.Add(scaled, op.const(op.attr("beta", 0.0), like=x))


@vanished("Scale")
def scale(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Scale * x."""
    return op.Mul(op.x(), op.const(op.attr("scale", 1.0), like=op.x()))


@vanished("ScaledTanh")
def scaled_tanh(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Alpha * tanh(beta * x)."""
    x = op.x()
    inner = op.Tanh(op.Mul(x, op.const(op.attr("beta", 1.0), like=x)))
    return op.Mul(op.const(op.attr("alpha", 1.0), like=x), inner)


@vanished("ParametricSoftplus")
def parametric_softplus(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Alpha * log(exp(beta * x) + 1)."""
    x = op.x()
    inner = op.Softplus(op.Mul(x, op.const(op.attr("beta", 1.0), like=x)))
    return op.Mul(op.const(op.attr("alpha", 1.0), like=x), inner)


@vanished("ThresholdedRelu", read_at=9)
def thresholded_relu(op: OpBuilder, _node: ir.Node) -> Replacement:
    """X above alpha, else 0."""
    x = op.x()
    above = op.Greater(x, op.const(op.attr("alpha", 1.0), like=x))
    return op.Where(above, x, op.const(0, like=x))


@vanished("ImageScaler")
def image_scaler(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Scale * x + a bias per channel."""
    x, bias = op.x(), op.attr("bias")
    scaled = op.Mul(x, op.const(op.attr("scale", 1.0), like=x))
    return op.Add(scaled, op.const(np.array(bias).reshape(-1, 1, 1), like=x))


@vanished("Crop")
def crop(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Cut (left, top, right, bottom) off an image, or ``scale`` (height, width) from its left top corner on."""
    left, top, right, bottom = op.attr("border")
    size = op.attr("scale")
    starts = [top, left]
    if size:
        ends = [top + size[0], left + size[1]]
    else:
        ends = [-bottom or np.iinfo(np.int64).max, -right or np.iinfo(np.int64).max]
    return op.Slice(op.x(), starts=starts, ends=ends, axes=[2, 3])


@vanished("DynamicSlice", read_at=10)
def dynamic_slice(op: OpBuilder, node: ir.Node) -> Replacement:
    """Slice with computed bounds."""
    return op.Slice(*node.inputs)


@vanished("GivenTensorFill")
def given_tensor_fill(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A constant of given values and shape."""
    if op.input(0) is not None:
        op.refuse("a fill whose shape is an input has no newer form")
    return op.const(np.array(op.attr("values"), np.float32).reshape(op.attr("shape")))


@vanished("ConstantFill", read_at=9)
def constant_fill(op: OpBuilder, _node: ir.Node) -> Replacement:
    """One value in a given or computed shape."""
    dtype = ir.DataType(op.attr("dtype", 1))
    value = np.array([op.attr("value", 0.0)]).astype(dtype.numpy())
    if op.input(0) is None:
        return op.const(np.full(op.attr("shape"), value[0], value.dtype))
    if op.attr("extra_shape"):
        op.refuse("extra_shape has no newer form")
    shape = op.x() if op.attr("input_as_shape", 0) else op.Shape(op.x())
    return op.ConstantOfShape(shape, value=ir.tensor(value))


@vanished("MeanVarianceNormalization")
def mean_variance_normalization(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Per channel unless ``across_channels``, over the whole batch; the variance only where asked.

    No specification says whether images are normalised one by one. Version 9, whose default axes are 0, 2 and 3, and
    onnxruntime's kernel of the experimental operator both take the batch together.
    """
    x = op.x()
    axes = [0, 1, 2, 3] if op.attr("across_channels", 0) else [0, 2, 3]
    centred = op.Sub(x, op.ReduceMean(x, axes=axes))
    if not op.attr("normalize_variance", 1):
        return centred
    deviation = op.Sqrt(op.ReduceMean(op.Mul(centred, centred), axes=axes))
    return op.Div(centred, op.Add(deviation, op.const(1e-9, like=x)))


@vanished("GRUUnit")
def gru_unit(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Caffe2's cell was never specified well enough."""
    op.refuse("GRUUnit has no newer form")


@vanished("ATen")
def aten(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A call into another library."""
    op.refuse(f"ATen operator '{op.attr('operator')}' is code of another library")


@vanished("LayerNormalization", read_at=17)
def early_layer_normalization(op: OpBuilder, node: ir.Node) -> Replacement:
    """The operator of version 17, which onnxruntime takes, and its optimizer writes, at any opset before."""
    made: Replacement = op.again(*node.inputs)
    return made


@vanished("SimplifiedLayerNormalization", read_at=23)
def simplified_layer_normalization(op: OpBuilder, node: ir.Node) -> Replacement:
    """RMSNormalization by the name that onnxruntime gave it; its second output is made in training alone."""
    x, scale = node.inputs
    kept = {name: node.attributes[name] for name in ("axis", "epsilon", "stash_type") if name in node.attributes}
    made = op.RMSNormalization(x, scale, **kept)
    return [made, None][: len(node.outputs)]
