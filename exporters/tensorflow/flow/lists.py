"""Lists of tensors of one shape, which is what TensorArray and functions that map or scan are made of.

A list is one tensor here, with an axis more. Loops that set one item in each turn make it as a scan output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.tensorflow.dtypes import onnx_type
from entrepot.exporters.tensorflow.node import Node, Shape, known
from entrepot.exporters.tensorflow.table import translates


@dataclass(frozen=True)
class TensorList:
    """A list of tensors.

    Attributes:
        dtype: Of its items.
        size: How many there are, as whoever made the list gave it; an integer of some type.
        items: All of them in one tensor; ``None`` as long as none is set.
        shape: That of an item, as far as it is known.
    """

    dtype: np.dtype[Any]
    size: Any
    items: ir.Value | None
    shape: Shape = None

    def holding(self, items: ir.Value) -> TensorList:
        """The list with these items."""
        return replace(self, items=items, size=None)

    def length(self, build: Builder) -> ir.Value:
        """The number of items, an int64 scalar."""
        if self.items is not None:
            return build.size(self.items, 0)
        return build.cast(self.size, np.int64)

    def whole(self, node: Node, build: Builder, like: ir.Value | None = None) -> ir.Value:
        """All items in one tensor; those that nobody has set are zeros.

        Args:
            node: Who asks.
            build: Where nodes are written.
            like: An item, whose shape is that of the others.

        Raises:
            UnsupportedOpError: Their shape is not known yet.
        """
        if self.items is not None:
            return self.items
        if self.shape is not None and None not in self.shape:
            sizes = build.constant(np.array(self.shape, np.int64))
        elif like is not None:
            sizes = build.shape(like)
        else:
            node.refuse("keeps tensors in a list, whose shape is not known before the first one is there")
        return self.zeros(build, self.length(build), sizes)

    def zeros(self, build: Builder, count: ir.Value, sizes: ir.Value) -> ir.Value:
        """Items that nobody has set."""
        shape = build.op("Concat", build.op("Unsqueeze", count, [0]), sizes, axis=0)
        kind = onnx_type(self.dtype)
        empty = np.array("", object) if kind == ir.DataType.STRING else np.zeros((), kind.numpy())
        dims = None if self.shape is None else [None, *self.shape]
        return typed(build.op("Expand", build.constant(empty, kind), shape), kind, dims)

    def narrowed(self, shape: Shape) -> TensorList:
        """The list, with what else is known of the shape of an item."""
        if shape is None or (self.shape is not None and len(self.shape) != len(shape)):
            return self
        own = self.shape or (None,) * len(shape)
        return replace(self, shape=tuple(b if a is None else a for a, b in zip(own, shape, strict=True)))


def item_shape(node: Node, index: int) -> Shape:
    """The shape of items as an operand states it, with -1 for what it does not know."""
    sizes = node.constant(index)
    if sizes is None or sizes.ndim == 0:
        return None
    return tuple(int(size) if size >= 0 else None for size in sizes)


@translates("TensorListFromTensor", handles=True)
def from_tensor(node: Node, build: Builder, tensor: ir.Value, shape: ir.Value) -> TensorList:
    """The rows of a tensor."""
    dims = node.shape(0)
    return TensorList(node["element_dtype"], None, tensor, None if dims is None else dims[1:])


@translates("TensorListReserve", handles=True)
def reserve(node: Node, build: Builder, shape: ir.Value, count: ir.Value) -> TensorList:
    """As many items as are asked for, none of which is set."""
    return TensorList(node["element_dtype"], count, None, item_shape(node, 0))


@translates("EmptyTensorList", handles=True)
def empty(node: Node, build: Builder, shape: ir.Value, most: ir.Value) -> TensorList:
    """No items."""
    return TensorList(node["element_dtype"], build.constant(np.array(0, np.int64)), None, item_shape(node, 0))


@translates("TensorListGetItem", handles=True)
def get_item(node: Node, build: Builder, items: TensorList, index: ir.Value, shape: ir.Value) -> Any:
    """One item."""
    return build.op("Gather", items.narrowed(item_shape(node, 2)).whole(node, build), index, axis=0)


@translates("TensorListSetItem", handles=True)
def set_item(node: Node, build: Builder, items: TensorList, index: ir.Value, item: ir.Value) -> TensorList:
    """The list with another item at one place."""
    whole = items.narrowed(node.shape(2)).whole(node, build, like=item)
    index = build.cast(index, np.int64)
    if node.get("resize_if_index_out_of_bounds", False):
        more = build.op("Max", build.op("Sub", build.op("Add", index, 1), build.size(whole, 0)), 0)
        whole = build.op("Concat", whole, items.zeros(build, more, build.shape(item)), axis=0)
    where = build.op("Reshape", index, [1, 1])
    return items.holding(build.op("ScatterND", whole, where, build.op("Unsqueeze", item, [0])))


@translates("TensorListPushBack", handles=True)
def push_back(node: Node, build: Builder, items: TensorList, item: ir.Value) -> TensorList:
    """The list with one more item."""
    row = build.op("Unsqueeze", item, [0])
    count = known(items.size) if items.items is None else None
    if count is not None and int(count) == 0:
        return items.holding(row)
    whole = items.narrowed(node.shape(1)).whole(node, build, like=item)
    return items.holding(build.op("Concat", whole, row, axis=0))


@translates("TensorListPopBack", handles=True)
def pop_back(node: Node, build: Builder, items: TensorList, shape: ir.Value) -> Any:
    """The list without its last item, and that item."""
    whole = items.narrowed(item_shape(node, 1)).whole(node, build)
    return items.holding(build.op("Slice", whole, [0], [-1], [0])), build.op("Gather", whole, -1, axis=0)


@translates("TensorListStack", handles=True)
def stack(node: Node, build: Builder, items: TensorList, shape: ir.Value) -> Any:
    """All items in one tensor."""
    return items.narrowed(item_shape(node, 1)).whole(node, build)


@translates("TensorListGather", handles=True)
def gather(node: Node, build: Builder, items: TensorList, indices: ir.Value, shape: ir.Value) -> Any:
    """Some items in one tensor."""
    return build.op("Gather", items.narrowed(item_shape(node, 2)).whole(node, build), indices, axis=0)


@translates("TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList", handles=True)
def scatter(node: Node, build: Builder, *operands: Any) -> TensorList:
    """Rows of a tensor as items at given places."""
    if isinstance(operands[0], TensorList):
        items, tensor, indices = operands
        whole = items.whole(node, build, like=build.op("Gather", tensor, 0, axis=0))
    else:
        tensor, indices = operands[:2]
        count = build.op("Add", build.op("ReduceMax", build.cast(indices, np.int64), keepdims=0), 1)
        if len(operands) > 3:
            count = build.op("Max", build.cast(operands[3], np.int64), count)
        items = TensorList(node["element_dtype"], count, None, (node.shape(0) or (None,))[1:])
        whole = items.zeros(build, count, build.shape(tensor, 1))
    where = build.op("Unsqueeze", build.cast(indices, np.int64), [-1])
    return items.holding(build.op("ScatterND", whole, where, tensor))


@translates("TensorListLength", handles=True)
def length(node: Node, build: Builder, items: TensorList) -> Any:
    """How many items there are."""
    return build.cast(items.length(build), np.int32)


@translates("TensorListElementShape", handles=True)
def element_shape(node: Node, build: Builder, items: TensorList) -> Any:
    """The shape of an item."""
    return build.cast(build.shape(items.whole(node, build), 1), node["shape_type"])


@translates("TensorListResize", handles=True)
def resize(node: Node, build: Builder, items: TensorList, size: ir.Value) -> TensorList:
    """The list cut off, or with items that nobody has set."""
    if items.items is None:
        return replace(items, size=size)
    size = build.cast(size, np.int64)
    more = build.op("Max", build.op("Sub", size, build.size(items.items, 0)), 0)
    longer = build.op("Concat", items.items, items.zeros(build, more, build.shape(items.items, 1)), axis=0)
    return items.holding(build.op("Slice", longer, [0], build.op("Unsqueeze", size, [0]), [0]))


@translates("TensorListConcat", "TensorListConcatV2", handles=True)
def concatenated(node: Node, build: Builder, items: TensorList, *rest: ir.Value) -> Any:
    """All items one after the other, and how long each is."""
    whole = items.whole(node, build)
    sizes = build.op("Concat", [-1], build.shape(whole, 2), axis=0)
    lengths = build.op("Expand", build.size(whole, 1), build.shape(whole, 0, 1))
    return build.op("Reshape", whole, sizes), lengths


@translates("TensorListConcatLists", handles=True)
def appended(node: Node, build: Builder, one: TensorList, two: TensorList) -> TensorList:
    """One list after the other."""
    return one.holding(build.op("Concat", one.whole(node, build), two.whole(node, build), axis=0))


@translates("TensorListSplit", handles=True)
def split(node: Node, build: Builder, tensor: ir.Value, shape: ir.Value, lengths: ir.Value) -> TensorList:
    """Parts of a tensor that are equally long."""
    counts = node.constant(2)
    if counts is None or len(set(map(int, counts))) != 1:
        node.refuse("makes a list of tensors of different lengths")
    sizes = build.op("Concat", [len(counts), int(counts[0])], build.shape(tensor, 1), axis=0)
    return TensorList(node["element_dtype"], None, build.op("Reshape", tensor, sizes))
