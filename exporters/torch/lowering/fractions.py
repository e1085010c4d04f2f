"""Numbers with fractions that are made of sizes, computed as Python computes them: in double precision.

torch.onnx (2.13) computes them in single: ``int(h * 0.7)`` is then one too small or too large for some sizes.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

_ARITHMETIC: Mapping[Any, str] = {
    abs: "Abs",
    operator.add: "Add",
    operator.mul: "Mul",
    operator.neg: "Neg",
    operator.pow: "Pow",
    operator.sub: "Sub",
    operator.truediv: "Div",
    torch.sym_float: "Identity",
    torch.sym_max: "Max",
    torch.sym_min: "Min",
    torch.sym_sqrt: "Sqrt",
}
"""What has a fraction in a captured graph, and its name in ONNX."""

_ROUNDING: Mapping[Any, str] = {math.ceil: "Ceil", math.floor: "Floor", math.trunc: "Trunc", round: "Round"}
"""What makes a whole number of it."""

_COMPARISONS: Mapping[Any, str] = {
    operator.eq: "Equal",
    operator.ge: "GreaterOrEqual",
    operator.gt: "Greater",
    operator.le: "LessOrEqual",
    operator.lt: "Less",
    operator.ne: "NotEqual",
}
"""What makes a truth of it."""

_TENSOR = "Tensor"

_BY_NAME: Mapping[str, Callable[..., Any]] = {
    _TENSOR: functools.partial(torch.scalar_tensor, dtype=torch.float64),
    **{name: function for function, name in {**_ARITHMETIC, **_ROUNDING, **_COMPARISONS}.items()},
}

_ELEMENTWISE = frozenset(getattr(torch.ops.aten, name).Tensor for name in ("add", "div", "mul", "sub"))
"""What takes a number beside a tensor."""


def computed(numbers: list[Any], formula: str) -> Any:
    """What a formula gives; one node of a captured graph, which ``translations/fractions.py`` writes.

    Args:
        numbers: What it is of.
        formula: As JSON: a number, the place of one of ``numbers`` as text, or a list of a name and formulas.
    """
    return _evaluated(json.loads(formula), numbers)


def _evaluated(tree: Any, numbers: list[Any]) -> Any:
    if isinstance(tree, str):
        return numbers[int(tree)]
    if not isinstance(tree, list):
        return tree
    name, *operands = tree
    return _BY_NAME[name](*(_evaluated(each, numbers) for each in operands))


def settle_fractions(program: torch.export.ExportedProgram) -> None:
    """Put what is between sizes and a size, or an operand in double precision, into one node each, in place."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or not any(map(_has_fraction, node.args)):
            continue
        name = (_ROUNDING if len(node.args) == 1 else _COMPARISONS).get(node.target)  # ``round`` may be to digits
        if name is not None and not node.kwargs:
            new = _replaced(graph, node, [name, *node.args], node.meta["val"])
            node.replace_all_uses_with(new)
            graph.erase_node(node)
        elif node.target in _ELEMENTWISE and node.meta["val"].dtype == torch.float64:
            for argument in filter(_has_fraction, node.args):
                number = _replaced(graph, node, [_TENSOR, argument], node.meta["val"].new_empty(()))
                node.replace_input_with(argument, number)
    for node in reversed(list(graph.nodes)):
        if _has_fraction(node) and node.op == "call_function" and not node.users:
            graph.erase_node(node)


def _replaced(graph: torch.fx.Graph, node: torch.fx.Node, formula: list[Any], value: Any) -> torch.fx.Node:
    """A node before another that computes a formula, whose operands are still nodes."""
    leaves: dict[torch.fx.Node, int] = {}
    name, *operands = formula
    text = json.dumps([name, *(_formula(each, leaves) for each in operands)])
    with graph.inserting_before(node):
        new = graph.call_function(computed, (list(leaves), text))
    new.meta = {**node.meta, "val": value}
    return new


def _has_fraction(argument: Any) -> bool:
    return isinstance(argument, torch.fx.Node) and isinstance(argument.meta.get("val"), torch.SymFloat)


def _formula(argument: Any, leaves: dict[torch.fx.Node, int]) -> Any:
    if not isinstance(argument, torch.fx.Node):
        return argument
    if _has_fraction(argument) and argument.target in _ARITHMETIC and not argument.kwargs:
        return [_ARITHMETIC[argument.target], *(_formula(each, leaves) for each in argument.args)]
    return str(leaves.setdefault(argument, len(leaves)))
