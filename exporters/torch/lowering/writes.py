"""Writes into tensors of a captured graph, as new tensors where that is the same."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from entrepot.exporters.torch.lowering.schemas import functional_form, is_composite, may_write, memory_of, viewed
from entrepot.exporters.torch.upstream import OpOverload, pytree

aten = torch.ops.aten


def without_writes(graph: Graph, given: Collection[str] = ()) -> Graph | None:
    """A copy of a graph in which each write is a new tensor that is read from there on.

    Args:
        graph: The graph, with the values that its nodes had when it was captured.
        given: The names of inputs at which nobody looks afterwards.

    Returns:
        The copy; ``None`` where something that is written to can be read under another name, or from outside.
    """
    writes = [node for node in graph.nodes if isinstance(node.target, OpOverload) and may_write(node.target)]
    if not writes:
        return graph
    written = Graph()
    known: dict[Node, Node] = {}
    written.graph_copy(graph, known)  # all but the output
    written.output(map_arg(graph.output_node().args[0], known.__getitem__))
    written.output_node().meta = dict(graph.output_node().meta)
    memory = _Memory(written, given)
    return written if all(_is_replaced(known[node], memory) for node in writes) else None


class _Memory:
    """Which nodes may share memory."""

    def __init__(self, graph: Graph, given: Collection[str]) -> None:
        self._given = given
        self._next: dict[Node, Node] = {}
        for node in graph.nodes:
            for each in _shared(node):
                first, second = self._of(each), self._of(node)
                if first is not second:
                    self._next[second] = first
        self._members: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            self._members.setdefault(self._of(node), []).append(node)

    def _of(self, node: Node) -> Node:
        """One node for all that may share its memory."""
        while node in self._next:
            node = self._next[node]
        return node

    def all(self, node: Node) -> list[Node]:
        """All that may share its memory."""
        return self._members[self._of(node)]

    def is_seen(self, node: Node) -> bool:
        """Whether somebody outside of the graph may read it."""
        return any(each.op == "placeholder" and each.name not in self._given for each in self.all(node))

    def join(self, new: Node, node: Node) -> None:
        """Note that one more does."""
        self._next[new] = self._of(node)
        self.all(node).append(new)


def _shared(node: Node) -> list[Node]:
    """What may share memory with a node's results, of what it is given."""
    target: Any = node.target
    if node.op != "call_function":
        return []
    if target is operator.getitem:  # parts of a tuple share as much as it does, but not with each other
        return _shared(node.all_input_nodes[0])
    if not isinstance(target, OpOverload):
        return []  # sizes
    if target in _NEW:
        return []
    if is_composite(target):  # it may return what it is given, whatever its schema says
        return [each for each in node.all_input_nodes if _may_be(node, each)]
    given = (node.args[at] for at in viewed(target) if at < len(node.args))
    return [each for each in pytree.tree_leaves(list(given)) if isinstance(each, Node)]


_NEW = {aten.linear.default, aten.matmul.default, aten.layer_norm.default, aten.conv1d.default, aten.conv2d.default}
"""Operators that are made of others and always compute a tensor of their own."""


def _may_be(node: Node, given: Node) -> bool:
    """Whether a result may be what is given: the capture found the same memory, or a tensor that is like it.

    Some operators return what they are given where there is nothing to do, but a copy while they are captured.
    """
    if not _memories(node).isdisjoint(_memories(given)):
        return True
    made, was = node.meta.get("val"), given.meta.get("val")
    if given is not node.args[0] or not (isinstance(made, torch.Tensor) and isinstance(was, torch.Tensor)):
        return False
    return made.dtype == was.dtype and [*map(str, made.shape)] == [*map(str, was.shape)]


def _memories(node: Node) -> set[int]:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return {memory_of(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided}


def _is_replaced(write: Node, memory: _Memory) -> bool:
    """Make a write a new tensor, unless someone may read what is written to by another name afterwards."""
    target: Any = write.target
    to, function = write.args[0], functional_form(target)
    if not isinstance(to, Node) or function is None or not _keeps_type(write, to, function):
        return False
    parts = _parts(to)
    wholes = [each.args[0] for each in parts] if _is_read(to, write, memory) else []
    known = {to, write, *wholes}
    if memory.is_seen(to):
        return False
    if any(each < write and _is_read_after(each, write) for each in memory.all(to) if each not in known):
        return False
    _read_from(write, to, write)
    write.target = function
    if wholes:
        _put_back(write, parts, memory)
    return True


def _is_read(to: Node, write: Node, memory: _Memory) -> bool:
    """Whether what is written to is read by another name afterwards."""
    return any(_is_read_after(each, write) for each in memory.all(to) if each not in (to, write) and each < write)


def _is_read_after(node: Node, write: Node) -> bool:
    return any(user > write for user in node.users)


def _read_from(new: Node, old: Node, place: Node) -> None:
    """Whoever reads ``old`` after ``place`` reads ``new``."""
    old.replace_all_uses_with(new, delete_user_cb=lambda user: user > place)


_PUT_BACK = {aten.slice.Tensor: aten.slice_scatter.default, aten.select.int: aten.select_scatter.default}
"""By operator that takes a part of a tensor, the one that returns the tensor with another part."""

_TURNED_BACK = {
    aten.alias.default: aten.alias.default,
    aten.transpose.int: aten.transpose.int,
    aten.unsqueeze.default: aten.squeeze.dim,
}
"""By operator that shows all of a tensor in another form, the one that makes the tensor of it, with the same axes."""


def _parts(node: Node) -> list[Node]:
    """How a tensor is a part of another, the last step first."""
    found: list[Node] = []
    while node.target in _PUT_BACK or node.target in _TURNED_BACK:
        found.append(node)
        node = node.args[0]  # type: ignore[assignment]
    return found


def _put_back(write: Node, parts: Sequence[Node], memory: _Memory) -> None:
    """The tensors that what is written to is a part of, as they are afterwards."""
    part = write
    for each in parts:
        whole: Any = each.args[0]
        target: Any = each.target
        given = (part,) if target in _TURNED_BACK else (whole, part)
        with write.graph.inserting_after(part):
            function = _TURNED_BACK.get(target) or _PUT_BACK[target]
            new = write.graph.call_function(function, (*given, *each.args[1:]), dict(each.kwargs))
        new.meta = {**write.meta, "val": whole.meta["val"]}
        _read_from(new, whole, new)
        memory.join(new, whole)
        part = new


def _keeps_type(write: Node, to: Node, function: OpOverload) -> bool:
    """Whether the new tensor has the type of the one that is written to, which comparisons, for one, have not."""
    args, kwargs = map_arg((write.args, dict(write.kwargs)), lambda node: node.meta["val"])
    made: torch.Tensor = function(*args, **kwargs)
    return made.dtype == to.meta["val"].dtype
