"""The wheel contains the package and nothing else, and works without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime", "testing")
# what is quick and needs no framework: the point is that every file is there and finds the others; that all of them can
# be imported is a test of its own
READING = tuple(f"ir/io/{name}.py" for name in ("models", "test_read", "test_external"))
RUNNING = tuple(f"runtime/{name}" for name in ("opaque.py", "planning", "test_session.py", "test_control_flow.py"))
PARTS = ("conftest.py", "judges", "op_cases", "parity", "ir/opset/evaluate.py", *RUNNING, *READING)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The tracked and new files, as a clone would have them: building in the checkout would leave folders behind."""
    target = tmp_path_factory.mktemp("clone")
    listed = _run("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard").splitlines()
    for name in listed:
        if (ROOT / name).exists():  # not deleted
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    return _build(source, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory):
    return _build(source, tmp_path_factory.mktemp("sdist"), "--sdist")


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a fresh environment: the wheel, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    # as a path only: the .pth files in it, such as that of the editable install, are not read
    libraries = next((folder / "lib").glob("python*/site-packages")) / "libraries.pth"
    libraries.write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_wheel_holds_the_package_and_nothing_else(wheel, source):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    rooms = {f"entrepot/{path.relative_to(source)}" for room in ROOMS for path in (source / room).rglob("*.py")}
    assert names == rooms | {"entrepot/__init__.py", "entrepot/__main__.py", "entrepot/py.typed"}


def test_sdist_builds_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    again = _build(next((tmp_path / "unpacked").iterdir()), tmp_path / "again", "--wheel")
    assert _contents(again) == _contents(wheel)


def test_installed_wheel_is_what_python_finds(python, tmp_path):
    code = "import entrepot, entrepot.ir.errors as e, entrepot.runtime.kernels as k; print(e.__file__, k.__file__)"
    found = _run(python, "-P", "-c", code, cwd=tmp_path).split()
    assert all(Path(file).is_relative_to(python.parent.parent) for file in found)


def test_every_module_of_the_installed_wheel_imports(python, tmp_path):
    code = """
import importlib, pkgutil, entrepot
names = [module.name for module in pkgutil.walk_packages(entrepot.__path__, "entrepot.")]
print([importlib.import_module(name).__name__ for name in names if name != "entrepot.__main__"][-1])
"""
    assert _run(python, "-P", "-W", "error", "-c", code, cwd=tmp_path).startswith("entrepot.")


def test_installed_command_answers(python, tmp_path):
    assert "export" in _run(python.with_name("entrepot"), "--help", cwd=tmp_path)
    assert "export" in _run(python, "-P", "-m", "entrepot", "--help", cwd=tmp_path)


@pytest.mark.timeout(600)
def test_installed_wheel_passes_the_tests_outside_the_checkout(python, tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)  # pytest's settings: warnings are errors there too
    for part in PARTS:
        origin, target = ROOT / "tests" / part, tmp_path / "tests" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, target)
    command = [python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    result = subprocess.run(command, cwd=tmp_path, env=_clean(), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]


def _build(source: Path, out: Path, what: str) -> Path:
    _run(sys.executable, "-m", "build", "--no-isolation", what, "--outdir", out, source)
    return next(path for path in out.iterdir() if path.suffix in {".whl", ".gz"})


def _contents(wheel: Path) -> dict[str, int]:
    return {info.filename: info.CRC for info in zipfile.ZipFile(wheel).infolist() if "RECORD" not in info.filename}


def _run(*command: object, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    result = subprocess.run(words, cwd=cwd, env=_clean(), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def _clean() -> dict[str, str]:
    """The environment without what points at this checkout or this test run."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHONPATH", "COV_"))}
