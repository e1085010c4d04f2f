"""The tensors of a sequence whose length is known when converting, for what reads it where sequences do not exist."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.computed_axes import taken, total
from entrepot.ir.opset.adapters.parts.positions import from_the_front
from entrepot.ir.opset.builder import OpBuilder

Item: TypeAlias = Callable[[], ir.Value]
"""A tensor of a sequence, written when called, so that only those in use are written."""


def items_of(op: OpBuilder, sequence: ir.Value) -> list[Item]:
    """The tensors of a sequence that is built in the same graph.

    Raises:
        ConversionError: Its length is not known, or it comes from elsewhere.
    """
    node = sequence.producer()
    source = None if node is None else _input(node, 0)
    if node is not None and node.op_type == "SequenceConstruct":
        return [_given(value) for value in node.inputs if value is not None]
    if node is not None and node.op_type == "SequenceEmpty":
        return []
    if node is None or source is None or node.op_type not in _MADE_FROM:
        op.refuse("no sequences existed before opset 11", hint="possible where the sequence is built in the same graph")
    return _MADE_FROM[node.op_type](op, node, source)


def picked(op: OpBuilder, items: list[Item], position: ir.Value) -> ir.Value:
    """The tensor at a position; for a computed one, a choice among all."""
    known = op.known(position)
    if known is not None:
        return items[int(known.item())]()
    front = _front(op, position, len(items))
    return _chosen(op, items[0], [(_is(op, front, index), items[index]) for index in range(1, len(items))])


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _given(value: ir.Value) -> Item:
    return lambda: value


def _inserted(op: OpBuilder, node: ir.Node, source: ir.Value) -> list[Item]:
    items, position = items_of(op, source), _input(node, 2)
    value = node.inputs[1]
    assert value is not None
    known = np.array(len(items)) if position is None else op.known(position)
    if known is not None or position is None:
        index = len(items) if known is None else int(known.item())
        return [*items[:index], _given(value), *items[index:]]
    front = _front(op, position, len(items))

    def at(index: int) -> ir.Value:
        choices = [(_is(op, front, index), _given(value))] if index < len(items) else []
        if index:
            choices.append((_is_before(op, front, index), items[index - 1]))
        return _chosen(op, [*items, _given(value)][index], choices)

    return [functools.partial(at, index) for index in range(len(items) + 1)]


def _erased(op: OpBuilder, node: ir.Node, source: ir.Value) -> list[Item]:
    items, position = items_of(op, source), _input(node, 1)
    known = np.array(-1) if position is None else op.known(position)
    if known is not None or position is None:
        gone = int(known.item()) % len(items) if known is not None else len(items) - 1
        return [*items[:gone], *items[gone + 1 :]]
    front = _front(op, position, len(items))

    def at(index: int) -> ir.Value:
        return _chosen(op, items[index], [(_is_before(op, front, index + 1), items[index + 1])])

    return [functools.partial(at, index) for index in range(len(items) - 1)]


def _front(op: OpBuilder, position: ir.Value, count: int) -> Item:
    """A computed position counted from the front, written once."""
    return functools.cache(lambda: op.Reshape(from_the_front(op, position, op.ints(count)), op.ints()))


def _is(op: OpBuilder, position: Item, index: int) -> Item:
    return lambda: op.Cast(op.Equal(position(), op.const(np.int64(index))), to=int(ir.DataType.INT64))


def _is_before(op: OpBuilder, position: Item, index: int) -> Item:
    return lambda: op.Cast(op.Less(position(), op.const(np.int64(index))), to=int(ir.DataType.INT64))


def _chosen(op: OpBuilder, otherwise: Item, choices: list[tuple[Item, Item]]) -> ir.Value:
    """One tensor, or another where a run-time number is 1; they may differ in shape."""
    x = otherwise()
    for turn, item in choices:
        value = item()
        shape = op.around.types.shape(x)
        same = shape if shape is not None and shape == op.around.types.shape(value) else None
        x = taken(op, turn(), x, functools.partial(_instead, value), shape=same)
    return x


def _instead(value: ir.Value, body: OpBuilder, _x: ir.Value) -> ir.Value:
    instead: ir.Value = body.Identity(value)
    return instead


def _parts(op: OpBuilder, node: ir.Node, x: ir.Value) -> list[Item]:
    """The parts of a SplitToSequence, whose number has to be known."""
    split, axis = _input(node, 1), node.attributes.get_int("axis", 0)
    axis = axis if axis >= 0 else axis + op.need_rank(x)
    sizes = _sizes(op, x, axis, split)
    single = split is None and not node.attributes.get_int("keepdims", 1)

    def cut(index: int) -> ir.Value:
        start, end = (_end(op, sizes, split, stop) for stop in (index, index + 1))
        part: ir.Value = op.Slice(x, start, end, op.ints(axis))
        return op.Squeeze(part, axes=[axis]) if single else part

    return [functools.partial(cut, index) for index in range(len(sizes))]


def _sizes(op: OpBuilder, x: ir.Value, axis: int, split: ir.Value | None) -> list[int | None]:
    known = np.array(1) if split is None else op.known(split)
    if known is not None and known.ndim:
        return [int(size) for size in known]
    lengths = None if split is None else op.shape(split)
    if known is None and lengths and lengths[0] is not None:
        return [None] * lengths[0]
    shape = op.shape(x)
    size = None if shape is None else shape[axis]
    if known is None or size is None:
        op.refuse("how many parts it splits into is unknown", hint="possible with a fixed size and constant parts")
    chunk = int(known.item())
    return [min(chunk, size - start) for start in range(0, size, chunk)]


def _end(op: OpBuilder, sizes: list[int | None], split: ir.Value | None, count: int) -> ir.Value:
    """Where the first ``count`` parts end."""
    known = [size for size in sizes[:count] if size is not None]
    if len(known) == count:
        return op.ints(sum(known))
    taken_parts = op.Slice(split, op.ints(0), op.ints(count))
    return op.Cast(total(op, taken_parts, [0], keepdims=1), to=int(ir.DataType.INT64))


_MADE_FROM: dict[str, Callable[[OpBuilder, ir.Node, ir.Value], list[Item]]] = {
    "Identity": lambda op, _node, source: items_of(op, source),
    "SequenceErase": _erased,
    "SequenceInsert": _inserted,
    "SplitToSequence": _parts,
}
