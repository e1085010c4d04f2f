"""Weights in safetensors files, mapped where they are: for modules that were built without any, on the meta device."""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir
import torch

from entrepot.exporters.notes import listed
from entrepot.ir.errors import InputError, MissingFileError, ModelFormatError
from entrepot.ir.io.external import DataFile, MappedTensor, map_privately

_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_MOST_HEADER = 100_000_000  # bytes, as in safetensors itself


@dataclass(frozen=True)
class Stored:
    """A tensor in a file.

    Attributes:
        file: The file, mapped.
        offset: Its first byte there.
        tensor: The same bytes as torch sees them; what is written to them stays in memory.
    """

    file: DataFile
    offset: int
    tensor: torch.Tensor


class Checkpoint:
    """The weights of a module that has none, by the tensors that stand in for them.

    Args:
        module: Some of its parameters and buffers are on the meta device.
        path: A safetensors file, or a folder of them.

    Raises:
        InputError: A tensor that the module lacks is in no file, or has another shape there.
        MissingFileError: There is no such file, or no such files in the folder.
        ModelFormatError: It is no safetensors file.
    """

    def __init__(self, module: torch.nn.Module, path: Path) -> None:
        self._places = [
            (holder, key, tensor, f"{name}.{key}" if name else key)
            for name, part in module.named_modules()
            for holder in (vars(part)["_parameters"], vars(part)["_buffers"])
            for key, tensor in holder.items()
            if tensor is not None and tensor.device.type == "meta"
        ]
        if not self._places:
            raise InputError(
                "the module has its weights already", hint="leave weights out, or build it on the meta device"
            )
        stored = _read(path)
        self._found: dict[int, Stored] = {}
        for _, _, tensor, name in self._places:
            if name in stored:
                self._found.setdefault(id(tensor), _fitting(name, tensor, stored[name]))
        missing = [name for _, _, tensor, name in self._places if id(tensor) not in self._found]
        if missing:
            raise InputError(
                f"on the meta device, and in none of the files: {listed(missing)}",
                path=path,
                hint="give all files; build buffers that are in no file with their values, on the CPU",
            )
        self._by_address = {each.tensor.data_ptr(): each for each in self._found.values()}

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Inside, the module has its weights; afterwards it is on the meta device again."""
        made: dict[int, torch.Tensor] = {}  # what is tied stays tied
        for holder, key, tensor, _ in self._places:
            values = self._found[id(tensor)].tensor
            wanted = values if not isinstance(tensor, torch.nn.Parameter) else torch.nn.Parameter(values, False)
            holder[key] = made.setdefault(id(tensor), wanted)
        try:
            yield
        finally:
            for holder, key, tensor, _ in self._places:
                holder[key] = tensor

    def release(self) -> None:
        """Give back the memory that was needed to read the weights; they are read again when they are needed."""
        for content in {id(each.file): each.file.content.obj for each in self._found.values()}.values():
            if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                content.madvise(mmap.MADV_DONTNEED)

    def reference(self, tensor: onnx_ir.TensorProtocol) -> MappedTensor | None:
        """A tensor of a graph as one in the file that it comes from, or ``None`` if it comes from none."""
        raw = getattr(tensor, "raw", None)
        stored = self._by_address.get(raw.data_ptr()) if isinstance(raw, torch.Tensor) and raw.numel() else None
        if raw is None or stored is None or raw.shape != stored.tensor.shape or not raw.is_contiguous():
            return None
        shape = onnx_ir.Shape(tensor.shape.numpy())
        return MappedTensor(
            stored.file, stored.file.path.name, stored.offset, tensor.dtype, shape=shape, name=tensor.name or ""
        )


def _read(path: Path) -> dict[str, Stored]:
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise MissingFileError("there is no safetensors file", path=path)
    return {name: stored for file in files for name, stored in _stored(file)}


def _stored(path: Path) -> Iterator[tuple[str, Stored]]:
    try:
        file, content = map_privately(path)
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"not a safetensors file: {error}", path=path) from error
    header, start = _header(path, content)
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, _entry(name, entry, file, content, start)


def _header(path: Path, content: mmap.mmap) -> tuple[Mapping[str, Any], int]:
    size = int.from_bytes(content[:8], "little")
    header = None
    if len(content) >= 8 and size <= min(_MOST_HEADER, len(content) - 8):
        with contextlib.suppress(ValueError, RecursionError):
            header = json.loads(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise ModelFormatError("not a safetensors file: it does not begin with a table of tensors", path=path)
    return header, 8 + size


def _entry(name: str, entry: Any, file: DataFile, content: mmap.mmap, start: int) -> Stored:
    try:
        dtype, shape = _TYPES[entry["dtype"]], tuple(map(int, entry["shape"]))
        first, end = map(int, entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFormatError(f"the entry of '{name}' makes no sense: {error!r}", path=file.path) from error
    count = math.prod(shape)
    inside = min(shape, default=0) >= 0 and 0 <= first <= end <= len(content) - start
    if not inside or end - first != count * dtype.itemsize:
        raise ModelFormatError(f"'{name}' of shape {shape} does not fit into its part of the file", path=file.path)
    if count == 0:
        return Stored(file, start + first, torch.empty(shape, dtype=dtype))
    flat = torch.frombuffer(content, dtype=dtype, count=count, offset=start + first)
    return Stored(file, start + first, flat.reshape(shape))


def _fitting(name: str, tensor: torch.Tensor, stored: Stored) -> Stored:
    if tensor.shape != stored.tensor.shape:
        raise InputError(
            f"the file has shape {tuple(stored.tensor.shape)}, the module {tuple(tensor.shape)}",
            value=name,
            path=os.fspath(stored.file.path),
        )
    return stored
