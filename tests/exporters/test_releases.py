"""Releases of frameworks that are too old are refused by one error, before anything of them is used."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import entrepot as ep
from entrepot.exporters.dispatch import ROOMS

FRAMEWORKS = [room for room in ROOMS if room.framework]
NAMES = {"sklearn": "scikit-learn"}


@pytest.mark.parametrize("room", FRAMEWORKS, ids=lambda room: room.framework)
def test_an_old_release_is_refused(room, monkeypatch):
    major, minor = room.oldest.split(".")
    older = f"{major}.{int(minor) - 1}.7" if int(minor) else f"{int(major) - 1}.99.0"
    monkeypatch.setitem(sys.modules, room.framework, SimpleNamespace(__version__=older))
    with pytest.raises(ep.MissingDependencyError, match=rf"{room.framework} {re.escape(older)} is installed") as caught:
        room.open()
    assert room.oldest in str(caught.value)
    assert f"entrepot[{room.extra}]" in str(caught.value)


@pytest.mark.parametrize("room", FRAMEWORKS, ids=lambda room: room.framework)
def test_the_oldest_release_is_that_of_the_extra(room):
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    name = NAMES.get(room.framework, room.framework)
    found = {re.split(r"[;\s]", line)[0] for line in project["optional-dependencies"][room.extra]}
    assert f"{name}>={room.oldest}" in found


def test_releases_are_compared_as_numbers(monkeypatch):
    room = next(room for room in FRAMEWORKS if room.framework == "sklearn")
    monkeypatch.setitem(sys.modules, "sklearn", SimpleNamespace(__version__="1.10.0rc1"))
    room._check_release()
