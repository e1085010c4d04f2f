"""Variables by the handles that graphs know them by: what they are now, and what a graph assigns to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.tensorflow.arrays import shared
from entrepot.exporters.tensorflow.graphs.inference import Placed
from entrepot.exporters.tensorflow.node import VARIABLE, Node
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.upstream import variable_of


@dataclass(eq=False)
class Handle:
    """What refers to a variable or a table.

    Attributes:
        tensor: TensorFlow's own handle.
        name: What it is called.
        place: What TensorFlow's inference is told of it.
        initial: Its value before the call, once that was read.
        current: What the graph assigned to it last.
    """

    tensor: Any
    name: str
    place: Placed
    initial: ir.Value | None = None
    current: ir.Value | None = None

    @classmethod
    def of(cls, tensor: Any, name: str) -> Handle:
        """A handle by its tensor."""
        dtype, shape = variable_of(tensor)
        if dtype is None:
            return cls(tensor, name, Placed(tensor.dtype, []))
        return cls(tensor, name, Placed(dtype, shape, variable=True))

    def read(self, build: Builder) -> Any:
        """What was assigned to the variable, or its value before the call, as a weight under its name."""
        if self.current is not None:
            return self.current
        value = tf.raw_ops.ReadVariableOp(resource=self.tensor, dtype=self.place.dtype)
        weight = build.weight(self.name, shared(value))
        weight.meta[VARIABLE] = True
        self.initial = weight
        return weight

    def assign(self, node: Node, build: Builder, value: ir.Value) -> tuple[()]:
        """Note what the variable is from here on.

        Raises:
            UnsupportedOpError: The node is in a branch or a loop.
        """
        if not build.is_main:
            node.refuse("assigns a variable in a branch or a loop")
        known = self.place.shape
        self.current = value if value.shape is not None or known is None else typed(value, value.dtype, known)
        return ()


@translates("ReadVariableOp", handles=True)
def read_variable(node: Node, build: Builder, handle: Handle) -> Any:
    """The value that it has when it is exported."""
    return handle.read(build)


@translates("AssignVariableOp", handles=True)
def assign(node: Node, build: Builder, handle: Handle, value: ir.Value) -> Any:
    """Nothing but that later reads see the value."""
    return handle.assign(node, build, value)


@translates("AssignAddVariableOp", "AssignSubVariableOp", handles=True)
def assign_change(node: Node, build: Builder, handle: Handle, value: ir.Value) -> Any:
    """The same for what is added or taken away."""
    op = "Add" if node.op == "AssignAddVariableOp" else "Sub"
    return handle.assign(node, build, build.op(op, handle.read(build), value))


@translates("ResourceGather", handles=True)
def gather(node: Node, build: Builder, handle: Handle, indices: ir.Value) -> Any:
    """Rows of a variable."""
    if node["batch_dims"]:
        node.refuse("reads rows of a variable for each batch")
    return build.op("Gather", handle.read(build), indices, axis=0)


@translates("ResourceGatherNd", handles=True)
def gather_nd(node: Node, build: Builder, handle: Handle, indices: ir.Value) -> Any:
    """Elements of a variable."""
    return build.op("GatherND", handle.read(build), build.cast(indices, np.int64))


@translates("VariableShape", handles=True)
def variable_shape(node: Node, build: Builder, handle: Handle) -> Any:
    """The sizes of a variable."""
    return build.cast(build.shape(handle.read(build)), node["out_type"])
