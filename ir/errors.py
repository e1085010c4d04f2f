"""The one error tree: every error says what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    import onnx_ir


MALFORMED = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""What code that reads nodes raises when one breaks its schema: an axis out of range, an absurd size, no attribute."""

DEFECT = "if onnx.checker accepts the model, please report this as a bug"


class EntrepotError(Exception):
    """Base of every error that entrepot raises on purpose.

    Args:
        message: What happened and what was expected, as one sentence without a final full stop.
        path: File concerned.
        graph: Name of the graph, subgraph or function concerned.
        node: The node concerned, as ``describe_node`` gives it.
        value: Name of the value (tensor) concerned.
        hint: What the caller can do about it.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        graph: str | None = None,
        node: str | None = None,
        value: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.graph = graph
        self.node = node
        self.value = value
        self.hint = hint

    @property
    def location(self) -> str:
        """Where it happened, outermost first; empty when nothing is known."""
        parts = [
            f"file '{self.path}'" if self.path is not None else "",
            f"graph '{self.graph}'" if self.graph else "",
            self.node or "",
            f"value '{self.value}'" if self.value else "",
        ]
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}" if self.location else self.message
        return f"{text} (hint: {self.hint})" if self.hint else text


class ModelFormatError(EntrepotError, ValueError):
    """A file or proto is not a valid model; the message names file, graph, node and cause."""


class UnsupportedOpError(EntrepotError, NotImplementedError):
    """An operator, or the way it is used, has no meaning registered for the target."""


class ConversionError(EntrepotError, ValueError):
    """A model cannot be converted as asked; nothing was changed.

    Attributes:
        blockers: Every reason found, one error per place, so that all can be fixed at once.
    """

    def __init__(self, message: str, *, blockers: tuple[EntrepotError, ...] = (), **where: str | None) -> None:
        super().__init__(message, **where)
        self.blockers = blockers

    def __str__(self) -> str:
        return "\n  - ".join([super().__str__(), *_told(self.blockers)])


_ALIKE = 3
"""Places that are told of one reason; the others are counted."""


def _told(errors: Iterable[EntrepotError]) -> Iterator[str]:
    """Lines for errors: those that give one reason for one operator together."""
    groups: dict[tuple[str, str, str | None], list[EntrepotError]] = {}
    for error in errors:
        operator = (error.node or "").rpartition(" (")[2].rstrip(")")
        groups.setdefault((operator, error.message, error.hint), []).append(error)
    for (operator, _, _), alike in groups.items():
        yield from map(str, alike[:_ALIKE])
        if len(alike) > _ALIKE:
            yield f"{len(alike) - _ALIKE} more{f' ({operator})' if operator else ''} for the same reason"


class VerificationError(EntrepotError, AssertionError):
    """Two things that should compute the same thing do not.

    Attributes:
        report: The ``entrepot.parity.Report`` with every comparison made.
    """

    def __init__(self, message: str, *, report: object = None, **where: str | None) -> None:
        super().__init__(message, **where)
        self.report = report


class ResourceLimitError(EntrepotError, RuntimeError):
    """A model asks for more than ``Limits`` allows; raised before anything is allocated."""


class StorageError(EntrepotError, OSError):
    """A file cannot be read or written because of the disk, not because of the model.

    Attributes:
        errno: The system's number for the reason, such as ``errno.ENOSPC``.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        errno: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, path=path, hint=hint)
        self.errno = errno


class MissingFileError(StorageError, FileNotFoundError):
    """There is no such file or folder."""


class InputError(EntrepotError, ValueError):
    """A feed, sample or argument does not fit what the model or function takes."""


class ExecutionError(EntrepotError, RuntimeError):
    """A node failed while a model ran: its operands do not fit together, or memory ran out."""


class MissingDependencyError(EntrepotError, ImportError):  # type: ignore[misc] # both have a path, and mean different ones
    """An optional package is needed but not installed; the hint is the command that installs it."""


class PluginError(MissingDependencyError):
    """What another distribution registers by an entry point is needed and broken; the message names it."""


def describe_node(node: onnx_ir.Node, opset: int | None = None) -> str:
    """``node 'conv1' (Conv, opset 13)``, as every error names a node."""
    domain = f"{node.domain}::" if node.domain else ""
    version = node.version if opset is None else opset
    suffix = "" if version is None else f", opset {version}"
    if node.name:
        return f"node '{node.name}' ({domain}{node.op_type}{suffix})"
    first = next((output.name for output in node.outputs if output.name), "?")
    return f"unnamed node making '{first}' ({domain}{node.op_type}{suffix})"
