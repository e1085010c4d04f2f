"""Weights of a serialised model, cut out before it is parsed: protobuf would copy all of them, and we once more."""

from __future__ import annotations

import errno
import io
import os
from typing import NamedTuple, Protocol

import numpy as np

from entrepot.ir.io.wire import BYTES, GRAPH, INITIALIZER, RAW_DATA, Field, fields, head

WORTH = 1 << 24
"""Bytes of a file from which on its weights are cut out."""

LEAST = 1 << 12
"""Bytes of a tensor that is cut out; tickets are shorter."""

TICKET = 24
"""Bytes that stand in the place of those cut out: a random number that no file can guess, and a count."""


class Source(Protocol):
    """Where a model is read from: bytes one by one, and in pieces."""

    size: int

    def byte(self, at: int) -> int:
        """One byte.

        Raises:
            IndexError: It lies beyond the end.
        """

    def piece(self, start: int, end: int) -> bytes:
        """Some of it."""

    def array(self, start: int, end: int) -> memoryview:
        """Some of it in memory of its own, which begins where numbers may lie, and cannot be written."""


class InMemory:
    """Bytes of a caller."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)

    def byte(self, at: int) -> int:
        """One byte."""
        return self._content[at]

    def piece(self, start: int, end: int) -> bytes:
        """Some of them."""
        return self._content[start:end]

    def array(self, start: int, end: int) -> memoryview:
        """A copy."""
        array = np.frombuffer(self._content, np.uint8, end - start, start).copy()
        array.flags.writeable = False
        return array.data


class InFile:
    """An open file; what is cut out goes straight to where it stays."""

    _CHUNK = 1 << 16

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file = file
        self.size = size
        self._start, self._chunk = 0, b""

    def byte(self, at: int) -> int:
        """One byte."""
        index = at - self._start
        if not 0 <= index < len(self._chunk):
            if at >= self.size:
                raise IndexError(at)
            self._start, self._chunk, index = at, self.piece(at, min(at + self._CHUNK, self.size)), 0
        return self._chunk[index]

    def piece(self, start: int, end: int) -> bytes:
        """Some of it."""
        return bytes(self.array(start, end))

    def array(self, start: int, end: int) -> memoryview:
        """Some of it, read into new memory.

        Raises:
            OSError: The file has become shorter.
        """
        array = np.empty(end - start, np.uint8)
        view, done = array.data, 0
        self._file.seek(start)
        while done < len(view):
            count = self._file.readinto(view[done:])
            if not count:
                raise OSError(errno.EIO, "it became shorter while it was read")
            done += count
        array.flags.writeable = False
        return array.data


def split(source: Source) -> tuple[bytes, dict[bytes, memoryview]]:
    """The model with a ticket in place of the data of each large initializer, and the data by ticket.

    Small files, and what cannot be followed, are returned whole, for protobuf to judge.
    """
    if source.size < WORTH:
        return source.piece(0, source.size), {}
    try:
        graphs = [field for field in fields(source, 0, source.size) if field.number == GRAPH]
        stubs = _stubs(source, graphs[0]) if len(graphs) == 1 and graphs[0].kind == BYTES else []
    except (IndexError, ValueError):
        stubs = []
    if not stubs:
        return source.piece(0, source.size), {}
    data = {stub.ticket: source.array(stub.raw.start, stub.raw.end) for stub in stubs}
    body = _without_data(source, graphs[0], stubs)
    tag = head(GRAPH, len(body))
    return b"".join([source.piece(0, graphs[0].tag), tag, body, source.piece(graphs[0].end, source.size)]), data


class _Stub(NamedTuple):
    """An initializer, its data, and the ticket that replaces it."""

    tensor: Field
    raw: Field
    ticket: bytes


def _stubs(source: Source, graph: Field) -> list[_Stub]:
    secret = os.urandom(TICKET - 8)
    found: list[_Stub] = []
    for field in fields(source, graph.start, graph.end):
        if field.number == INITIALIZER and field.kind == BYTES and field.end - field.start >= LEAST:
            raw = [inner for inner in fields(source, field.start, field.end) if inner.number == RAW_DATA]
            if len(raw) == 1 and raw[0].kind == BYTES and raw[0].end - raw[0].start >= LEAST:
                found.append(_Stub(field, raw[0], secret + len(found).to_bytes(8, "little")))
    return found


def _without_data(source: Source, graph: Field, stubs: list[_Stub]) -> bytes:
    pieces, kept = [], graph.start
    for tensor, raw, ticket in stubs:
        parts = [
            source.piece(tensor.start, raw.tag), head(RAW_DATA, TICKET), ticket,
            source.piece(raw.end, tensor.end),
        ]  # fmt: skip
        pieces += [source.piece(kept, tensor.tag), head(INITIALIZER, sum(map(len, parts))), *parts]
        kept = tensor.end
    pieces.append(source.piece(kept, graph.end))
    return b"".join(pieces)
