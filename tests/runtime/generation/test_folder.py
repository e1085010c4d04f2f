"""Packages as folders: what is damaged is refused when it is read, and saving leaves the old or the new one whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime.generation import writing
from entrepot.runtime.generation.folder import check
from entrepot.runtime.generation.manifest import Manifest, State
from entrepot.runtime.generation.package import Package
from entrepot.runtime.generation.settings import Settings


def counting(scale: float = 9.0) -> Package:
    """A decoder with a state that counts tokens, and a table of weights large enough for a file of its own."""
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
    counting (int64[batch, sequence] input_ids, float[batch, 1] past.count)
        => (float[batch, sequence, 64] logits, float[batch, 1] present.count) {
        logits = Gather<axis = 0>(table, input_ids)
        ones = CastLike(input_ids, past.count)
        zeros = Sub(ones, ones)
        last = Constant<value_ints = [-1]>()
        none = ReduceSum<keepdims = 1>(zeros, last)
        present.count = Add(past.count, none)
    }""".replace("past.count", "past_count").replace("present.count", "present_count")
    )
    table = np.roll(np.eye(64, dtype=np.float32), 1, 1) * scale
    proto.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    states = (State("past_count", "present_count", (-1, 1), "float32"),)
    manifest = Manifest(kind="decoder", states=states, settings=Settings.of({"eos_token_id": 40}))
    return Package({"decoder": ep.load(proto)}, manifest, providers="cpu", files={"words.txt": b"some"})


def tokens(folder: Path) -> Any:
    return ep.load(folder).using("cpu").generate(input_ids=[[1]], max_new_tokens=3).tolist()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    counting().save(tmp_path / "package")
    assert tokens(tmp_path / "package") == [[1, 2, 3, 4]]
    return tmp_path / "package"


