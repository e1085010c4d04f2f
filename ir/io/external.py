"""External data: the files beside a model, opened safely, mapped once and never copied.

A location is trusted only as far as it can be checked: it is relative, has no ``..``, ends in a regular file inside
the model's folder (or, for the links of a Hugging Face cache, inside the ``blobs`` of the same cache), and is opened
one component at a time without following links, so that nothing can be swapped between the check and the opening. What
is mapped stays what was checked: a file replaced later does not change the weights of a model already loaded.
"""

from __future__ import annotations

import errno
import hashlib
import math
import mmap
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import onnx
import onnx_ir

from entrepot.ir.io.bulk import InFile, split
from entrepot.ir.io.context import Context
from entrepot.ir.io.copying import copy_part

_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_BINARY = os.O_RDONLY | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class DataFile:
    """A weights file as it was when the model was read.

    Attributes:
        path: Its place, absolute.
        identity: Device, inode and size, to know it again.
        content: Its bytes, mapped.
        stays: Whether a model that is saved elsewhere takes its weights along only if that is asked for.
    """

    path: Path
    identity: tuple[int, int, int]
    content: memoryview = field(repr=False, compare=False)
    stays: bool = False

    def is_still(self, path: Path) -> bool:
        """Whether the file at ``path`` is this file."""
        try:
            return _identity(path.stat()) == self.identity
        except OSError:
            return False


