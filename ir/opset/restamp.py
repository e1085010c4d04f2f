"""Files that only need another number: none of their nodes changes on the way to the opset asked for."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from entrepot.ir.errors import ConversionError
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.opset import ir_version
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.place import Surroundings
from entrepot.ir.opset.rules import route
from entrepot.ir.opset.schemas import CEILINGS, schema, since
from entrepot.ir.opset.settle import settle
from entrepot.ir.opset.values import Known
from entrepot.ir.typing.query import Types


def restamped(parsed: Parsed, targets: Mapping[str, int]) -> Parsed | None:
    """The file at other versions, or ``None`` where something in it has to change, or cannot be told from a node alone.

    Args:
        parsed: The file.
        targets: Versions by domain; those of domains that it does not use say nothing.
    """
    opsets = {domain: targets.get(domain, version) for domain, version in parsed.opsets.items()}
    moved = {domain: version for domain, version in opsets.items() if version != parsed.opsets[domain]}
    if any(version < parsed.opsets[domain] for domain, version in moved.items()):
        return None  # on the way down, what a node may take depends on what is around it
    if any(version > CEILINGS.get(domain, version) for domain, version in opsets.items()):
        return None
    affected = [node for node in parsed.kinds.values() if node.domain in moved]
    try:
        if not all(_stays(node, parsed.opsets[node.domain], moved[node.domain]) for node in affected):
            return None
        types = parsed.types.union(*map(ir_version.cast_to, parsed.kinds.values()))
    except ConversionError:  # who looks at every node can say which ones
        return None
    version = max(ir_version.natural(opsets), parsed.ir_version)
    return parsed.at(opsets, version) if all(ir_version.born(dtype) <= version for dtype in types) else None


def _stays(node: ir.Node, version: int, target: int) -> bool:
    start, stop = since(node.domain, node.op_type, version), since(node.domain, node.op_type, target)
    if start == stop or not start:
        return bool(start)  # what no schema describes may have been an experiment that has a name today
    too_many = len(node.outputs) > schema(node.domain, node.op_type, stop).max_output  # unless nobody reads them
    if too_many or route(node.domain, node.op_type, start, stop):
        return False
    op = OpBuilder(node, target, _nowhere(node, target), node.domain)
    return settle(op, node, descending=False) is None


def _nowhere(node: ir.Node, target: int) -> Surroundings:
    """What is known around a node that is connected to nothing."""
    opsets = {node.domain: target}
    model = ir.Model(ir.Graph([], [], nodes=[], opset_imports=opsets), ir_version=ir_version.natural(opsets))
    types = Types(Known(model.ir_version), opsets, {})
    return Surroundings(Names(model), types.known, types, opsets, None, [])
