"""Arithmetic on sizes that torch.onnx (2.13) does not write, or writes as another."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import torch

from entrepot.exporters.torch.upstream import statically_known_true

aten = torch.ops.aten


def settle_divisions(program: torch.export.ExportedProgram) -> None:
    """Let what may be negative be divided without a rest, in place: ``-n // 4`` is ``(-n - -n % 4) // 4``.

    Python rounds down, and ONNX towards zero.
    """
    graph = program.graph_module.graph
    for node in graph.find_nodes(op="call_function", target=operator.floordiv):
        number, divisor = node.args
        if _is_positive(number, 0) and _is_positive(divisor, 1):
            continue
        with graph.inserting_before(node):
            rest = _computed(graph, operator.mod, number, divisor)
            whole = _computed(graph, operator.sub, number, rest)
        node.args = whole, divisor


def settle_sums(program: torch.export.ExportedProgram) -> None:
    """Let sums be of one list, in place: torch traces ``sym_sum([a, b, c])`` and ``sym_sum(a, b, c)``."""
    for node in program.graph_module.graph.find_nodes(op="call_function", target=torch.sym_sum):
        if len(node.args) > 1:
            node.args = (list(node.args),)


def settle_strides(program: torch.export.ExportedProgram) -> None:
    """Let strides be sizes that are equal to them, in place: torch reads a size off a stride if it met that first.

    What lies along an axis without elements is taken to be one long.
    """
    graph = program.graph_module.graph
    for node in graph.find_nodes(op="call_function", target=aten.sym_stride.int):
        tensor, axis = node.args
        value = _value(tensor)
        inner = range(axis % value.dim() + 1, value.dim())
        lengths = value.shape[inner.start :]
        if not inner:
            continue
        exactly = statically_known_true(value.stride(axis) == math.prod(lengths))
        if not exactly and not statically_known_true(value.stride(axis) == math.prod(map(_at_least_one, lengths))):
            continue
        with graph.inserting_before(node):
            sizes = [_computed(graph, aten.sym_size.int, tensor, each) for each in inner]
            if not exactly:
                sizes = [_computed(graph, torch.sym_max, 1, each) for each in sizes]
            size = functools.reduce(lambda one, other: _computed(graph, operator.mul, one, other), sizes)
        node.replace_all_uses_with(size)
        graph.erase_node(node)


def _at_least_one(size: Any) -> Any:
    return torch.sym_max(1, size)


def _is_positive(argument: Any, least: int) -> bool:
    return bool(statically_known_true(_value(argument) >= least))


def _value(argument: Any) -> Any:
    return argument.meta["val"] if isinstance(argument, torch.fx.Node) else argument


def _computed(graph: torch.fx.Graph, function: Any, *arguments: Any) -> torch.fx.Node:
    node = graph.call_function(function, arguments)
    node.meta["val"] = function(*map(_value, arguments))
    return node
