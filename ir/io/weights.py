"""Where the weights of a model go when it is saved: into the model, into a file beside it, or nowhere if in place."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir

from entrepot.ir.errors import InputError, ModelFormatError
from entrepot.ir.io.external import DataFile, MappedTensor
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.io.serialize import inline, write_header
from entrepot.ir.io.sparse import SparseTensor
from entrepot.ir.io.wire import GRAPH, INITIALIZER, RAW_DATA, head
from entrepot.ir.subgraphs import subgraphs

INLINE_LIMIT = (1 << 31) - (1 << 28)
"""Weights up to this size (1.75 GiB) stay in the model by default: protobuf ends at 2 GiB, and the graph takes some."""

SMALL = 1024
"""Tensors below this many bytes stay in the model: they are shapes and axes, which readers like to see at once."""

STREAMED = 1 << 16
"""Initializers from this size on are written straight from memory, without passing through a proto."""

_PAGE = 4096


@dataclass(frozen=True)
class Slot:
    """A place in a data file; ``location`` is ``None`` for the file that is about to be written."""

    location: str | None
    offset: int
    length: int
    extra: dict[str, str] = field(default_factory=dict)


@dataclass
class Layout:
    """Where each tensor goes.

    Attributes:
        slots: By ``id`` of the tensor: its place in a data file. Every other tensor stays in the model.
        outgoing: What the new data file contains, in order.
        kept: Data files that are used as they are.
    """

    slots: dict[int, Slot] = field(default_factory=dict)
    outgoing: list[onnx_ir.TensorProtocol] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)

    def leaves(self, tensor: onnx_ir.TensorProtocol) -> bool:
        """Whether a tensor stays where it is, in a file beside the model."""
        slot = self.slots.get(id(tensor))
        return slot is not None and slot.location is not None


def lay_out(
    model: onnx_ir.Model | Parsed, folder: Path | None, external_data: str | None, *, gather: bool = False
) -> Layout:
    """Decide for every tensor.

    Args:
        model: What is saved.
        folder: Where it is saved; ``None`` if no file can lie beside it, as with a pipe.
        external_data: As for ``save``.
        gather: As for ``save``.

    Raises:
        InputError: Weights have to lie beside the model, and cannot, or do not.
    """
    layout = Layout()
    if external_data == "auto" and not gather:
        _check_beside(model, folder)
    if folder is None:
        _check_alone(model, external_data)
    if folder is None or external_data is None:
        return layout
    waiting: list[onnx_ir.TensorProtocol] = []
    is_beside = functools.cache(functools.partial(_is_beside, folder))
    for tensor, movable in all_tensors(model):
        location = _place_beside(tensor, is_beside)
        if location is not None and external_data in ("auto", location):
            layout.slots[id(tensor)] = _slot_of(tensor, location)
            layout.kept.add(location)
        elif movable and tensor.nbytes >= SMALL:
            waiting.append(tensor)
    inside = sum(tensor.nbytes for tensor in waiting)
    if external_data != "auto" or inside > INLINE_LIMIT:
        _append(layout, waiting)
    return layout


def _check_beside(model: onnx_ir.Model | Parsed, folder: Path | None) -> None:
    """Refuse to copy weights that are to stay where they are."""
    is_beside = functools.cache(functools.partial(_is_beside, folder)) if folder is not None else None
    for tensor, _ in all_tensors(model):
        if type(tensor) is MappedTensor and tensor.file.stays:
            location = os.fspath(tensor.location)
            if is_beside is None or not is_beside(location, tensor.file):
                raise InputError(
                    f"the weights lie in {tensor.file.path.parent}, and a model refers to files beside it only",
                    hint="save the model there, or copy the weights with save(..., gather=True)",
                )


def _check_alone(model: onnx_ir.Model | Parsed, external_data: str | None) -> None:
    """Refuse to write a model without a folder if it needs one."""
    if external_data not in (None, "auto"):
        raise InputError(
            f"external_data is {external_data!r}, but no weights can lie beside a pipe or a link into another folder",
            hint="leave external_data out, or save to the file itself",
        )
    size = sum(tensor.nbytes for tensor, _ in all_tensors(model))
    if size > INLINE_LIMIT:
        raise InputError(
            f"weights of {size / 2**30:.1f} GiB need a file beside the model, and none can lie beside a pipe or a link "
            "into another folder",
            hint="save to the file itself",
        )


def all_tensors(model: onnx_ir.Model | Parsed) -> Iterator[tuple[onnx_ir.TensorProtocol, bool]]:
    """Every tensor once, and whether it may move to a data file: those in attributes stay where they are."""
    if isinstance(model, Parsed):  # those in attributes are few, and small: the whole file is
        yield from ((tensor, _is_movable(tensor)) for tensor in model.tensors)
        return
    seen: set[int] = set()
    pending = [model.graph, *(function.graph for function in model.functions.values())]
    while pending:
        graph = pending.pop()
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield tensor, _is_movable(tensor)
        for node in graph:
            if not node.attributes.data:
                continue
            pending.extend(subgraphs(node))
            for tensor in _attribute_tensors(node):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield tensor, False


def _is_movable(tensor: onnx_ir.TensorProtocol) -> bool:
    return type(tensor) is MappedTensor or not isinstance(tensor, SparseTensor | onnx_ir.StringTensor)


def _attribute_tensors(node: onnx_ir.Node) -> Iterator[onnx_ir.TensorProtocol]:
    for attribute in node.attributes.data.values():
        if attribute.type not in _TENSORS or attribute.is_ref():
            continue
        if attribute.type == onnx_ir.AttributeType.TENSOR:
            yield attribute.value
        else:
            yield from attribute.value


_TENSORS = (onnx_ir.AttributeType.TENSOR, onnx_ir.AttributeType.TENSORS)


def _place_beside(tensor: onnx_ir.TensorProtocol, is_beside: Callable[[str, DataFile | str], bool]) -> str | None:
    """The location of a tensor's bytes as seen from a folder, if the very same file lies there."""
    if type(tensor) is MappedTensor:  # checked first: isinstance is slow for protocols
        location = os.fspath(tensor.location)
        return location if is_beside(location, tensor.file) else None
    if not isinstance(tensor, onnx_ir.ExternalTensor) or not tensor.base_dir:
        return None
    location = os.fspath(tensor.location)
    return location if is_beside(location, str(tensor.path)) else None


