"""Safe writing: at any moment the old pair of model and weights file, or the new one, is whole.

The model file is what counts: a save is done when the new one is renamed over the old one. The rest follows from never
changing a data file that a model on disk still refers to:

1. New weights are written to a hidden file, synchronised, and renamed to their name if that is free.
2. If it is taken, they get an interim name ``<model>.<8 hex digits>.data``, and the new model refers to that one. Now
   nothing refers to the old data file any more, so it can be replaced by the new one (a second link to the same bytes),
   the model be renamed once more, now with the final name in it, and the interim name go.
3. If another ``.onnx`` file of the folder mentions the old data file, it stays, and so does the interim name.

Weights that lie in the folder already, unchanged, are referred to and not written. Mapped weights stay valid when their
file is replaced: the mapping keeps the old bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import onnx
import onnx_ir

from entrepot.ir.errors import InputError, MissingFileError, StorageError
from entrepot.ir.io.atomic import Staging, folder_lock, mentions, sync_folder
from entrepot.ir.io.serialize import inline, serialize
from entrepot.ir.io.weights import Layout, TensorFiller, lay_out, write_data, write_model

if TYPE_CHECKING:
    from entrepot.ir.model import Model


def to_proto(model: Model) -> onnx.ModelProto:
    """The model as a new ``onnx.ModelProto``, weights included."""
    return serialize(model.ir, inline)


def save(model: Model, path: str | os.PathLike[str], *, external_data: str | None = "auto") -> None:
    """Write a model, atomically for model and data together; the model itself is not changed.

    Args:
        model: What to write. It stays usable, also when it was read from the very files that are replaced.
        path: Where the ``.onnx`` file goes; its folder must exist.
        external_data: ``"auto"`` refers to weights that lie in the folder already, and puts the others into the model,
            or into ``<file name>.data`` when they pass 1.75 GiB. Another string names the data file, beside the model,
            for all weights of 1 KiB or more. ``None`` keeps everything inside. A data file that another model of the
            folder refers to is not replaced: the new one is then called ``<file name>.<8 hex digits>.data``.

    Raises:
        StorageError: The files cannot be written (an ``OSError``); what was there before is untouched.
        MissingFileError: The folder does not exist.
        ModelFormatError: The model is not complete, or too large for one file.
        InputError: ``external_data`` is not the name of a file.
    """
    path = Path(os.path.abspath(path))
    data_name = _data_name(path, external_data)
    staging = Staging(path)
    try:
        with folder_lock(path.parent) as locked:
            staging.clear_killed(locked=locked)
            _Save(model.ir, staging, data_name, lay_out(model.ir, path.parent, external_data)).run()
    except FileNotFoundError as error:
        raise MissingFileError(f"folder '{path.parent}' does not exist", path=path) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"the model cannot be written: {reason}", path=path, errno=error.errno) from error
    finally:
        with contextlib.suppress(OSError):
            staging.clear()


class _Save:
    """One save, under the lock of its folder."""

    def __init__(self, model: onnx_ir.Model, staging: Staging, data_name: str, layout: Layout) -> None:
        self._model = model
        self._staging = staging
        self._path = staging.path
        self._folder = staging.path.parent
        self._final = self._folder / data_name
        self._layout = layout

    def run(self) -> None:
        if self._path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder has that name")
        stale = self._own_data_files()
        used = set(self._layout.kept)
        if self._layout.outgoing:
            used.add(self._publish_data())
        else:
            self._publish_model("")
        for name in stale - used:
            if not self._is_used_elsewhere(name):
                (self._folder / name).unlink(missing_ok=True)

    def _publish_data(self) -> str:
        """Put data and model in place; returns the name that the data ended up with."""
        data = self._staging.write(lambda file: write_data(self._layout, file))
        if not os.path.lexists(self._final):
            os.rename(data, self._final)
            sync_folder(self._folder)
            self._publish_model(self._final.name)
            return self._final.name
        interim = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}.data")
        os.rename(data, interim)
        sync_folder(self._folder)
        self._publish_model(interim.name)
        return self._settle(interim)

    def _settle(self, interim: Path) -> str:
        """Give the data its final name, if the file that has it now is free to go."""
        name = self._final.name
        if name in self._layout.kept or self._is_used_elsewhere(name):
            return interim.name
        link = self._staging.fresh_name()
        try:
            os.link(interim, link)
        except OSError:  # a file system without links
            return interim.name
        os.replace(link, self._final)
        sync_folder(self._folder)
        self._publish_model(name)
        interim.unlink()
        return name

    def _publish_model(self, data_name: str) -> None:
        filler = TensorFiller(self._layout, data_name)
        proto = serialize(self._model, filler)

        def write(file: BinaryIO) -> None:
            write_model(proto, filler.streamed, file)

        os.replace(self._staging.write(write), self._path)
        sync_folder(self._folder)

    def _own_data_files(self) -> set[str]:
        """Data files that belong to this model alone by their names, and that it will not need any more.

        Interim files are always ours; ``<file name>.data`` is when the model that is replaced refers to it, or when
        an interim file tells that a save was killed between the two.
        """
        default = f"{self._path.name}.data"
        interim = re.compile(re.escape(f"{self._path.name}.") + r"[0-9a-f]{8}\.data")
        names = {entry.name for entry in os.scandir(self._folder) if interim.fullmatch(entry.name)}
        if (names or mentions(self._path, default)) and (self._folder / default).exists():
            names.add(default)
        return names

    def _is_used_elsewhere(self, name: str) -> bool:
        """Whether a data file may be in use by another model of the folder, or is no plain file."""
        try:
            if not stat.S_ISREG(os.lstat(self._folder / name).st_mode):
                return True
        except FileNotFoundError:
            return False
        others = (entry for entry in os.scandir(self._folder) if entry.name.endswith(".onnx") and entry.is_file())
        return any(entry.name != self._path.name and mentions(Path(entry.path), name) for entry in others)


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
