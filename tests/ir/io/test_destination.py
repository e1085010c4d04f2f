"""What stands under the name of an output: files are replaced whole, links followed, pipes written through."""

from __future__ import annotations

import errno
import io
import os
import select
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.ir.io import weights
from entrepot.ir.io.destination import destination, write_file
from tests.ir.io.models import sum_model

CONTENT = b"x" * 200_000  # more than a pipe holds


def write_content(path: Path) -> None:
    write_file(path, lambda file: file.write(CONTENT))


def model(number: float = 1.0, size: int = 40_000) -> ep.Model:
    return ep.load(sum_model(np.full(size, number, np.float32)))


def save_model(path: Path) -> None:
    model().save(path)


WRITERS = [write_content, save_model]


def expected(writer: Callable[[Path], None], folder: Path) -> bytes:
    """What a writer puts into a plain file."""
    writer(folder / "plain")
    content = (folder / "plain").read_bytes()
    (folder / "plain").unlink()
    return content


def make_fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


class Reader(threading.Thread):
    """Reads a FIFO to its end."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # there before the writer comes
        os.set_blocking(self._descriptor, True)
        self._writer = os.open(path, os.O_WRONLY)  # until there is a writer, a reader is told that the end has come
        self.content = b""
        self.start()

    def run(self) -> None:
        with open(self._descriptor, "rb") as file:
            self.content = file.read()

    def all(self) -> bytes:
        """What has come; nothing more will."""
        os.close(self._writer)
        self.join(timeout=60)
        return self.content


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_with_a_reader_is_written_through(tmp_path: Path, writer: Callable[[Path], None], linked: bool) -> None:
    whole = expected(writer, tmp_path)
    path = make_fifo(tmp_path / "pipe")
    if linked:
        (tmp_path / "link").symlink_to("pipe")
    reader = Reader(path)
    writer(tmp_path / "link" if linked else path)
    assert reader.all() == whole
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_without_a_reader_is_refused_at_once(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    path = make_fifo(tmp_path / "pipe")
    with pytest.raises(ep.StorageError, match="nothing reads from this pipe") as caught:
        writer(path)
    assert caught.value.errno == errno.ENXIO
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_reader_that_goes_away_is_a_typed_error(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    path = make_fifo(tmp_path / "pipe")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def leave() -> None:
        select.select([descriptor], [], [])
        os.close(descriptor)

    threading.Thread(target=leave, daemon=True).start()
    with pytest.raises(ep.StorageError, match="went away") as caught:
        writer(path)
    assert caught.value.errno == errno.EPIPE


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_character_device_is_written_through_and_a_block_device_is_refused(
    tmp_path: Path, writer: Callable[[Path], None]
) -> None:
    null, disk = tmp_path / "null", tmp_path / "disk"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # what swallows everything
        os.mknod(disk, stat.S_IFBLK | 0o600, os.makedev(7, 250))
    except PermissionError:
        pytest.skip("this container lets nobody make devices")
    try:
        writer(null)
    except ep.StorageError as error:
        assert error.errno == errno.EACCES  # noqa: PT017 - a file system mounted without devices
    with pytest.raises(ep.StorageError, match="block device"):
        writer(disk)
    assert stat.S_ISCHR(null.stat().st_mode)
    assert stat.S_ISBLK(disk.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["disk", "null"]


@pytest.mark.parametrize("writer", WRITERS)
def test_sockets_and_folders_are_refused_and_stay(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        old = os.getcwd()
        os.chdir(tmp_path)  # the path of a socket may have 107 bytes
        try:
            server.bind("socket")
        finally:
            os.chdir(old)
        for name, number in (("folder", errno.EISDIR), ("socket", errno.ENXIO)):
            with pytest.raises(ep.StorageError, match=name) as caught:
                writer(tmp_path / name)
            assert caught.value.errno == number
    assert sorted(os.listdir(tmp_path)) == ["folder", "socket"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_replaced(
    tmp_path: Path, writer: Callable[[Path], None], there: bool
) -> None:
    whole = expected(writer, tmp_path)
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "target"
    if there:
        target.write_bytes(b"old")
        old = target.stat().st_ino
        os.link(target, tmp_path / "kept")  # so that the inode number is not used again
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(Path("far") / "target")
    writer(tmp_path / "first")
    assert os.readlink(tmp_path / "first") == "second"
    assert target.read_bytes() == whole
    assert not target.is_symlink()
    assert os.listdir(tmp_path / "far") == ["target"]
    if there:
        assert target.stat().st_ino != old  # replaced, not written over: whoever reads the old file reads all of it
        assert (tmp_path / "kept").read_bytes() == b"old"


@pytest.mark.parametrize("writer", WRITERS)
def test_links_that_lead_nowhere_are_typed_errors(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "astray").symlink_to(Path("nowhere") / "net.onnx")
    with pytest.raises(ep.StorageError, match="in a circle"):
        writer(tmp_path / "a")
    with pytest.raises(ep.MissingFileError, match="nowhere' does not exist"):
        writer(tmp_path / "astray")
    assert sorted(os.listdir(tmp_path)) == ["a", "astray", "b"]


@pytest.mark.parametrize("writer", WRITERS)
def test_folders_are_told_apart_that_are_missing_or_none(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, number, text in (
        (tmp_path / "none" / "deep" / "net", errno.ENOENT, "none/deep' does not exist"),
        (tmp_path / "file" / "net", errno.ENOTDIR, "file' is not a folder"),
        (tmp_path / "file" / "deep" / "net", errno.ENOTDIR, "file' is not a folder"),
    ):
        with pytest.raises(ep.StorageError, match=text) as caught:
            writer(path)
        assert caught.value.errno == number


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOENT])
def test_a_folder_that_takes_no_files_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Callable[[Path], None], number: int
) -> None:
    genuine = os.open

    def refuse(path: object, flags: int, *rest: int, **extra: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))  # not by real rights: root has them all
        return genuine(path, flags, *rest, **extra)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ep.StorageError) as caught:
        writer(tmp_path / "net.onnx")
    assert caught.value.errno == number
    assert "does not exist" not in str(caught.value)
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("path", ["", "a\0b", 3, None, 2.5, ["x"]])
def test_what_is_no_path_is_an_input_error(writer: Callable[[object], None], path: object) -> None:
    with pytest.raises(ep.InputError):
        writer(path)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def fail(file: io.BufferedWriter) -> None:
        file.write(b"half")
        raise ZeroDivisionError

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write_file(tmp_path / "file", fail)  # type: ignore[arg-type]
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


# --- models, which may have weights beside them


def test_a_model_is_written_into_an_open_file(tmp_path: Path) -> None:
    whole = expected(save_model, tmp_path)
    memory = io.BytesIO()
    model().save(memory)
    assert memory.getvalue() == whole
    with pytest.raises(ep.InputError, match="text"), open(tmp_path / "text", "w") as file:
        model().save(file)  # type: ignore[arg-type]


def test_weights_that_lie_in_a_file_go_into_the_pipe(tmp_path: Path) -> None:
    model(3).save(tmp_path / "net.onnx", external_data="net.bin")
    memory = io.BytesIO()
    ep.load(tmp_path / "net.onnx").save(memory)
    proto = onnx.ModelProto.FromString(memory.getvalue())
    onnx.checker.check_model(proto, full_check=True)
    assert set(onnx.numpy_helper.to_array(proto.graph.initializer[0])) == {3.0}


def link_elsewhere(folder: Path) -> Path:
    (folder / "here").mkdir()
    (folder / "there").mkdir()
    (folder / "here" / "net.onnx").symlink_to(Path("..") / "there" / "net.onnx")
    return folder / "here" / "net.onnx"


def test_a_model_behind_a_link_is_loaded_through_the_link(tmp_path: Path) -> None:
    path = link_elsewhere(tmp_path)
    model(4).save(path.parent / "old.onnx", external_data="old.bin")
    ep.load(path.parent / "old.onnx").save(path)  # its weights lie beside the link, but not beside the target
    onnx.checker.check_model(path, full_check=True)
    assert os.listdir(tmp_path / "there") == ["net.onnx"]


def test_weights_beside_a_pipe_or_a_link_elsewhere_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (link_elsewhere(tmp_path), io.BytesIO()):
        with pytest.raises(ep.InputError, match="save to the file itself"):
            model().save(place, external_data="net.bin")
        with monkeypatch.context() as patch:
            patch.setattr(weights, "INLINE_LIMIT", 1000)
            with pytest.raises(ep.InputError, match="save to the file itself"):
                model().save(place)
    assert os.listdir(tmp_path / "there") == []


def test_a_link_in_the_same_folder_may_have_weights_beside_it(tmp_path: Path) -> None:
    (tmp_path / "latest.onnx").symlink_to("v1.onnx")
    for number in (1, 2):
        model(number).save(tmp_path / "latest.onnx", external_data="v1.bin")
        for name in ("latest.onnx", "v1.onnx"):
            onnx.checker.check_model(tmp_path / name, full_check=True)
            assert set(onnx.numpy_helper.to_array(onnx.load(tmp_path / name).graph.initializer[0])) == {number}
    assert len(os.listdir(tmp_path)) == 3
    assert destination(tmp_path / "latest.onnx").path == tmp_path / "v1.onnx"
