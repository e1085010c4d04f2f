"""What the reader knows while it reads: where it is, what it has counted, what is still allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import onnx
import onnx_ir

from entrepot.ir.errors import ModelFormatError, ResourceLimitError
from entrepot.ir.limits import Limits


class Context:
    """Place and budget of one reading; every error it makes names file, graph and node.

    Attributes:
        path: File being read, if it is one.
        limits: Bounds on what the file may ask for.
        node: Node being read, or ``None`` between nodes.
        ir_version: The format version the file declares.
        shapes: Those read so far, by their bytes in the file; they are frozen, so that values can share them.
        dtypes: Numbers of the element types read so far.
        total_bytes: Size of the tensors read so far.
        bulk: Data of tensors that was cut out before parsing, by the ticket that stands in its place.
    """

    def __init__(self, path: str | os.PathLike[str] | None, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.node: onnx.NodeProto | None = None
        self.ir_version = 0
        self.shapes: dict[bytes, onnx_ir.Shape] = {}
        self.dtypes: set[int] = set()
        self.total_bytes = 0
        self.bulk: dict[bytes, memoryview] = {}
        self._graphs: list[str] = []
        self._nodes = 0

    @contextmanager
    def inside(self, graph: str) -> Iterator[None]:
        """Enter a graph or function; afterwards the node that holds it is the current one again."""
        if len(self._graphs) > self.limits.nesting:
            raise self.over(f"graphs are nested more than {self.limits.nesting} levels deep", "nesting")
        outer = self.node
        self._graphs.append(graph or "unnamed")
        self.node = None
        yield
        self._graphs.pop()
        self.node = outer

    def error(self, message: str, *, value: str | None = None, hint: str | None = None) -> ModelFormatError:
        """A ``ModelFormatError`` that names the current place."""
        return ModelFormatError(message, **self._where(), value=value, hint=hint)

    def over(self, message: str, limit: str) -> ResourceLimitError:
        """A ``ResourceLimitError`` that names the current place and the limit to raise."""
        hint = f"raise Limits.{limit}, or load with trust='trusted' if you trust where the file comes from"
        return ResourceLimitError(message, **self._where(), hint=hint)

    def text(self, value: str | bytes) -> str:
        """The string itself, once it is known to be text: protobuf hands out bytes for what is not UTF-8."""
        if isinstance(value, bytes):
            raise self.error(f"{value[:40]!r} is not UTF-8 text")
        return value

    def all_text(self, *values: str) -> tuple[str, ...]:
        """Several strings, once they are known to be text."""
        for value in values:
            if type(value) is not str:
                self.text(value)
        return values

    def texts(self, entries: Iterable[onnx.StringStringEntryProto]) -> dict[str, str]:
        """Key-value entries as a dictionary."""
        if not entries:
            return {}
        texts = {entry.key: entry.value for entry in entries}
        if {*map(type, texts), *map(type, texts.values())} != {str}:
            self.all_text(*texts, *texts.values())
        return texts

    def check_texts(self, message: Any) -> None:
        """Check every string of a message that is carried along unchanged."""
        for field, value in message.ListFields():
            values = value if field.is_repeated else [value]
            if field.type == field.TYPE_MESSAGE:
                for item in values:
                    self.check_texts(item)
            elif field.type == field.TYPE_STRING:
                for item in values:
                    self.text(item)

    def count_nodes(self, number: int) -> None:
        """Count nodes of the file."""
        self._nodes += number
        if self._nodes > self.limits.nodes:
            raise self.over(f"the file has more than {self.limits.nodes} nodes", "nodes")

    def count_bytes(self, nbytes: int, name: str) -> None:
        """Count the size of one tensor."""
        if nbytes > self.limits.tensor_bytes:
            raise self.over(f"tensor '{name}' has {nbytes} bytes, more than {self.limits.tensor_bytes}", "tensor_bytes")
        self.total_bytes += nbytes
        if self.total_bytes > self.limits.total_bytes:
            raise self.over(f"all tensors together exceed {self.limits.total_bytes} bytes", "total_bytes")

    def _where(self) -> dict[str, Any]:
        node = None if self.node is None else describe_proto(self.node)
        return {"path": self.path, "graph": " > ".join(self._graphs) or None, "node": node}


def describe_proto(node: onnx.NodeProto) -> str:
    """``node 'conv1' (Conv)``: a node that has not been read yet, in the form of ``errors.describe_node``."""
    kind = f"{node.domain}::{node.op_type}" if node.domain else f"{node.op_type}"
    if node.name:
        return f"node '{node.name}' ({kind})"
    first = next((f"{output}" for output in node.output if output), "nothing")
    return f"unnamed node making '{first}' ({kind})"
