"""Protobuf's wire format, as far as large models are read and written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import onnx

GRAPH = onnx.ModelProto.GRAPH_FIELD_NUMBER
INITIALIZER = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
RAW_DATA = onnx.TensorProto.RAW_DATA_FIELD_NUMBER

BYTES = 2
"""The wire type of messages, strings and bytes."""


class Field(NamedTuple):
    """One field of a message: its number and wire type, where its tag begins, and its content."""

    number: int
    kind: int
    tag: int
    start: int
    end: int


class HasBytes(Protocol):
    """What fields are read from."""

    def byte(self, at: int) -> int:
        """One byte.

        Raises:
            IndexError: It lies beyond the end.
        """


def fields(source: HasBytes, at: int, end: int) -> Iterator[Field]:
    """The fields of a message, one after the other.

    Raises:
        IndexError, ValueError: They do not fill it.
    """
    while at < end:
        tag = at
        key, at = _number(source, at)
        kind = key & 7
        if kind == 0:
            start, stop = at, _number(source, at)[1]
        elif kind == BYTES:
            size, start = _number(source, at)
            stop = start + size
        elif kind in (1, 5):
            start, stop = at, at + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"wire type {kind}")
        if stop > end:
            raise ValueError("a field ends beyond its message")
        yield Field(key >> 3, kind, tag, start, stop)
        at = stop


def _number(source: HasBytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = shift = 0
    while True:
        byte = source.byte(at)
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def head(number: int, size: int) -> bytes:
    """The start of a field of ``size`` bytes."""
    return _varint(number << 3 | BYTES) + _varint(size)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
