"""Operators of torch that take functions, where torch.onnx (2.13) has no translation: ``map``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir
import torch

from entrepot.exporters.torch.upstream import call_op


def translate_map(body: onnx_ir.Function, rows: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
    """A Scan without states: ``body`` for each row of some tensors, beside others that stay whole."""
    inputs = [
        onnx_ir.Value(
            name=f"{body.name}__row_{index}",
            shape=onnx_ir.Shape(tensor.shape[1:]),
            type=onnx_ir.TensorType(tensor.dtype),
        )
        for index, tensor in enumerate(rows)
    ]
    call = onnx_ir.Node(body.domain, body.name, [*inputs, *others], num_outputs=len(body.outputs))
    for index, output in enumerate(call.outputs):
        output.name = f"{body.name}__result_{index}"
    return call_op(
        "Scan",
        *rows,
        _num_outputs=len(body.outputs),
        body=onnx_ir.Graph(inputs, call.outputs, nodes=[call], name=body.name),
        num_scan_inputs=len(rows),
    )


TRANSLATIONS = {torch.ops.higher_order.map_impl: translate_map}
