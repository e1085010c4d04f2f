"""What a thing is, told by its classes or its contents, without importing any framework."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entrepot.ir.io.foreign import Foreign, recognised

_HEAD = 1 << 12
"""Bytes of a file that are looked at."""


@dataclass(frozen=True)
class Found:
    """Something that is to be exported.

    Attributes:
        obj: The object as it was given.
        sample: What it is called with, which may tell whose function a plain function is.
        path: Where it is, if it is a file or a folder, or the name of one that does not exist.
    """

    obj: Any
    sample: Any = None
    path: Path | None = None

    @classmethod
    def of(cls, obj: Any, sample: Any = None) -> Found:
        """A thing with its path, if it has one."""
        return cls(obj, sample, Path(obj) if isinstance(obj, str | os.PathLike) else None)

    def is_of(self, *packages: str) -> bool:
        """Whether a class of the object, or one of its bases, is defined in one of these packages or modules."""
        homes = [f"{cls.__module__}." for cls in type(self.obj).__mro__]
        return any(home.startswith(f"{package}.") for home in homes for package in packages)

    def samples(self, *packages: str) -> bool:
        """Whether the sample, or a member of it, is of one of these packages."""
        members = self.sample if isinstance(self.sample, tuple | list) else [self.sample]
        return any(Found(member).is_of(*packages) for member in members)

    @property
    def is_function(self) -> bool:
        """Whether it is a plain function, a method or a partial one."""
        return isinstance(self.obj, functools.partial) or (callable(self.obj) and hasattr(self.obj, "__code__"))

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path is not None and os.path.isdir(self.path)  # which, unlike pathlib, takes any name

    def has_suffix(self, *suffixes: str) -> bool:
        """Whether the name of the file or folder ends in one of these."""
        return self.path is not None and self.path.suffix.lower() in suffixes

    def contains(self, name: str) -> bool:
        """Whether it is a folder in which there is a file of this name."""
        return self.path is not None and os.path.isfile(self.path / name)

    @functools.cached_property
    def head(self) -> bytes:
        """The first bytes of the file; empty if there is none, or it cannot be read."""
        if self.path is None or not os.path.isfile(self.path):
            return b""
        try:
            with self.path.open("rb") as file:
                return file.read(_HEAD)
        except OSError:
            return b""

    @functools.cached_property
    def foreign(self) -> Foreign | None:
        """What the file or folder is, by its contents, if that is anything but an ONNX model."""
        return None if self.path is None else recognised(self.path)


_TORCH_SUFFIXES = (".pt2", ".pt", ".pth", ".ts")
_MODEL_FIELDS = frozenset(b"\x12\x1a\x22\x28\x32\x3a\x42\x72")
"""First bytes of what may follow ``ir_version`` in an ``onnx.ModelProto``."""


def is_onnx(found: Found) -> bool:
    """An ONNX model in any form that ``load`` reads."""
    if found.path is None:
        return isinstance(found.obj, bytes | bytearray | memoryview) or found.is_of(
            "onnx", "onnx_ir", "entrepot.ir.model"
        )
    head = found.head
    by_content = len(head) > 2 and head[0] == 8 and 3 <= head[1] < 128 and head[2] in _MODEL_FIELDS
    return by_content or (found.has_suffix(".onnx") and found.foreign is None)


def is_torch(found: Found) -> bool:
    """A module, a program or a script, or an archive that torch writes."""
    if found.path is None:
        return found.is_of("torch")
    if found.foreign is not None:
        return found.foreign.framework == "torch"
    return found.has_suffix(*_TORCH_SUFFIXES)
