"""From ``ModelProto`` to ``onnx_ir.Model``: everything a file says is checked, and everything is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import onnx
import onnx_ir

from entrepot.ir.io.attributes import AttributeReader
from entrepot.ir.io.context import Context
from entrepot.ir.io.external import DataFolder
from entrepot.ir.io.functions import Size, check_expansion, identifiers, read_function
from entrepot.ir.io.graphs import FunctionId, GraphReader, Kind
from entrepot.ir.io.tensors import TensorReader

TRAINING = "entrepot.training_info"
"""Key in ``model.meta``: the file's ``TrainingInfoProto`` messages, carried along unchanged."""

_LARGEST_VERSION = (1 << 31) - 1
"""onnx looks schemas up by a 32-bit number."""

_FUNCTION_INFO = re.compile(r"(?P<domain>[^/]*)::(?P<name>[^/:]+)/(?P<value>.+)", re.DOTALL)


def build_model(
    proto: onnx.ModelProto,
    context: Context,
    base: Path | None,
    *,
    follow_links: bool = False,
    initializers: Sequence[onnx_ir.TensorProtocol] | None = None,
    kinds: Mapping[Kind, onnx_ir.Node] | None = None,
) -> onnx_ir.Model:
    """Read a whole file; the result is independent of ``proto``.

    Args:
        proto: The file, parsed.
        context: Place and budget.
        base: Absolute folder that external data lies in.
        follow_links: Let external data lie behind any link.
        initializers: Those of the main graph, if they were read before.
        kinds: Nodes that were checked before, by their kind.
    """
    check_header(proto, context)
    tensors = TensorReader(context, DataFolder(context, base, follow_links=follow_links))
    protos = identifiers(context, proto.functions)
    arities = {key: (len(function.input), len(function.output)) for key, function in protos.items()}
    graphs = GraphReader(context, tensors, arities, initializers, kinds)
    opsets = read_opsets(context, proto.opset_import)
    with context.inside(context.text(proto.graph.name) or "main"):
        main = graphs.read_main(proto.graph, opsets)
    main_size = Size(graphs.nodes, graphs.calls)
    functions, sizes = _read_functions(proto, context, protos, graphs, tensors)
    check_expansion(context, main_size, sizes)
    return _assemble(proto, context, main, functions)


def check_header(proto: onnx.ModelProto, context: Context) -> None:
    """Refuse what is no model, or is of a format that nobody knows."""
    if not proto.HasField("graph"):
        raise context.error("it contains no graph", hint="is it an ONNX model, and is it complete?")
    context.ir_version = proto.ir_version
    if not proto.ir_version:
        raise context.error("it has no format version (ir_version)", hint="is it an ONNX model, and is it complete?")
    if not 0 < proto.ir_version <= onnx.IR_VERSION:
        raise context.error(
            f"format version (ir_version) is {proto.ir_version}, but only 1 to {onnx.IR_VERSION} are known",
            hint="a newer onnx package may support it",
        )


def read_opsets(context: Context, protos: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Domain to version; ``ai.onnx`` means the same as the empty name."""
    opsets: dict[str, int] = {}
    for proto in protos:
        domain = context.text(proto.domain)
        domain = "" if domain == "ai.onnx" else domain
        if not 1 <= proto.version <= _LARGEST_VERSION:
            raise context.error(f"opset import of domain '{domain or 'ai.onnx'}' at version {proto.version}")
        if opsets.setdefault(domain, proto.version) != proto.version:
            raise context.error(
                f"conflicting opset imports of domain '{domain or 'ai.onnx'}': {opsets[domain]} and {proto.version}"
            )
    if not opsets and 0 < context.ir_version < 3:
        opsets[""] = 1  # the first two format versions had no imports
    return opsets


def _read_functions(
    proto: onnx.ModelProto,
    context: Context,
    protos: Mapping[FunctionId, onnx.FunctionProto],
    graphs: GraphReader,
    tensors: TensorReader,
) -> tuple[list[onnx_ir.Function], dict[FunctionId, Size]]:
    infos = _function_infos(proto) if protos else {}
    attributes = AttributeReader(context, tensors, graphs.read_nested)
    functions, sizes = [], {}
    for key, function in protos.items():
        with context.inside(key[1]):
            opsets = read_opsets(context, function.opset_import)
            functions.append(read_function(context, function, key, graphs, attributes, opsets, infos.get(key[:2], ())))
        sizes[key] = Size(graphs.nodes, graphs.calls)
    return functions, sizes


def _function_infos(proto: onnx.ModelProto) -> dict[tuple[str, str], list[onnx.ValueInfoProto]]:
    """Types of values in functions: before format version 10 the main graph has them as ``domain::name/value``."""
    found: dict[tuple[str, str], list[onnx.ValueInfoProto]] = {}
    for info in proto.graph.value_info if proto.ir_version < 10 else ():
        match = _FUNCTION_INFO.fullmatch(str(info.name))
        if match:
            own = onnx.ValueInfoProto()
            own.CopyFrom(info)
            own.name = match["value"]
            found.setdefault((match["domain"], match["name"]), []).append(own)
    return found


def _assemble(
    proto: onnx.ModelProto, context: Context, main: onnx_ir.Graph, functions: list[onnx_ir.Function]
) -> onnx_ir.Model:
    for configuration in proto.configuration:
        context.check_texts(configuration)
    model = onnx_ir.Model(
        main,
        ir_version=proto.ir_version,
        producer_name=context.text(proto.producer_name) or None,
        producer_version=context.text(proto.producer_version) or None,
        domain=context.text(proto.domain) or None,
        model_version=proto.model_version if proto.HasField("model_version") else None,
        doc_string=context.text(proto.doc_string) or None,
        functions=functions,
        metadata_props=context.texts(proto.metadata_props) or None,
        device_configurations=tuple(map(onnx_ir.serde.deserialize_model_configuration, proto.configuration)),
    )
    training = []
    for info in proto.training_info:
        context.check_texts(info)
        own = onnx.TrainingInfoProto()
        own.CopyFrom(info)
        training.append(own)
    if training:
        model.meta[TRAINING] = training
    return model
