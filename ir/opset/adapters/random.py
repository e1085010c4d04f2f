"""Random numbers and Dropout.

| Dropout | change |
|---|---|
| 7 | ``is_test`` gone: inference |
| 10 | the mask is boolean |
| 12 | ``ratio`` is an input; ``training_mode`` |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.consumed import hint_dropped
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, impossible, unchanged

for _name in ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"):
    unchanged(_name, 1, 22)
unchanged("Multinomial", 7, 22)
unchanged("Bernoulli", 15, 22)
unchanged("Dropout", 12, 13, 22)
impossible("Multinomial", 7, 0, "no operator sampled from a distribution before opset 7")
hint_dropped("Dropout")


@decomposition("Bernoulli", 15)
def bernoulli(op: OpBuilder, _node: ir.Node) -> Replacement:
    """1 where a uniform number is below p; the schema's own body has "above", which gives 1 with probability 1 - p."""
    p = op.x()
    drawn = op.Less(op.RandomUniformLike(p, seed=op.attr("seed")), p)
    return op.Cast(drawn, to=op.attr("dtype", int(op.need_dtype(p))))


@adapter("Dropout", 6, 7)
def dropout_infers(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop ``is_test``: version 7 only does inference."""
    if not op.attr("is_test", 0) and op.attr("ratio", 0.5) and op.used(1):
        op.refuse("a mask drawn in training has no newer form before version 12")
    return op.drop("is_test")


@adapter("Dropout", 7, 6)
def dropout_is_test(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Set ``is_test``."""
    return op.set(is_test=1)


@adapter("Dropout", 7, 10)
def dropout_mask_to_bool(op: OpBuilder, node: ir.Node) -> Replacement:
    """The mask becomes boolean: give its readers the old type."""
    return _with_mask(op, node, op.need_dtype(op.x())) if op.used(1) else None


@adapter("Dropout", 10, 7)
def dropout_mask_to_float(op: OpBuilder, node: ir.Node) -> Replacement:
    """The mask was of the input's type: give its readers a boolean one."""
    return _with_mask(op, node, ir.DataType.BOOL) if op.used(1) else None


def _with_mask(op: OpBuilder, node: ir.Node, dtype: ir.DataType) -> Replacement:
    y, mask = op.emit("Dropout", [op.x()], dict(node.attributes), 2)
    return y, op.Cast(mask, to=int(dtype))


@adapter("Dropout", 10, 12)
def dropout_ratio_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move ``ratio`` to an input; absent training_mode is inference, as before."""
    op.inputs(op.x(), op.const(np.float32(op.attr("ratio", 0.5))))
    return op.drop("ratio")


def _dropped(op: OpBuilder, ratio: float) -> Replacement:
    """Keep the elements whose uniform number is not below the ratio, and scale them up."""
    x = op.x()
    drawn = op.RandomUniformLike(x, dtype=int(ir.DataType.FLOAT), seed=op.attr("seed"))
    kept = op.Not(op.Less(drawn, op.const(np.float32(ratio))))
    scale = 0 if ratio == 1 else 1 / (1 - ratio)
    nothing = op.const(0, like=x)
    return op.Where(kept, op.Mul(x, op.const(scale, like=x)), nothing), kept


@adapter("Dropout", 12, 10)
def dropout_ratio_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Spell training out by random numbers: only inference existed."""
    training = np.zeros(()) if op.input(2) is None else op.need_known(2, "training_mode")
    ratio = 0.5 if op.input(1) is None else float(op.need_known(1, "ratio").item())
    if training.item() and ratio:
        return _dropped(op, ratio)
    if op.used(1):  # nothing is dropped; runtimes disagree on the older mask in that case
        y = op.Dropout(op.x(), ratio=ratio)
        return y, op.Expand(op.const(np.array(True)), op.Shape(op.x()))
    op.drop("seed")
    op.inputs(op.x())
    return op.set(ratio=ratio)
