"""What torch.onnx and onnxscript find out about an operator again and again is found out once, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import onnx_ir
import onnxscript

_KNOWN: dict[tuple[str, str, int], Any] = {}


@contextlib.contextmanager
def signatures_once() -> Iterator[None]:
    """Inside, the signature of an operator of ONNX is made of its schema once.

    torch.onnx (2.13) makes it for each node, which takes as long as the rest of the node.
    """
    signatures: Any = onnx_ir.schemas.OpSignature
    make = signatures.from_op_schema

    def made(schema: Any) -> Any:
        key = schema.domain, schema.name, schema.since_version
        if key not in _KNOWN:
            _KNOWN[key] = make(schema)
        return _KNOWN[key]

    with mock.patch.object(signatures, "from_op_schema", made):
        yield


@contextlib.contextmanager
def functions_unparsed() -> Iterator[None]:
    """Inside, the functions of torchlib tell their domain without being parsed.

    onnxscript (0.7) reads the sources of all of them to list them for torch.onnx (2.13), which ignores what is found.
    """
    domain = property(lambda function: function.opset)
    with mock.patch.object(onnxscript.TracedOnnxFunction, "function_ir", domain):
        yield
