from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from entrepot.ir.passes.graphs import bypass, has_references, replace, typed_graphs

_BROADCASTING = 7
"""The opset from which sums and differences broadcast as NumPy does."""


class DropNegations(ir.passes.InPlacePass):
    """Compute with what was negated, where that says the same.

    Before: ``Not(Not(c))``. After: ``c``. Before: ``Where(Not(c), x, y)``. After: ``Where(c, y, x)``.
    Before: ``Add(x, Neg(y))``. After: ``Sub(x, y)``, which is equal to the last bit. Neg is undone as Not is; a
    condition of an If is turned as that of a Where. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        dropped = [
            _DROP[node.op_type](node)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BROADCASTING
            for node in list(graph)
            if node.op_type in _DROP and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(dropped))


def _undo(node: ir.Node) -> bool:
    negated = _negated(node.inputs[0], node.op_type)
    return negated is not None and bypass(node, negated)


def _turn_choice(node: ir.Node) -> bool:
    condition = _negated(node.inputs[0], "Not")
    if condition is None:
        return False
    _, chosen, other = node.inputs
    for at, value in enumerate((condition, other, chosen)):
        node.replace_input_with(at, value)
    return True


def _turn_branches(node: ir.Node) -> bool:
    condition = _negated(node.inputs[0], "Not")
    if condition is None:
        return False
    node.replace_input_with(0, condition)
    chosen, other = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    node.attributes["then_branch"] = ir.AttrGraph("then_branch", other)
    node.attributes["else_branch"] = ir.AttrGraph("else_branch", chosen)
    return True


def _subtract(node: ir.Node) -> bool:
    for subtracted, rest in ((1, 0), (0, 1)):
        value = _negated(node.inputs[subtracted], "Neg")
        if value is not None:
            replace(node, ir.node("Sub", [node.inputs[rest], value]))
            return True
    return False


def _add(node: ir.Node) -> bool:
    value = _negated(node.inputs[1], "Neg")
    if value is not None:
        replace(node, ir.node("Add", [node.inputs[0], value]))
    return value is not None


_DROP: dict[str, Callable[[ir.Node], bool]] = {
    "Not": _undo,
    "Neg": _undo,
    "Where": _turn_choice,
    "If": _turn_branches,
    "Add": _subtract,
    "Sub": _add,
}


def _negated(value: ir.Value | None, op_type: str) -> ir.Value | None:
    """What ``value`` negates."""
    node = None if value is None else value.producer()
    return node.inputs[0] if node is not None and node.op_type == op_type and not node.domain else None
