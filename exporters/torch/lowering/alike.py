"""Operators of a program that come apart into the same: one is traced, and copied for each of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from entrepot.exporters.torch.upstream import free_unbacked_symbols, pytree


def first_alike(nodes: Sequence[Node]) -> dict[Node, Node]:
    """By node that is like an earlier one: the first of those.

    Two are alike if they are called with the same numbers, and with tensors of the same sizes, as formulas. What holds
    sizes that values give, or values that are known while a program is captured, is like nothing else.
    """
    known: dict[Any, Node] = {}
    found: dict[Node, Node] = {}
    for node in nodes:
        key = _key(node)
        first = node if key is None else known.setdefault(key, node)
        if first is not node:
            found[node] = first
    return found


def counterparts(first: Node, node: Node) -> Mapping[Node, Node]:
    """What ``node`` is called with, by what the first one like it is called with."""
    return dict(zip(first.all_input_nodes, node.all_input_nodes, strict=True))


def holds_tensor(node: Node) -> bool:
    """Whether its result is a tensor, or several, and no size."""
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(node.meta.get("val")))


def _key(node: Node) -> Any:
    operands = node.all_input_nodes
    values = [node.meta.get("val") for node in (node, *operands)]
    if not all(map(_is_known_by_its_form, pytree.tree_leaves(values))):
        return None
    places = {operand: f"%{at}" for at, operand in enumerate(operands)}
    call = map_arg((node.args, dict(node.kwargs)), places.__getitem__)
    return node.target, repr(call), *(_form(value) for value in values[1:])


def _is_known_by_its_form(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return getattr(value, "constant", None) is None and not free_unbacked_symbols(value)
    return (
        not free_unbacked_symbols(value) if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) else True
    )


def _form(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return str(value)
    sizes = [str(size) for size in (*value.shape, *value.stride(), value.storage_offset())]
    return (*sizes, value.dtype, value.device, value.requires_grad)
