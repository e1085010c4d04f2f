"""Every option that names a place to write to, with something else already in that place."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest

WRITERS = {
    "convert -o": ("convert", "{model}", "--opset", "21", "-o", "{target}"),
    "simplify -o": ("simplify", "{model}", "-o", "{target}"),
    "extract -o": ("extract", "{model}", "--to", "y", "-o", "{target}"),
    "export -o": ("export", "{model}", "-o", "{target}"),
    "export --html": ("export", "{model}", "--opset", "21", "-o", "{other}", "--html", "{target}"),
    "compare --html": ("compare", "{model}", "{model}", "--only-sample", "--html", "{target}"),
    "run --save": ("run", "{model}", "--save", "{target}"),
}
FILES = {"model": "relu.onnx", "other": "other.onnx"}


@pytest.fixture(params=WRITERS)
def deliver(request, entrepot, relu, tmp_path):
    """Runs a verb that writes to a target in ``tmp_path``."""

    def call(target, status=0):
        paths = {key: tmp_path / name for key, name in FILES.items()} | {"target": tmp_path / target}
        return entrepot(*(word.format(**paths) for word in WRITERS[request.param]), status=status)

    return call


def left(folder):
    return set(os.listdir(folder)) - set(FILES.values())


def test_a_link_stays_and_its_target_is_replaced(deliver, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("far/file")
    deliver("link")
    assert os.readlink(tmp_path / "link") == "far/file"
    assert len((tmp_path / "far" / "file").read_bytes()) > 50
    assert os.listdir(tmp_path / "far") == ["file"]
    assert left(tmp_path) == {"far", "link"}


def test_a_link_to_nothing_makes_its_target(deliver, tmp_path):
    (tmp_path / "link").symlink_to("file")
    deliver("link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").is_file()
    assert left(tmp_path) == {"link", "file"}


def test_a_pipe_without_a_reader_is_refused_and_stays(deliver, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "nothing reads from this pipe" in deliver("pipe", status=2).stderr
    assert (tmp_path / "pipe").is_fifo()
    assert left(tmp_path) == {"pipe"}


def test_what_can_never_be_written_is_told_before_the_work(deliver, tmp_path, monkeypatch):
    monkeypatch.setattr("entrepot.ir.io.read.load", None)  # nothing is read
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for target, told in (
            ("folder", "is a directory"),
            ("socket", "it is a socket"),
            ("circle", "leads in a circle"),
            ("nowhere/file", "nowhere' does not exist"),
            ("file/file", "file' is not a folder"),
        ):
            assert told in deliver(target, status=2).stderr
    assert left(tmp_path) == {"folder", "socket", "circle", "file"}


def test_a_folder_without_rights_is_told_before_the_work(deliver, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    genuine = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / "mine" and genuine(path, mode))
    assert "mine' is not writable" in deliver("mine/file", status=2).stderr
    assert not os.listdir(tmp_path / "mine")


def test_the_folder_of_outputs_is_made_and_what_is_no_folder_is_refused(entrepot, relu, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert "file" in entrepot("run", relu, "--output-dir", tmp_path / "file" / "deep", status=2).stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "y.npy").symlink_to("elsewhere.npy")
    entrepot("run", relu, "-i", "x=ones[1,3]", "--output-dir", tmp_path / "out")
    assert (tmp_path / "out" / "y.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "elsewhere.npy"), np.ones((1, 3), np.float32))
