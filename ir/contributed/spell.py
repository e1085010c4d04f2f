"""One use of a contributed operator as a graph of standard ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.contributed.table import Spelling, find
from entrepot.ir.errors import DEFECT, MALFORMED, ConversionError
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.place import Surroundings
from entrepot.ir.opset.schemas import schema, since
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS, Known
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.spec import UNKNOWN, Spec

_HINT = "onnxruntime may run it: providers=['onnxruntime', 'cpu']"


@dataclass(frozen=True)
class Given:
    """What is known of one input.

    Attributes:
        spec: Its type and shape.
        constant: Its value, where it is the same in every run.
    """

    spec: Spec = UNKNOWN
    constant: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True)
class Use:
    """A node, without the graph around it.

    Attributes:
        domain: Of the operator.
        op_type: The operator.
        inputs: ``None`` for one that is left out.
        outputs: Whether each is named.
        attributes: As Python values.
    """

    domain: str
    op_type: str
    inputs: Sequence[Given | None]
    outputs: Sequence[bool]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def spell(use: Use) -> ir.Graph | None:
    """The same in standard operators at the hub's opset; ``None`` if nobody has said how.

    Its inputs are those of the node, absent ones included; outputs that the node does not name repeat another one.

    Raises:
        ConversionError: This use of the operator cannot be spelled out.
    """
    spelling = find(use.domain, use.op_type)
    if spelling is None:
        return None
    op, graph = _builder(use)
    results = _written(spelling, op, use, list(graph.inputs))
    made = [_made(op, at, results) for at, named in enumerate(use.outputs) if named]
    graph.outputs.clear()
    graph.remove(op.node)
    graph.initializers.clear()
    graph.extend(op.emitted)
    waiting = iter(made)
    graph.outputs.extend([next(waiting) if named else made[0] for named in use.outputs])
    return graph


def result_specs(
    node: ir.Node,
    known: Callable[[ir.Value | None], np.ndarray[Any, Any] | None],
    spec: Callable[[ir.Value], Spec],
) -> list[Spec]:
    """What is known of the results of a node without running it; nothing where it cannot be spelled out."""
    if find(node.domain, node.op_type) is None or any(attr.is_ref() for attr in node.attributes.values()):
        return []
    inputs = [None if value is None else Given(spec(value), known(value)) for value in node.inputs]
    attributes = {name: attr.value for name, attr in node.attributes.items()}
    use = Use(node.domain, node.op_type, inputs, [bool(value.name) for value in node.outputs], attributes)
    try:
        graph = spell(use)
    except ConversionError:
        return []
    types = Types(Known(INITIALIZERS_ARE_INPUTS), {"": OPSET})
    return [] if graph is None else [types.spec(value) for value in graph.outputs]


def _written(spelling: Spelling, op: OpBuilder, use: Use, formals: Sequence[ir.Value]) -> tuple[ir.Value | None, ...]:
    values = [formal if given else None for formal, given in zip(formals, use.inputs, strict=True)]
    _check(spelling, op, use, len(values))
    try:
        results = spelling(op, *values, **use.attributes)
    except ConversionError:
        raise
    except MALFORMED as error:
        raise op.refusal(f"it is not a valid node ({type(error).__name__}: {error})", hint=DEFECT) from error
    for node in op.emitted:
        _need_inputs(op, node)
    return results if isinstance(results, tuple) else (results,)


def _need_inputs(op: OpBuilder, node: ir.Node) -> None:
    """Refuse a node that would be read without what its operator needs: what it is made of was left out."""
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    formal = schema("", node.op_type, since("", node.op_type, OPSET)).inputs
    given = [*node.inputs, *[None] * len(formal)]
    if any(value is None and each.option == single for value, each in zip(given, formal, strict=False)):
        op.refuse(f"an input is missing that its {node.op_type} reads")


def _check(spelling: Spelling, op: OpBuilder, use: Use, count: int) -> None:
    """Refuse what the spelling has no place for."""
    parameters = inspect.signature(spelling).parameters.values()
    strange = use.attributes.keys() - {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    if strange:
        op.refuse(f"nobody has said what its attribute '{min(strange)}' means", hint=_HINT)
    if not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        places = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][1:]
        if any(use.inputs[len(places) :]):
            op.refuse(f"nobody has said what its input {len(places)} means", hint=_HINT)


def _made(op: OpBuilder, at: int, results: Sequence[ir.Value | None]) -> ir.Value:
    value = results[at] if at < len(results) else None
    if value is None:
        op.refuse(f"nobody has said what its output {at} means", hint=_HINT)
    return value


def _builder(use: Use) -> tuple[OpBuilder, ir.Graph]:
    """Where the spelling writes: beside a node of a model that holds nothing else."""
    formals = [_formal(at, given or Given()) for at, given in enumerate(use.inputs)]
    present = [value if given else None for value, given in zip(formals, use.inputs, strict=True)]
    node = ir.Node(use.domain, use.op_type, present, num_outputs=len(use.outputs), name=use.op_type)
    for at, (value, named) in enumerate(zip(node.outputs, use.outputs, strict=True)):
        value.name = f"o{at}" if named else ""
    outputs = [value for value in node.outputs if value.name]
    imports = {"": OPSET, use.domain: 1}
    graph = ir.Graph(formals, outputs, nodes=[node], opset_imports=imports, name=use.op_type)
    for value in formals:
        if value.const_value is not None:
            graph.initializers.add(value)
    known = Known(INITIALIZERS_ARE_INPUTS)
    model = ir.Model(graph, ir_version=INITIALIZERS_ARE_INPUTS)
    around = Surroundings(Names(model), known, Types(known, imports), {"": OPSET}, graph, [])
    return OpBuilder(node, OPSET, around), graph


def _formal(at: int, given: Given) -> ir.Value:
    stored = None if given.constant is None else ir.tensor(given.constant)
    return ir.Value(name=f"i{at}", type=given.spec.type, shape=given.spec.shape, const_value=stored)
