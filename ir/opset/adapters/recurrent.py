"""RNN, LSTM and GRU.

| version | change |
|---|---|
| 3 (GRU) | ``linear_before_reset``; the default direction lost its typo |
| 7 | ``output_sequence`` gone: outputs are there when named; activations by their proper names |
| 14 | ``layout`` |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, unchanged

_ACTIVATIONS = {
    name.lower(): name
    for name in (
        "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
        "Softsign", "Softplus",
    )
}  # fmt: skip


@adapter("RNN", 1, 7)
@adapter("LSTM", 1, 7)
@adapter("GRU", 3, 7)
def sequence_by_name(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop ``output_sequence``: outputs that are named are computed; early files wrote activations in lower case."""
    given = [] if _refers(op, "activations") else op.attr("activations") or []
    if given:
        op.set(activations=[_ACTIVATIONS.get(name.lower(), name) for name in given])
    return op.drop("output_sequence")


def _refers(op: OpBuilder, name: str) -> bool:
    attribute = op.node.attributes.get(name)
    return attribute is not None and attribute.is_ref()


@adapter("RNN", 7, 1)
@adapter("LSTM", 7, 1)
@adapter("GRU", 7, 3)
def sequence_by_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Ask for the sequence where it is read."""
    return op.set(output_sequence=int(op.used(0)))


@adapter("GRU", 1, 3)
def direction_written(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Correct the default direction, which was misspelled."""
    return op.set(direction=op.attr("direction", "forward").replace("foward", "forward"))


@adapter("GRU", 3, 1)
def without_linear_before_reset(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write both outputs out; only one order of product and reset existed."""
    if op.attr("linear_before_reset", 0):
        op.refuse("linear_before_reset is not expressible before version 3")
    op.drop("linear_before_reset")
    op.set(direction=op.attr("direction", "forward"))
    if len(node.outputs) == 2 and node.outputs[1].name:
        return None
    results = op.emit("GRU", node.inputs, dict(node.attributes), 2)
    return list(results[: len(node.outputs)])


def time_first(op: OpBuilder, node: ir.Node) -> Replacement:
    """Transpose the batch-first tensors on the way in and out."""
    batch_first = {0, 5, 6}  # X, initial_h, initial_c
    inputs = [
        op.Transpose(value, perm=[1, 0, 2]) if value is not None and index in batch_first else value
        for index, value in enumerate(node.inputs)
    ]
    results = op.again(*inputs, drop=("layout",))
    results = [results] if isinstance(results, ir.Value) else results
    perms = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
    return [
        op.Transpose(value, perm=perm) if op.used(index) else value
        for index, (value, perm) in enumerate(zip(results, perms, strict=False))
    ]


for _name in ("RNN", "LSTM", "GRU"):
    added(_name, 7, 14, layout=0, otherwise=time_first)
    unchanged(_name, 14, 22)