def test_a_whole_package_has_nothing_to_complain_about(saved: Path) -> None:
    assert check(saved) == []
    assert sorted(path.name for path in saved.iterdir()) == ["decoder.onnx", "entrepot.json", "model.data", "words.txt"]


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x40
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, shortened, changed])
@pytest.mark.parametrize("name", ["decoder.onnx", "model.data", "words.txt"])
def test_damage_is_found(saved: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(saved / name)
    assert check(saved) == [name]
    if (name, damage) != ("model.data", changed) and name != "words.txt":  # only a check reads all weights
        with pytest.raises((ep.ModelFormatError, ep.MissingFileError), match=name):
            ep.load(saved)


NONSENSE: tuple[Any, ...] = (None, 5, -1, 1.5, True, "x", "", [], [5], {}, {"a": 5})
NAMES = ("tokens", "logits", "mask", "source", "positions", "first_scored", "past_length")
OTHERS = ("format", "kind", "mask_of", "states", "capacity", "constants", "step", "settings", "notes", "graphs", "kept")


@pytest.mark.parametrize("key", [*NAMES, *OTHERS])
def test_a_description_of_something_else_is_refused_by_name(saved: Path, key: str) -> None:
    file = saved / "entrepot.json"
    described = json.loads(file.read_text())
    for value in NONSENSE:
        file.write_text(json.dumps(described | {key: value}))
        with contextlib.ExitStack() as refused:
            try:
                ep.load(saved)
            except ep.ModelFormatError:
                refused.enter_context(pytest.raises(ep.ModelFormatError, match=r"entrepot\.json"))
            assert tokens(saved) == [[1, 2, 3, 4]], value  # what is read all the same makes no difference


@pytest.mark.parametrize(
    "change",
    [
        {"past": "other"},
        {"present": "logits"},
        {"present": "other"},
        {"dtype": "float16"},
        {"dtype": "nonsense"},
        {"dtype": "finfo"},
        {"shape": [-1]},
        {"shape": [-1, 2]},
        {"shape": [-1, -1]},
        {"shape": [1, 1]},
        {"shape": [-1, 1.5]},
        {"shape": "ab"},
    ],
    ids=repr,
)
def test_states_have_to_be_those_of_the_decoder(saved: Path, change: dict[str, Any]) -> None:
    file = saved / "entrepot.json"
    described = json.loads(file.read_text())
    described["states"][0] |= change
    file.write_text(json.dumps(described))
    with pytest.raises(ep.ModelFormatError, match=r"entrepot\.json"):
        ep.load(saved)


@pytest.mark.parametrize(
    "change", [{"mask": ""}, {"mask": "other"}, {"mask": "input_ids"}, {"mask_of": "new"}, {"source_mask": "other"}]
)
def test_a_mask_has_to_be_one_that_the_decoder_takes(tmp_path: Path, change: dict[str, Any]) -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
    masked (int64[batch, sequence] ids, int64[batch, total] mask, float[batch, 1] past)
        => (float[batch, sequence, 64] logits, float[batch, 1] present) {
        one = Constant<value_ints = [1]>()
        size = Constant<value_ints = [64]>()
        counted = ReduceSum<keepdims = 1>(mask, one)
        count = Cast<to = 1>(counted)
        present = Max(past, count)
        shape = Shape(ids)
        whole = Concat<axis = 0>(shape, size)
        wide = Unsqueeze(present, one)
        logits = Expand(wide, whole)
    }"""
    )
    states = (State("past", "present", (-1, 1), "float32"),)
    manifest = Manifest(kind="decoder", tokens="ids", mask="mask", states=states)
    Package({"decoder": ep.load(proto)}, manifest, providers="cpu").save(tmp_path / "package")
    assert ep.load(tmp_path / "package").generate(ids=[[1]], max_new_tokens=1).shape == (1, 2)
    file = tmp_path / "package" / "entrepot.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ep.ModelFormatError, match=r"entrepot\.json"):
        ep.load(tmp_path / "package")


def test_a_graph_of_another_package_is_refused_unless_the_description_lets_it_in(saved: Path, tmp_path: Path) -> None:
    counting(5.0).save(tmp_path / "other")
    ep.load(tmp_path / "other" / "decoder.onnx").save(saved / "decoder.onnx")
    with pytest.raises(ep.ModelFormatError, match="not the file that was saved"):
        ep.load(saved)
    file = saved / "entrepot.json"
    described = json.loads(file.read_text())
    del described["sha256"]["decoder.onnx"]
    file.write_text(json.dumps(described))
    assert tokens(saved) == [[1, 2, 3, 4]]


def test_a_folder_without_a_description_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(ep.StorageError, match=r"no entrepot\.json"):
        ep.load(tmp_path)


def test_files_that_are_gone_are_named_when_the_package_is_saved_again(saved: Path, tmp_path: Path) -> None:
    package = ep.load(saved)
    (saved / "words.txt").unlink()
    with pytest.raises(ep.MissingFileError, match=r"words\.txt"):
        package.save(tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["package"]


def test_through_a_link_the_package_itself_is_replaced(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("package")
    counting().save(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert tokens(saved) == tokens(tmp_path / "latest") == [[1, 2, 3, 4]]


@pytest.mark.parametrize("swaps", [True, False])
def test_a_package_is_replaced_whether_or_not_names_can_be_swapped(
    saved: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool
) -> None:
    if not swaps:
        monkeypatch.setattr(writing, "exchanged", lambda *_: False)
    (saved / "mine.txt").write_text("goes with the old one")
    counting().save(saved)
    assert tokens(saved) == [[1, 2, 3, 4]]
    assert sorted(path.name for path in saved.parent.iterdir()) == ["package"]
    assert not (saved / "mine.txt").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from entrepot.runtime.generation import writing
from tests.runtime.generation.test_folder import counting
name, place = sys.argv[1], Path(sys.argv[2])
plain = getattr(writing.os, name) if hasattr(writing.os, name) else getattr(writing, name)
def dies(*args):
    if name == "exchanged":
        plain(*args)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(writing.os if hasattr(writing.os, name) else writing, name, dies)
counting(5.0).save(place)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("at", ["_describe", "exchanged", "replace"])
def test_a_save_that_is_killed_leaves_a_whole_package_and_is_cleared_away_by_the_next(saved: Path, at: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, at, str(saved)], check=False, cwd=Path.cwd(), env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert tokens(saved) == [[1, 2, 3, 4]]
    assert check(saved) == []
    counting().save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["package"]


@pytest.fixture
def moved(saved: Path) -> Path:
    """A package as a save leaves it that is killed between its two steps, where names cannot be swapped."""
    saved.rename(saved.with_name(".package.0123abcd.old"))
    saved.with_name(".package.0123abcd.tmp").mkdir()
    return saved


def test_a_package_that_was_moved_away_by_a_killed_save_is_named_when_it_is_loaded(moved: Path) -> None:
    with pytest.raises(ep.MissingFileError, match="interrupted") as caught:
        ep.load(moved)
    assert ".package.0123abcd.old" in (caught.value.hint or "")


def test_a_package_that_was_moved_away_is_put_back_before_the_next_save(
    moved: Path,
) -> None:
    plain = counting()
    package = Package(plain.graphs, plain.manifest, files={"gone.txt": moved / "gone.txt"})
    with pytest.raises(ep.MissingFileError, match="gone"):
        package.save(moved)
    assert [path.name for path in moved.parent.iterdir()] == ["package"]
    assert tokens(moved) == [[1, 2, 3, 4]]


@pytest.mark.parametrize("age", [0.0, 3.0])
def test_without_locks_only_what_is_old_is_cleared_away(
    moved: Path, monkeypatch: pytest.MonkeyPatch, age: float
) -> None:
    monkeypatch.setattr(writing, "folder_lock", lambda _: contextlib.nullcontext(False))
    for left in moved.parent.iterdir():
        os.utime(left, (time.time() - age * 86_400,) * 2)
    counting().save(moved)
    left = {path.name for path in moved.parent.iterdir()} - {"package"}
    assert left == (set() if age else {".package.0123abcd.old", ".package.0123abcd.tmp"})