class MappedTensor(onnx_ir.ExternalTensor):
    """A tensor whose bytes lie in a mapped ``DataFile``.

    Args:
        file: Where the bytes are.
        location: The file as the model names it.
        offset: First byte.
        dtype: Element type.
        shape: Its dimensions.
        name: Its name.
        extra: Further entries of the file's ``external_data``, carried along.
        doc_string: Its documentation.
        metadata_props: Its metadata.
    """

    __slots__ = ("_mapped", "extra", "file")

    def __init__(
        self,
        file: DataFile,
        location: str,
        offset: int,
        dtype: onnx_ir.DataType,
        *,
        shape: onnx_ir.Shape,
        name: str,
        extra: dict[str, str] | None = None,
        doc_string: str | None = None,
        metadata_props: dict[str, str] | None = None,
    ) -> None:
        length = -(-dtype.bitwidth * math.prod(shape.numpy()) // 8)
        super().__init__(
            location, offset, length, dtype, shape=shape, name=name, base_dir=file.path.parent,
            doc_string=doc_string, metadata_props=metadata_props,
        )  # fmt: skip
        self.file = file
        self.extra = extra or {}
        self._mapped: np.ndarray[Any, Any] | None = None

    @property
    def content(self) -> memoryview:
        """The bytes of this tensor, mapped."""
        start = self.offset or 0
        return self.file.content[start : start + (self.length or 0)]

    def numpy(self) -> np.ndarray[Any, Any]:
        """A read-only array over the mapped bytes; types of less than a byte are unpacked."""
        if self._mapped is None:
            self._mapped = array_of(self.content, self.dtype, tuple(self.shape.numpy()))
        return self._mapped

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return array.astype(dtype, copy=bool(copy)) if dtype is not None else array.copy() if copy else array

    def tobytes(self) -> bytes:
        """A copy of the bytes."""
        return self.content.tobytes()

    def tofile(self, file: Any) -> None:
        """Write the bytes without a copy in memory."""
        copy_part(self.file.path, self.file.identity, self.content, self.offset or 0, file)

    def release(self) -> None:
        """Forget the array; the mapping itself ends with its last user."""
        self._mapped = None


def array_of(content: Any, dtype: onnx_ir.DataType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Bytes in ONNX's layout as an array of the element type, over the same memory where the type allows it."""
    if dtype.bitwidth < 8:
        packed = np.frombuffer(content, dtype=np.uint8)
        return onnx_ir.PackedTensor(packed, dtype, shape=onnx_ir.Shape(shape)).numpy().reshape(shape)
    array = (
        np.frombuffer(content, dtype=dtype.numpy().newbyteorder("<")) if len(content) else np.empty(0, dtype.numpy())
    )
    return array.reshape(shape)


class DataFolder:
    """The data files of one model, each opened and checked once.

    Args:
        context: For errors.
        base: Folder of the model, or ``None`` when it was not read from a file.
        follow_links: Follow links anywhere (``trust="trusted"``).
    """

    def __init__(self, context: Context, base: Path | None, *, follow_links: bool) -> None:
        self._context = context
        self._base = base
        self._follow_links = follow_links
        self._files: dict[str, DataFile] = {}
        self._sums: dict[str, str] = {}

    def tensor(
        self, proto: onnx.TensorProto, dtype: onnx_ir.DataType, shape: onnx_ir.Shape, nbytes: int, name: str
    ) -> MappedTensor:
        """The tensor that a proto with ``data_location == EXTERNAL`` refers to."""
        entries = self._entries(proto, name)
        location = entries.pop("location", "")
        offset = self._number(entries.pop("offset", None), 0, name)
        length = self._number(entries.pop("length", None), nbytes, name)
        if length != nbytes:
            raise self._context.error(f"length says {length} bytes, but type and shape need {nbytes}", value=name)
        file = self._file(location, name)
        if offset + nbytes > len(file.content):
            raise self._context.error(
                f"bytes {offset} to {offset + nbytes} lie outside '{location}', which has {len(file.content)}",
                value=name, hint="the data file is truncated or belongs to another model",
            )  # fmt: skip
        if "checksum" in entries:
            self._check_sum(file, location, entries["checksum"], name)
        return MappedTensor(
            file, location, offset, dtype, shape=shape, name=name, extra=entries,
            doc_string=self._context.text(proto.doc_string) or None,
            metadata_props=self._context.texts(proto.metadata_props),
        )  # fmt: skip

    def _entries(self, proto: onnx.TensorProto, name: str) -> dict[str, str]:
        entries = self._context.texts(proto.external_data)
        if len(entries) != len(proto.external_data):
            raise self._context.error("external data gives a key twice", value=name)
        return entries

    def _number(self, text: str | None, default: int, name: str) -> int:
        if text is None:
            return default
        if not _NUMBER.fullmatch(text):
            raise self._context.error(f"{text[:40]!r} is not an offset or length of external data", value=name)
        return int(text)

    def _file(self, location: str, name: str) -> DataFile:
        if location not in self._files:
            try:
                self._files[location] = self._open(location, name)
            except OSError as error:
                message = f"external data '{location}' cannot be read: {error.strerror}"
                hint = f"it was looked for in '{self._base}'"
                raise self._context.error(message, value=name, hint=hint) from error
        return self._files[location]

    def _open(self, location: str, name: str) -> DataFile:
        if self._base is None:
            hint = "load the model from its path, so that its folder is known"
            raise self._context.error(f"external data '{location}' in a model without a file", value=name, hint=hint)
        reason = _objection(location)
        if reason:
            raise self._context.error(f"external data location {location[:200]!r} {reason}", value=name)
        path = self._base / location
        if self._follow_links:
            return map_file(os.open(path, _BINARY | (_NO_LINKS & ~getattr(os, "O_NOFOLLOW", 0))), path)
        real = Path(os.path.realpath(path))
        anchor = _anchor(Path(os.path.realpath(self._base)), real)
        if anchor is None:
            hint = "links may not lead out of the model's folder; trust='trusted' lifts this rule"
            raise self._context.error(f"external data '{location}' leads out of the folder", value=name, hint=hint)
        return map_file(_open_beneath(anchor, real), path)

    def _check_sum(self, file: DataFile, location: str, expected: str, name: str) -> None:
        if location not in self._sums:
            self._sums[location] = hashlib.sha1(file.content, usedforsecurity=False).hexdigest()
        if self._sums[location] != expected.strip().lower():
            raise self._context.error(
                f"checksum of '{location}' is {self._sums[location]}, but the model says {expected[:60]}",
                value=name, hint="the data file is damaged or belongs to another model",
            )  # fmt: skip


def _objection(location: str) -> str:
    """Why a location is unacceptable, whatever lies there, or an empty string."""
    windows = PureWindowsPath(location)
    if not location:
        return "is empty"
    if "\0" in location:
        return "contains a NUL"
    if location.startswith(("/", "\\")) or windows.drive or windows.root:
        return "is not relative"
    return "holds '..'" if ".." in windows.parts else ""


def _anchor(base: Path, real: Path) -> Path | None:
    """The folder that a resolved path may lie in: the model's own, or the blobs of its Hugging Face cache."""
    if real.is_relative_to(base):
        return base
    for folder in (base, *base.parents):
        if folder.name == "snapshots":
            blobs = folder.parent / "blobs"
            return blobs if not blobs.is_symlink() and real.is_relative_to(blobs) else None
    return None


def _open_beneath(anchor: Path, real: Path) -> int:
    """Open component by component, following no link: what was resolved is what is opened."""
    if os.open not in os.supports_dir_fd:  # Windows
        return os.open(real, _BINARY | _NO_LINKS)
    *folders, name = real.relative_to(anchor).parts or (".",)
    folder = os.open(anchor, os.O_RDONLY | _DIRECTORY)
    try:
        for part in folders:
            inner = os.open(part, os.O_RDONLY | _DIRECTORY | _NO_LINKS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, _BINARY | _NO_LINKS, dir_fd=folder)
    finally:
        os.close(folder)


def map_file(descriptor: int, path: Path) -> DataFile:
    """Map an open file and close it; a FIFO, device or folder is an ``OSError``."""
    try:
        status = _regular(descriptor)
        # an empty file cannot be mapped
        content = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if status.st_size else b""
        return DataFile(path, _identity(status), memoryview(content))
    finally:
        os.close(descriptor)


def map_privately(path: Path) -> tuple[DataFile, mmap.mmap]:
    """Map a file that stays where it is; what is written to the mapping is seen by nobody else.

    Raises:
        OSError: It cannot be mapped: it is empty, for example.
    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return DataFile(path.absolute(), _identity(status), memoryview(content).toreadonly(), stays=True), content


def read_file(path: Path, most: int) -> tuple[bytes, dict[bytes, memoryview]]:
    """A model file that the caller named, its weights apart; a FIFO, device or folder is an ``OSError``, at once.

    Args:
        path: The file.
        most: Files with more bytes are an ``OSError`` with ``EFBIG``.
    """
    descriptor = os.open(path, _BINARY | (_NO_LINKS & ~getattr(os, "O_NOFOLLOW", 0)))
    try:
        size = _regular(descriptor).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has more than {most} bytes")
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return split(InFile(file, size))
    finally:
        os.close(descriptor)


def _regular(descriptor: int) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return status


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_size
