"""What is kept of measurements, and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from entrepot.runtime.providers.torch.measuring.choices import Choices, folder

HERE, THERE = {"processor": "one"}, {"processor": "another"}


@pytest.mark.parametrize(
    ("environment", "system", "expected"),
    [
        ({"HOME": "h"}, "linux", "h/.cache/entrepot"),
        ({"HOME": "h", "XDG_CACHE_HOME": "x"}, "linux", "x/entrepot"),
        ({"HOME": "h"}, "darwin", "h/Library/Caches/entrepot"),
        ({"USERPROFILE": "u"}, "win32", "u/AppData/Local/entrepot"),
        ({"USERPROFILE": "u", "LOCALAPPDATA": "l"}, "win32", "l/entrepot"),
        ({"HOME": "h", "ENTREPOT_CACHE": "/e"}, "linux", "/e"),
        ({}, "linux", None),
    ],
)
def test_folders_of_systems(environment: dict[str, str], system: str, expected: str | None) -> None:
    assert folder(environment, system) == (None if expected is None else Path(expected))


def test_what_is_put_is_known_to_others_on_the_same_machine(tmp_path: Path) -> None:
    first, second = Choices(tmp_path, HERE), Choices(tmp_path, HERE)
    first.put("a", "packed")
    second.put("b", "plain")
    third = Choices(tmp_path, HERE)
    assert [third.get(each) for each in "abc"] == ["packed", "plain", ""]
    assert Choices(tmp_path, THERE).get("a") == ""


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"format": 1}', '{"format": 0, "machine": {"processor": "one"}, "choices": {"a": "packed"}}'],
)
def test_a_file_that_is_not_one_of_these_counts_as_empty_and_is_replaced(tmp_path: Path, content: str) -> None:
    made = Choices(tmp_path, HERE)
    made.put("a", "packed")
    assert made.path is not None
    made.path.write_text(content)
    again = Choices(tmp_path, HERE)
    assert again.get("a") == ""
    again.put("b", "plain")
    assert json.loads(made.path.read_bytes())["choices"] == {"b": "plain"}


def test_what_is_no_text_is_left_out(tmp_path: Path) -> None:
    made = Choices(tmp_path, HERE)
    made.put("a", "packed")
    assert made.path is not None
    found = json.loads(made.path.read_bytes())
    made.path.write_text(json.dumps({**found, "choices": {"a": 1, "b": "plain"}}))
    again = Choices(tmp_path, HERE)
    assert (again.get("a"), again.get("b")) == ("", "plain")


def test_a_folder_that_cannot_be_made_is_told_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = Choices(tmp_path / "file", HERE)
    assert made.problem == ""
    made.put("a", "packed")
    assert made.get("a") == "packed"
    assert "file" in made.problem


def test_without_a_folder_nothing_is_kept() -> None:
    made = Choices(None, HERE)
    made.put("a", "packed")
    assert (made.get("a"), made.path) == ("packed", None)
    assert "ENTREPOT_CACHE" in made.problem
