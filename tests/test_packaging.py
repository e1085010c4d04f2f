"""The package list, the links and the wheel say the same as the tree."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime")
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


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A wheel, an sdist, and the wheel built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    source = out / "source"
    _copy_tree(source)
    _build(source, out / "direct", "--wheel")
    _build(source, out / "sdist", "--sdist")
    unpacked = out / "unpacked"
    with tarfile.open(next((out / "sdist").glob("*.tar.gz"))) as archive:
        archive.extractall(unpacked, filter="data")
    _build(next(unpacked.iterdir()), out / "again", "--wheel")
    return next((out / "direct").glob("*.whl")), next((out / "again").glob("*.whl"))


def test_wheel_holds_the_package_and_nothing_else(distributions):
    names = zipfile.ZipFile(distributions[0]).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"entrepot"}
    tree = {f"entrepot/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).rglob("*.py")} | {
        "entrepot/__init__.py",
        "entrepot/__main__.py",
        "entrepot/py.typed",
    }
    assert {name for name in names if ".dist-info/" not in name} == tree


def test_sdist_builds_the_same_wheel(distributions):
    direct, again = (
        {info.filename: info.CRC for info in zipfile.ZipFile(wheel).infolist() if "RECORD" not in info.filename}
        for wheel in distributions
    )
    assert direct == again


def test_installed_wheel_passes_the_tests_outside_the_checkout(distributions, tmp_path):
    site = tmp_path / "site"
    with zipfile.ZipFile(distributions[0]) as wheel:
        wheel.extractall(site)
    for part in ("ir", "runtime", "op_cases", "__init__.py", "conftest.py"):
        source = ROOT / "tests" / part
        if source.exists():
            _copy(source, tmp_path / "tests" / part)
    result = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider",
         "--import-mode=importlib", "--rootdir", tmp_path, "-k", "wheel or model or table or errors", "tests"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{tmp_path}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    home = subprocess.run(
        [sys.executable, "-P", "-c", "import entrepot.ir.errors as e; print(e.__file__)"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(home.stdout.strip()).is_relative_to(site)


def _copy_tree(target: Path) -> None:
    """The tracked and new files, as a clone would have them: building in the checkout would leave folders behind."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            _copy(ROOT / name, target / name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        for child in source.iterdir():
            if child.name != "__pycache__":
                _copy(child, target / child.name)
    elif source.is_symlink():
        target.symlink_to(os.readlink(source))
    else:
        target.write_bytes(source.read_bytes())


def _build(source: Path, out: Path, what: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", what, "--outdir", str(out), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