def _is_beside(folder: Path, location: str, file: DataFile | str) -> bool:
    """Whether ``location`` in ``folder`` is this file; asked once for all tensors of a file."""
    if os.path.isabs(location) or ".." in Path(location).parts:
        return False
    if isinstance(file, DataFile):
        return file.is_still(folder / location)
    try:
        return os.path.samefile(file, folder / location)
    except OSError:
        return False


def _slot_of(tensor: onnx_ir.TensorProtocol, location: str) -> Slot:
    if type(tensor) is MappedTensor:
        return Slot(location, tensor.offset or 0, tensor.nbytes, tensor.extra)
    assert isinstance(tensor, onnx_ir.ExternalTensor)
    return Slot(location, tensor.offset or 0, tensor.length or tensor.nbytes)


def _append(layout: Layout, tensors: list[onnx_ir.TensorProtocol]) -> None:
    """Lay tensors out in the new file; what was one range of a mapped file stays one."""
    end = 0
    ranges: dict[tuple[int, int | None, int], Slot] = {}
    for tensor in tensors:
        shared = (id(tensor.file), tensor.offset, tensor.nbytes) if isinstance(tensor, MappedTensor) else None
        slot = ranges.get(shared) if shared else None
        if slot is None:
            alignment = _PAGE if tensor.nbytes >= _PAGE else 64  # pages can be mapped, and cache lines used in place
            offset = math.ceil(end / alignment) * alignment
            slot = Slot(None, offset, tensor.nbytes)
            layout.outgoing.append(tensor)
            end = offset + tensor.nbytes
        if shared:
            ranges[shared] = slot
        layout.slots[id(tensor)] = slot


