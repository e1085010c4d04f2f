"""A model whose operators are spelled out by the function bodies that the standard gives for them.

What those bodies say owes nothing to our adapters or kernels, and the operators they are made of are older:
onnxruntime may know them although it does not know the operator.
"""

from __future__ import annotations

import onnx.inliner

from entrepot.ir.errors import UnsupportedOpError
from entrepot.ir.io.read import load
from entrepot.ir.io.write import nbytes
from entrepot.ir.model import Model
from entrepot.ir.upstream import INFERENCE_ERRORS

_MOST = 2**31 - 2**20  # what protobuf can serialise, with room for what the bodies add


def spelled_out(model: Model) -> Model:
    """The model with every operator that has a function body replaced by it; onnx's own inliner does it.

    Raises:
        UnsupportedOpError: No operator has one, or onnx cannot inline them.
    """
    if nbytes(model.ir) > _MOST:
        raise UnsupportedOpError("the model is too large for onnx's inliner")
    before = model.to_proto()
    try:
        after = onnx.inliner.inline_selected_functions(before, [], exclude=True, inline_schema_functions=True)
    except INFERENCE_ERRORS as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnsupportedOpError(f"onnx cannot spell out the function bodies of the model: {reason}") from error
    if len(after.graph.node) == len(before.graph.node):
        raise UnsupportedOpError("no operator of the model has a function body at its opset")
    return load(after)
