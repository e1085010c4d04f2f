"""A long file that has been checked, but of which no graph has been made: many are only moved on to another opset."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx
import onnx_ir

from entrepot.ir.collector import collector_paused
from entrepot.ir.io.build import build_model
from entrepot.ir.io.context import Context
from entrepot.ir.io.graphs import Kind
from entrepot.ir.io.serialize import FillTensor
from entrepot.ir.limits import Limits


@dataclass(frozen=True, eq=False)
class Parsed:
    """The messages of a plain file: one graph without subgraphs or functions, whose nodes are in order.

    Attributes:
        proto: The file, never changed.
        opsets: Domain to version, as the model has them now.
        ir_version: Its format version now.
        tensors: The initializers, in the order of the file.
        kinds: A node for each combination of operator and attributes, which is connected to nothing.
        types: The element types that something in the file states.
        path: The file, for messages.
        limits: Bounds that it was read with.
    """

    proto: onnx.ModelProto
    opsets: Mapping[str, int]
    ir_version: int
    tensors: tuple[onnx_ir.TensorProtocol, ...]
    kinds: Mapping[Kind, onnx_ir.Node]
    types: frozenset[onnx_ir.DataType]
    path: str | os.PathLike[str] | None
    limits: Limits
    _made: list[onnx_ir.Model] = field(default_factory=list, init=False, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def at(self, opsets: Mapping[str, int], ir_version: int) -> Parsed:
        """The same file at other versions."""
        return dataclasses.replace(self, opsets=opsets, ir_version=ir_version)

    def graph(self) -> onnx_ir.Model:
        """The graph, made once however many threads ask for it."""
        with self._making:
            if not self._made:
                self._made.append(self.new_graph())
            return self._made[0]

    def new_graph(self) -> onnx_ir.Model:
        """A graph that nobody else has; only the weights are shared."""
        context = Context(self.path, self.limits)
        with collector_paused():
            model = build_model(self.proto, context, None, initializers=self.tensors, kinds=self.kinds)
        model.graph.opset_imports.clear()
        model.graph.opset_imports.update(self.opsets)
        model.ir_version = self.ir_version
        return model

    def serialize(self, fill: FillTensor, stays: Callable[[onnx_ir.TensorProtocol], bool]) -> onnx.ModelProto:
        """The model as a new proto.

        Args:
            fill: Decides where each tensor's data goes.
            stays: Whether what the file says about a tensor remains true.
        """
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        proto.ir_version = self.ir_version
        del proto.opset_import[:], proto.graph.initializer[:]
        for domain, version in self.opsets.items():
            proto.opset_import.add(domain=domain, version=version)
        for old, tensor in zip(self.proto.graph.initializer, self.tensors, strict=True):
            if stays(tensor):
                proto.graph.initializer.append(old)
            else:
                fill(proto.graph.initializer.add(name=old.name), tensor, True)
        return proto