def write_data(layout: Layout, file: BinaryIO) -> None:
    """Write the new data file, one tensor after the other, each straight from where it is."""
    for tensor in layout.outgoing:
        slot = layout.slots[id(tensor)]
        file.write(b"\0" * (slot.offset - file.tell()))
        write_tensor(tensor, file)


def write_tensor(tensor: onnx_ir.TensorProtocol, file: BinaryIO) -> None:
    """Write a tensor's bytes, and make sure that there are as many as its shape requires."""
    start = file.tell()
    to_file = getattr(tensor, "tofile", None)  # not part of the protocol, but every tensor of onnx_ir has it
    if to_file is None:
        file.write(tensor.tobytes())
    else:
        to_file(file)
    if file.tell() - start != tensor.nbytes:
        raise ModelFormatError(
            f"tensor gives {file.tell() - start} bytes, but type and shape need {tensor.nbytes}", value=tensor.name
        )


class TensorFiller:
    """Puts tensors into protos according to a layout; large initializers are left out for ``write_model`` to stream.

    Args:
        layout: Where each tensor goes.
        data_name: The file that ``Slot.location is None`` stands for.
    """

    def __init__(self, layout: Layout, data_name: str) -> None:
        self._layout = layout
        self._data_name = data_name
        self.streamed: dict[str, onnx_ir.TensorProtocol] = {}
        """Initializers of the main graph whose proto has a header but no data."""

    def __call__(self, proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol, main: bool) -> None:
        """Fill one proto."""
        slot = self._layout.slots.get(id(tensor))
        if slot is not None:
            self._refer(proto, tensor, slot)
        elif main and tensor.nbytes >= STREAMED and not isinstance(tensor, onnx_ir.StringTensor):
            write_header(proto, tensor)
            self.streamed[proto.name] = tensor
        else:
            inline(proto, tensor)

    def _refer(self, proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol, slot: Slot) -> None:
        write_header(proto, tensor)
        proto.data_location = onnx.TensorProto.EXTERNAL
        location = self._data_name if slot.location is None else slot.location
        entries = {"location": location, "offset": str(slot.offset), "length": str(slot.length), **slot.extra}
        for key, value in entries.items():
            proto.external_data.add(key=key, value=value)


def write_model(proto: onnx.ModelProto, streamed: dict[str, onnx_ir.TensorProtocol], file: BinaryIO) -> None:
    """Write the protobuf by hand at its two outer levels, so that large initializers need no second copy in memory.

    Args:
        proto: The model; emptied in the process.
        streamed: Initializers whose data is not in ``proto`` yet, by name.
        file: Where it goes.
    """
    starts = [(tensor.SerializeToString(), streamed.get(tensor.name)) for tensor in proto.graph.initializer]
    del proto.graph.initializer[:]
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    outside = proto.SerializeToString()
    sizes = [
        len(start) + (0 if tensor is None else len(head(RAW_DATA, tensor.nbytes)) + tensor.nbytes)
        for start, tensor in starts
    ]
    graph_size = len(graph) + sum(len(head(INITIALIZER, size)) + size for size in sizes)
    if len(outside) + graph_size > PROTOBUF_LIMIT:
        raise ModelFormatError(
            f"the model would have {len(outside) + graph_size} bytes, but protobuf ends at {PROTOBUF_LIMIT}",
            hint="save with external_data='auto', and keep large tensors out of attributes",
        )
    file.write(outside + head(GRAPH, graph_size) + graph)
    for (start, tensor), size in zip(starts, sizes, strict=True):
        file.write(head(INITIALIZER, size) + start)
        if tensor is not None:
            file.write(head(RAW_DATA, tensor.nbytes))
            write_tensor(tensor, file)


PROTOBUF_LIMIT = (1 << 31) - 64
