"""Where a result goes: into a file that appears whole or not at all, or through an existing pipe or device.

Every writer asks ``destination`` what a path refers to, and most leave the rest to ``write_file``.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from entrepot.ir.arguments import as_path
from entrepot.ir.errors import EntrepotError, InputError, MissingFileError, StorageError
from entrepot.ir.io.atomic import Staging, sync_folder

Target: TypeAlias = "str | os.PathLike[str] | BinaryIO"
"""Where a result may go: a path, or a binary file that is open for writing."""

_KINDS = {
    stat.S_IFDIR: ("a folder has that name", errno.EISDIR, "give the name of a file in it"),
    stat.S_IFBLK: ("it is a block device, and would be overwritten", errno.EINVAL, "give the name of a file"),
    stat.S_IFSOCK: ("it is a socket, and sockets cannot be written to by name", errno.ENXIO, "give the name of a file"),
}
_STREAMS = (stat.S_IFCHR, stat.S_IFIFO)


@dataclass(frozen=True)
class Destination:
    """What a path refers to.

    Attributes:
        named: The path as it was given, absolute.
        path: The file that is replaced: what a link points to.
        is_stream: It is a pipe or a character device, which is written to and never replaced.
    """

    named: Path
    path: Path
    is_stream: bool = False

    @property
    def beside(self) -> Path | None:
        """The folder where readers of this file look for others; ``None`` if there is none.

        Readers look beside the path they are given, so with a link into another folder they look in the wrong one.
        """
        if self.is_stream or not os.path.samefile(self.named.parent, self.path.parent):
            return None
        return self.path.parent

    @contextlib.contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """The pipe or device, open for writing."""
        # a pipe without a reader would block here for ever; with O_NONBLOCK it fails with ENXIO at once
        at_once = getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.named, os.O_WRONLY | at_once | getattr(os, "O_NOCTTY", 0))
        with open(descriptor, "wb") as file:
            if stat.S_IFMT(os.fstat(descriptor).st_mode) not in _STREAMS:
                raise OSError(errno.EAGAIN, "it was replaced by another file just now")
            if at_once:
                os.set_blocking(descriptor, True)
            yield cast("BinaryIO", _Counted(file))

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn an error of the system into a ``StorageError`` about this place."""
        try:
            yield
        except EntrepotError:
            raise
        except OSError as error:
            raise self.refusal(error) from error

    def refusal(self, error: OSError) -> StorageError:
        """What an error of the system means here."""
        if self.is_stream and error.errno == errno.ENXIO:
            hint = "start the reader first"
            return StorageError("nothing reads from this pipe", path=self.named, errno=error.errno, hint=hint)
        if self.is_stream and error.errno == errno.EPIPE:
            return StorageError("the reader of this pipe went away", path=self.named, errno=error.errno)
        if not self.is_stream and error.errno in {errno.ENOENT, errno.ENOTDIR}:
            problem = folder_problem(self.path.parent, self.named)
            if problem is not None:
                return problem
            reason = f"no file can be created in the folder '{self.path.parent}'"
            return StorageError(reason, path=self.named, errno=error.errno, hint="choose another folder")
        return StorageError(f"it cannot be written: {error.strerror or error}", path=self.named, errno=error.errno)


def destination(path: str | os.PathLike[str]) -> Destination:
    """What a path refers to, decided before anything is written.

    Raises:
        StorageError: It is a folder, a block device, a socket, or a link that leads back to itself.
        InputError: It is not a path at all.
    """
    named = Path(os.path.abspath(as_path(path)))
    try:
        status = os.stat(named)
    except FileNotFoundError:  # a new file, or a link to one
        return Destination(named, Path(os.path.realpath(named)))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError("this link leads in a circle", path=named, errno=error.errno) from error
        raise Destination(named, named).refusal(error) from error
    kind = stat.S_IFMT(status.st_mode)
    if kind in _KINDS:
        reason, number, hint = _KINDS[kind]
        raise StorageError(f"it cannot be written: {reason}", path=named, errno=number, hint=hint)
    if kind in _STREAMS:
        return Destination(named, named, is_stream=True)
    return Destination(named, _followed(named, status))


