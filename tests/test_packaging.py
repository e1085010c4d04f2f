"""The package list, the links and the settings match the tree."""

from __future__ import annotations

import os
import re
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime", "testing")
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_of_the_tree_is_listed_for_setuptools():
    tree = {"entrepot"}
    for room in ROOMS:
        for marker in (ROOT / room).rglob("__init__.py"):
            tree.add(".".join(("entrepot", *marker.parent.relative_to(ROOT).parts)))
    assert sorted(CONFIG["tool"]["setuptools"]["packages"]) == sorted(tree)


def test_every_folder_with_modules_is_a_package():
    for room in ROOMS:
        for module in (ROOT / room).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), f"{module.parent} would be left out of the wheel"


@pytest.mark.parametrize("room", ROOMS)
def test_link_in_the_face_is_relative_and_leads_to_its_room(room):
    link = ROOT / "entrepot" / room
    assert link.is_symlink()
    assert os.readlink(link) == f"../{room}"
    assert CONFIG["tool"]["setuptools"]["package-dir"][f"entrepot.{room}"] == room


def test_ruff_visits_each_file_once():
    assert {f"entrepot/{room}" for room in ROOMS} == set(CONFIG["tool"]["ruff"]["exclude"])


def test_coverage_measures_the_real_folders():
    measured = {"entrepot", *ROOMS} - {"models_zoo"}  # the zoo is test material
    assert measured == set(CONFIG["tool"]["coverage"]["run"]["source"])


def test_constraints_pin_every_requirement():
    pinned = {_project(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    project = CONFIG["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    assert {_project(item) for item in [*wanted, *CONFIG["build-system"]["requires"]]} - {"entrepot"} <= pinned


def test_the_installed_versions_are_the_tested_ones():
    """Otherwise a green run says nothing about the versions that `make setup` installs."""
    from importlib import metadata

    # not all of sys.path: setuptools puts what it brings along there
    places = list({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    installed = {_project(item.name): item.version.split("+")[0] for item in metadata.distributions(path=places)}
    lines = (line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    pinned = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    wrong = {
        name: (version, installed[_project(name)])
        for name, version in pinned.items()
        if _project(name) in installed and installed[_project(name)] != version
    }
    assert not wrong


def test_version_is_the_same_in_both_places():
    import entrepot

    assert entrepot.__version__ == CONFIG["project"]["version"]


def _project(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_changelog_fragments_have_names_that_towncrier_collects():
    known = re.compile(r"(\+[a-z0-9_]+|\d+)\.(feature|bugfix|doc|removal)\.md")
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != ".gitkeep"]
    assert [path.name for path in fragments if not known.fullmatch(path.name)] == []
    assert [path.name for path in fragments if not path.read_text().strip()] == []
