"""Safe writing: at any moment the old pair of model and weights file, or the new one, is whole.

The model file is what counts: a save is done when the new one is renamed over the old one. For the rest it is enough
that no data file on disk is ever changed or replaced:

1. New weights are written to a hidden file, synchronised, and renamed to the name asked for if that is free. If it is
   taken, they are called ``<stem>.<8 hex digits><suffix>``, a new name each time. (A second link under the name asked
   for would be nicer to look at, but onnx refuses data files with several links, and a kill can leave one behind.)
2. The new model, which refers to them, is written and synchronised in the same way, and renamed into place.
3. The data file of the old model is removed, unless another ``.onnx`` file in the folder mentions it. The next save
   then finds the name asked for free again. A hidden note makes sure that it is also removed after a kill.

Weights that lie in the folder already, unchanged, are referred to and not written. Mapped weights stay valid when their
file is removed: the mapping keeps the bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir

from entrepot.ir.errors import InputError
from entrepot.ir.io.atomic import Staging, folder_lock, mentions, sync_folder
from entrepot.ir.io.destination import Destination, Target, destination, open_file
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.io.serialize import inline, serialize, write_header
from entrepot.ir.io.weights import Layout, TensorFiller, lay_out, write_data, write_model


def to_proto(model: onnx_ir.Model) -> onnx.ModelProto:
    """The model as a new ``onnx.ModelProto``, weights included."""
    return serialize(model, inline)


def nbytes(model: onnx_ir.Model) -> int:
    """Bytes of the model in one file, give or take a few per weight, without building it."""
    held: list[int] = []

    def count(proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol, _main: bool) -> None:
        write_header(proto, tensor)
        held.append(tensor.nbytes)

    return serialize(model, count).ByteSize() + sum(held)


def save(
    model: onnx_ir.Model | Parsed, path: Target, *, external_data: str | None = "auto", gather: bool = False
) -> None:
    """Write a model, atomically for model and data together; the model itself is not changed.

    Args:
        model: What to write. It stays usable, also when it was read from the very files that are replaced.
        path: Where the ``.onnx`` file goes; its folder must exist. A link stays, and what it points to is replaced. A
            pipe, a character device or an open binary file is written to directly, weights included.
        external_data: ``"auto"`` refers to weights that lie in the folder already, and puts the others into the model,
            or into ``<file name>.data`` when they pass 1.75 GiB. Another string names the data file, beside the model,
            for all weights of 1 KiB or more. ``None`` keeps everything inside. No existing file is replaced by a data
            file: if the name is taken, the new one is called ``<stem>.<8 hex digits><suffix>``, and the old one is
            removed once the model is saved and no other model in the folder uses it.
        gather: Copy weights too that an export left in the files they came from.

    Raises:
        StorageError: The files cannot be written (an ``OSError``); what was there before is untouched.
        MissingFileError: The folder does not exist.
        ModelFormatError: The model is not complete, or too large for one file.
        InputError: ``path`` is not a place for a file, ``external_data`` is not the name of one, or weights would have
            to lie beside a pipe.
    """
    file = open_file(path)
    if file is not None:
        _write_alone(model, external_data, file, gather=gather)
        return
    place = destination(path)  # type: ignore[arg-type] # it is no open file
    with place.errors():
        if place.is_stream:
            with place.stream() as stream:
                _write_alone(model, external_data, stream, gather=gather)
        else:
            _replace(model, place, external_data, gather=gather)


def _write_alone(model: onnx_ir.Model | Parsed, external_data: str | None, file: BinaryIO, *, gather: bool) -> None:
    """Write a model that can have no file beside it."""
    _write(model, lay_out(model, None, external_data, gather=gather), "", file)


def _replace(model: onnx_ir.Model | Parsed, place: Destination, external_data: str | None, *, gather: bool) -> None:
    staging = Staging(place.path)
    data_name = _data_name(place.path, external_data)
    try:
        with folder_lock(place.path.parent) as locked:
            layout = lay_out(model, place.beside, external_data, gather=gather)
            _Save(model, staging, data_name, layout, locked=locked).run()
    finally:
        with contextlib.suppress(OSError):
            staging.clear()


def _write(model: onnx_ir.Model | Parsed, layout: Layout, data_name: str, file: BinaryIO) -> None:
    filler = TensorFiller(layout, data_name)
    proto = model.serialize(filler, layout.leaves) if isinstance(model, Parsed) else serialize(model, filler)
    write_model(proto, filler.streamed, file)


_OBSOLETE = b"entrepot: ours to remove\0"
"""The start of a hidden file that names the data files of a save in progress: the old model's and the new one's."""


class _Save:
    """One save, under the lock of its folder."""

    def __init__(
        self, model: onnx_ir.Model | Parsed, staging: Staging, data_name: str, layout: Layout, *, locked: bool
    ) -> None:
        self._model = model
        self._staging = staging
        self._path = staging.path
        self._folder = staging.path.parent
        self._data_name = data_name
        self._layout = layout
        self._locked = locked

    def run(self) -> None:
        stale = self._own_data_files() - self._layout.kept
        name = self._free_name() if self._layout.outgoing else ""
        if stale or name:
            note = _OBSOLETE + "\0".join({*stale, name}).encode()
            self._staging.write(lambda file: file.write(note))
        self._staging.clear_killed(locked=self._locked)  # after the note, which repeats what theirs say
        if name:
            data = self._staging.write(lambda file: write_data(self._layout, file))
            os.rename(data, self._folder / name)
            sync_folder(self._folder)
        self._publish_model(name)
        for old in stale - {name}:
            if not self._is_used_elsewhere(old):
                (self._folder / old).unlink(missing_ok=True)

    def _free_name(self) -> str:
        """The name asked for, or one with a number if it is taken."""
        name = self._data_name
        while os.path.lexists(self._folder / name):
            stem, suffix = os.path.splitext(self._data_name)
            name = f"{stem}.{secrets.token_hex(4)}{suffix}"
        return name

    def _publish_model(self, data_name: str) -> None:
        written = self._staging.write(lambda file: _write(self._model, self._layout, data_name, file))
        os.replace(written, self._path)
        sync_folder(self._folder)

    def _own_data_files(self) -> set[str]:
        """Data files that only the model about to be replaced can be using.

        Their names are those that a save gives. A name without a number could also be somebody else's: it counts if
        the old model mentions it, or a save that was killed noted it as its own.
        """
        obsolete = b"\0".join(self._staging.killed_notes(_OBSOLETE)).split(b"\0")
        found = set()
        for name in {self._data_name, f"{self._path.name}.data"}:
            stem, suffix = map(re.escape, os.path.splitext(name))
            numbered = re.compile(rf"{stem}\.[0-9a-f]{{8}}{suffix}")
            found |= {other for other in os.listdir(self._folder) if numbered.fullmatch(other)}
            if mentions(self._path, name) or name.encode() in obsolete:
                found.add(name)
        return found

    def _is_used_elsewhere(self, name: str) -> bool:
        """Whether a data file may be in use by another model in the folder, or is not a plain file."""
        try:
            if not stat.S_ISREG(os.lstat(self._folder / name).st_mode):
                return True
        except FileNotFoundError:
            return False
        others = [other for other in os.listdir(self._folder) if other.endswith(".onnx") and other != self._path.name]
        return any(mentions(self._folder / other, name) for other in others)


def _data_name(path: Path, external_data: str | None) -> str:
    if external_data is None or external_data == "auto":
        return f"{path.name}.data"
    plain = external_data not in ("", ".", "..", path.name) and not re.search(r"[/\\\0]", external_data)
    if not plain or os.path.basename(external_data) != external_data:
        raise InputError(
            f"external_data is {external_data!r}, but must be 'auto', None or a file name other than the model's",
            hint="the data file lies beside the model; give its name without a folder",
        )
    return external_data