def _followed(named: Path, status: os.stat_result) -> Path:
    """The file itself; some links of the system (``/proc/self/fd/1``) lead to files that have no path any more."""
    path = Path(os.path.realpath(named))
    with contextlib.suppress(OSError):
        if os.path.samestat(os.stat(path), status):
            return path
    raise StorageError(
        "it is a link to a file without a name, which cannot be replaced", path=named, errno=errno.ENOENT
    )


def folder_problem(folder: Path, path: Path | None = None) -> StorageError | None:
    """Why no file can be created in a folder, as far as that can be seen without trying."""
    if not folder.exists():
        above = next((parent for parent in folder.parents if parent.exists()), folder)
        if above.is_dir():
            return MissingFileError(f"folder '{folder}' does not exist", path=path, errno=errno.ENOENT)
        folder = above
    if not folder.is_dir():
        return StorageError(f"'{folder}' is not a folder", path=path, errno=errno.ENOTDIR)
    if not os.access(folder, os.W_OK | os.X_OK):
        return StorageError(f"folder '{folder}' is not writable", path=path, errno=errno.EACCES)
    return None


def write_file(target: Target, write: Callable[[BinaryIO], object]) -> None:
    """Write a result: a file is replaced whole or not at all, a pipe or device is written to directly.

    Args:
        target: Where it goes. A link stays, and what it points to is replaced.
        write: Writes everything; it may call ``tell()``, but a pipe cannot ``seek``.

    Raises:
        StorageError: It cannot be written there; a file that was there before is untouched.
    """
    file = open_file(target)
    if file is not None:
        write(file)
        return
    place = destination(target)  # type: ignore[arg-type] # it is no open file
    with place.errors():
        if place.is_stream:
            with place.stream() as stream:
                write(stream)
        else:
            _replace(place.path, write)


def write_folder(folder: Path, files: Mapping[str, Callable[[BinaryIO], object]]) -> None:
    """Write the files of a folder, which is made if it is not there: all of them, or none.

    They are written in full under hidden names before the first one is put in its place.

    Args:
        folder: Where they go; other files in it stay.
        files: By name: writes everything of a file.

    Raises:
        StorageError: One of them cannot be written; those that were there before are untouched.
    """
    place = destination(folder / next(iter(files)))
    with place.errors():
        os.makedirs(folder, exist_ok=True)
    places = [destination(folder / name) for name in files]
    stagings = [Staging(each.path) for each in places]
    try:
        for staging in stagings:
            staging.clear_killed(locked=False)
        with place.errors():
            written = [staging.write(write) for staging, write in zip(stagings, files.values(), strict=True)]
            for temporary, each in zip(written, places, strict=True):
                os.replace(temporary, each.path)
            sync_folder(folder)
    finally:
        for staging in stagings:
            with contextlib.suppress(OSError):
                staging.clear()


def open_file(target: Target) -> BinaryIO | None:
    """The target itself if it is an open file and not the name of one."""
    if isinstance(target, str | bytes | os.PathLike) or not callable(getattr(target, "write", None)):
        return None
    if isinstance(target, io.TextIOBase):
        raise InputError("the file is open for text", hint="open it with mode 'wb'")
    return cast("BinaryIO", _Counted(target))


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    staging = Staging(path)
    try:
        staging.clear_killed(locked=False)
        os.replace(staging.write(write), path)
        sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            staging.clear()


class _Counted(io.BufferedIOBase):
    """Counts what is written; it has no file number, so that NumPy does not bypass it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        content = memoryview(data).cast("B")
        at = 0
        while at < len(content):
            at += self._file.write(content[at:]) or 0
        self._position += len(content)
        return len(content)

    def flush(self) -> None:
        self._file.flush()
