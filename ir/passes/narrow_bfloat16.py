"""Models in bfloat16 as they were before their operators were widened for onnxruntime."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.passes.graphs import typed_graphs
from entrepot.ir.typing.query import Types

_NARROW, _WIDE = ir.DataType.BFLOAT16, ir.DataType.FLOAT


class NarrowBfloat16(ir.passes.InPlacePass):
    """Compute in bfloat16 what takes nothing but bfloat16, widened, and whose results are rounded to it at once.

    Before: ``y = Cast(Softmax(Cast(x)))``. After: ``y = Softmax(x)``.
    What ``WidenBfloat16`` does, undone, for those who have the operators: its files keep their types through a module.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        modified = False
        for graph, types in list(typed_graphs(model)):
            for node in list(graph):
                modified |= _narrowed(graph, node, types)
        return ir.passes.PassResult(model, modified=modified)


def _narrowed(graph: ir.Graph, node: ir.Node, types: Types) -> bool:
    if node.op_type == "Cast":
        return False
    given = [at for at, value in enumerate(node.inputs) if types.dtype(value) is _WIDE]
    made = [value for value in node.outputs if value.name and types.dtype(value) is _WIDE]
    widened = [_before(node.inputs[at], types) for at in given]
    rounded = [_after(value) for value in made]
    if not given or None in widened or None in rounded:
        return False
    for at, value in zip(given, widened, strict=True):
        node.replace_input_with(at, value)
    for value, cast in zip(made, rounded, strict=True):
        assert cast is not None
        _replace(graph, cast, value)
    return True


def _before(value: ir.Value | None, types: Types) -> ir.Value | None:
    """The value of bfloat16 that another one is, widened."""
    maker = None if value is None else value.producer()
    if maker is None or maker.op_type != "Cast" or maker.domain:
        return None
    narrow = maker.inputs[0]
    return narrow if narrow is not None and (narrow.dtype or types.dtype(narrow)) is _NARROW else None


def _after(value: ir.Value) -> ir.Node | None:
    """The node that rounds a value, if nothing else reads it."""
    readers = [use.node for use in value.uses()]
    if len(readers) != 1 or value.is_graph_output() or readers[0].op_type != "Cast" or readers[0].domain:
        return None
    return readers[0] if readers[0].attributes.get_int("to") == _NARROW else None


def _replace(graph: ir.Graph, cast: ir.Node, value: ir.Value) -> None:
    """Let a value be what a cast made of it."""
    narrow = cast.outputs[0]
    value.type = ir.TensorType(_NARROW)
    for use in list(narrow.uses()):
        use.node.replace_input_with(use.idx, value)
    name = narrow.name if narrow.is_graph_output() else value.name
    for at, output in enumerate(graph.outputs):
        if output is narrow:
            graph.outputs[at] = value
    graph.remove(cast, safe=True)
    value.name = name
