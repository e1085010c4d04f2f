"""Operands of several types, brought to one by nodes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from entrepot.exporters.torch.lowering.schemas import takes_numbers, takes_tensors
from entrepot.exporters.torch.upstream import (
    FakeTensor,
    InsertTypePromotion,
    OpOverload,
    TypePromotionInterpreter,
    get_type_promotion_rule,
)

aten = torch.ops.aten


def promote_types(module: torch.fx.GraphModule) -> None:
    """Insert conversions into a graph and those within it, in place, by torch.onnx's rules.

    Its own pass (2.13) computes every node again, without values; here only those that it changes.
    """
    for each in module.modules():
        if isinstance(each, torch.fx.GraphModule):
            for node in list(each.graph.nodes):
                _lead_with_tensor(node)
            promotion = InsertTypePromotion(each)
            promotion.interpreter = _Promotion(each, promotion.interpreter.type_promotion_table)
            promotion.run()


class _Promotion(TypePromotionInterpreter):
    def run_node(self, n: torch.fx.Node) -> Any:
        """The value that is noted for a node, if it has one."""
        if n.op != "call_function" or n.meta.get("val") is None:
            return super().run_node(n)
        rule = get_type_promotion_rule(n, self.type_promotion_table)
        if rule is not None:
            _use_one_kind_of_number(n)
            with self._set_current_node(n):
                self._maybe_promote_node(n, rule)
        return n.meta["val"]


def _lead_with_tensor(node: torch.fx.Node) -> None:
    """``torch.mul(2, x)``: a tensor in the place of a number that comes first, as torch itself makes one."""
    operator = node.target
    number: Any = node.args[0] if node.args else None
    if not isinstance(operator, OpOverload) or type(number) not in (int, float) or not takes_tensors(operator)[0]:
        return
    mode = next(_fakes(node), None)
    if mode is None:
        return
    kind = torch.float32 if isinstance(number, float) else torch.int64
    with node.graph.inserting_before(node):
        made = node.graph.call_function(aten.scalar_tensor.default, (number,), {"dtype": kind})
    with mode:
        made.meta["val"] = torch.scalar_tensor(number, dtype=kind)
    node.update_arg(0, made)


def _fakes(node: torch.fx.Node) -> Iterator[Any]:
    """The modes under which values of a node's arguments were made."""
    values = (each.meta.get("val") for each in node.all_input_nodes)
    return (value.fake_mode for value in values if isinstance(value, FakeTensor))


def _use_one_kind_of_number(node: torch.fx.Node) -> None:
    """``clamp(x, 0, 2.5)`` with two fractions: torch.onnx makes a tensor of the other, and no operator takes both."""
    if not isinstance(node.target, OpOverload):
        return
    given = zip(node.args, takes_numbers(node.target), strict=False)
    numbers = {at: each for at, (each, taken) in enumerate(given) if taken and isinstance(each, int | float)}
    if any(isinstance(each, float) for each in numbers.values()):
        node.args = tuple(float(numbers[at]) if at in numbers else each for at, each in enumerate(node.args))
