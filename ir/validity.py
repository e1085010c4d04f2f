"""Whether a model is valid: onnx's own checker, and what it does not check."""

from __future__ import annotations

import functools
import mmap
from collections.abc import Mapping
from pathlib import Path

import onnx
import onnx_ir

from entrepot.ir.fitting import misfit
from entrepot.ir.io.serialize import inline, serialize, write_header
from entrepot.ir.io.weights import SMALL
from entrepot.ir.model import Model
from entrepot.ir.upstream import INFERENCE_ERRORS

_MINUS_ONE = b"\x08" + b"\xff" * 9 + b"\x01"
"""A size of -1 as a file holds it; several older exporters wrote it for an unknown one."""


def problem_of(model: Model, content: Path | bytes) -> str:
    """What is wrong with a model, with strict shape inference; empty if nothing.

    Args:
        model: The model as it was read.
        content: The file it was read from, or its bytes.
    """
    scopes = [model.opsets, *(function.opset_imports for function in model.ir.functions.values())]
    return next(filter(None, map(unknown_opset, scopes)), "") or misfit(model) or _checked_as_written(model, content)


def _checked_as_written(model: Model, content: Path | bytes) -> str:
    """By onnx's checker, which crashes on sizes below 0: where the file has some, what was read of it is checked."""
    return problem_without_weights(model) if _mentions(content, _MINUS_ONE) else _checked(content)


def _mentions(content: Path | bytes, wanted: bytes) -> bool:
    if isinstance(content, bytes):
        return wanted in content
    with content.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return mapped.find(wanted) >= 0


def unknown_opset(opsets: Mapping[str, int]) -> str:
    """Which import asks for an unknown opset; onnx's checker treats a version it does not know as its newest."""
    newest = newest_opsets()
    for domain, version in opsets.items():
        known = newest.get(domain)
        if known is not None and version > known:
            return (
                f"opset {version} of {domain or 'ai.onnx'} is not known here, the newest is {known}; "
                f"export the model at opset {known} or below, or update onnx"
            )
    return ""


def problem_without_weights(model: Model) -> str:
    """The same for a model in memory; weights become inputs, because only their types and shapes are checked."""
    left_out: set[str] = set()

    def fill(proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol, main: bool) -> None:
        if main and tensor.nbytes >= SMALL and not isinstance(tensor, onnx_ir.StringTensor):
            left_out.add(proto.name)
            write_header(proto, tensor)
        else:
            inline(proto, tensor)

    proto = serialize(model.ir, fill)
    kept = [tensor for tensor in proto.graph.initializer if tensor.name not in left_out]
    fed = {value.name for value in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.name in left_out - fed:
            proto.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    return _checked(proto.SerializeToString())


@functools.cache
def newest_opsets() -> dict[str, int]:
    """The newest version of every domain that the installed onnx defines."""
    newest: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    # a version may bring no new operator to a domain
    return newest | {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}


def _checked(content: Path | bytes) -> str:
    try:
        onnx.checker.check_model(str(content) if isinstance(content, Path) else content, full_check=True)
    except INFERENCE_ERRORS as error:
        return " ".join(str(error).split())
    return ""
