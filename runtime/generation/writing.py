"""A package becomes a folder: the graphs share one file of weights, and the folder appears whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir

from entrepot.ir.arguments import PathLike, as_path
from entrepot.ir.errors import EntrepotError, InputError, MissingFileError, StorageError
from entrepot.ir.io.atomic import exchanged, folder_lock, sync_folder
from entrepot.ir.io.weights import SMALL
from entrepot.ir.model import Model
from entrepot.runtime.generation.folder import MANIFEST, digest_of, is_package, leftovers
from entrepot.runtime.generation.layouts import Layout, config_for_scripts, data_file, genai_config, graph_of, graphs_of
from entrepot.runtime.generation.manifest import FORMAT

if TYPE_CHECKING:
    from entrepot.runtime.generation.package import Package

WEIGHTS = "model.data"
_ALIGNMENT = 4096
_DAY = 86_400


def save(package: Package, path: PathLike, layout: Layout = "entrepot") -> None:
    """See ``Package.save``."""
    target = check_target(path)
    staged = _fresh(target)
    try:
        with folder_lock(target.parent) as locked:
            _clear_killed(target, locked=locked)
            staged.mkdir()
            _write(package, staged, layout)
            _move(staged, target)
    except EntrepotError:
        raise
    except OSError as error:
        raise StorageError(
            f"the package cannot be written: {error.strerror or error}", path=target, errno=error.errno
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def check_target(path: PathLike) -> Path:
    """The folder that a package is to become, through links; to be asked before the work is done.

    Raises:
        InputError: Something else is there.
        MissingFileError: There is no folder to put it into.
        StorageError: Nothing can be written there.
    """
    target = Path(os.path.realpath(as_path(path)))
    try:
        _check_free(target)
        probe = _fresh(target)
        probe.mkdir()
        probe.rmdir()
    except EntrepotError:
        raise
    except (OSError, ValueError) as error:  # no permission, or a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise StorageError(f"the package cannot be written there: {why}", path=target) from error
    return target


def _fresh(target: Path) -> Path:
    """A hidden name beside a folder."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _clear_killed(target: Path, *, locked: bool) -> None:
    """Put back the package that a save had moved away when it was killed, and remove the rest of what it left.

    Args:
        target: Where the package belongs.
        locked: No other save is at work in the folder; otherwise only what is a day old is touched.
    """
    left = [each for each in leftovers(target) if locked or time.time() - each.stat().st_mtime > _DAY]
    moved = next((each for each in left if each.suffix == ".old"), None)
    if moved is not None and not target.exists():
        os.replace(moved, target)
    for each in left:
        shutil.rmtree(each, ignore_errors=True)


def _check_free(target: Path) -> None:
    if target.exists() and not (target.is_dir() and (is_package(target) or not any(target.iterdir()))):
        raise InputError(f"'{target}' exists and is no package", hint="give the name of a new folder")
    if not target.parent.is_dir():
        raise MissingFileError(f"folder '{target.parent}' does not exist", path=target)


def _move(staged: Path, target: Path) -> None:
    """Put the new folder in the place of the old one: in one step where the system can, so that there always is one."""
    old = staged.with_suffix(".old")
    if target.exists() and exchanged(staged, target):
        os.replace(staged, old)
    else:
        if target.exists():
            os.replace(target, old)
        try:
            os.replace(staged, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.replace(old, target)
            raise
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _write(package: Package, folder: Path, layout: Layout) -> None:
    graphs, files = _graphs(package, layout), dict(package.files)
    if layout == "genai":
        files["genai_config.json"] = genai_config(package)
    if layout == "optimum" and (config := config_for_scripts(package)):
        files["config.json"] = config
    weights = {role: WEIGHTS if layout == "entrepot" else data_file(role) for role in graphs}
    taken = {*weights.values(), *(f"{role}.onnx" for role in graphs)} & files.keys()
    if taken:
        raise InputError(f"the package writes a file '{taken.pop()}' itself", hint="give yours another name")
    for file in dict.fromkeys(weights.values()):
        _write_graphs({role: graph for role, graph in graphs.items() if weights[role] == file}, folder, file)
    for name, origin in files.items():
        if isinstance(origin, bytes):
            (folder / name).write_bytes(origin)
        elif os.path.isfile(origin):
            shutil.copyfile(origin, folder / name)
        else:
            raise MissingFileError(f"'{name}' of the package is gone", path=origin, hint="see package.files")
    if layout == "entrepot":
        _describe(package, folder)


def _graphs(package: Package, layout: Layout) -> Mapping[str, Model]:
    if layout == "entrepot":
        return package.graphs
    return graphs_of(package) if layout == "optimum" else {"model": graph_of(package)}


def _write_graphs(graphs: Mapping[str, Model], folder: Path, weights: str) -> None:
    places = _write_weights(graphs, folder / weights)
    for role, model in graphs.items():
        graph = model.ir.clone()
        for name, value in graph.graph.initializers.items():
            if name in places[role]:
                value.const_value = _external(value.const_value, folder / weights, *places[role][name], name)
        Model(graph).save(folder / f"{role}.onnx")


def _external(tensor: Any, file: Path, offset: int, length: int, name: str) -> onnx_ir.ExternalTensor:
    return onnx_ir.ExternalTensor(
        file.name, offset, length, tensor.dtype, shape=tensor.shape, name=name, base_dir=file.parent
    )


def _describe(package: Package, folder: Path) -> None:
    content = {path.name: digest_of(path) for path in sorted(folder.iterdir())}
    described = {"format": FORMAT, **package.manifest.as_dict(), "graphs": list(package.graphs), "sha256": content}
    described["kept"] = sorted(package.files)
    with open(folder / MANIFEST, "w", encoding="utf-8") as file:
        json.dump(described, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _write_weights(graphs: Mapping[str, Model], path: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """One file with every weight once; where each is, by graph and name."""
    known: dict[tuple[bytes, int], int] = {}
    places: dict[str, dict[str, tuple[int, int]]] = {role: {} for role in graphs}
    with open(path, "wb") as file:
        for role, name, tensor in _large(graphs):
            content = tensor.tobytes()
            key = hashlib.sha256(content).digest(), len(content)
            if key not in known:
                file.write(bytes(-file.tell() % _ALIGNMENT) if len(content) >= _ALIGNMENT else b"")
                known[key] = file.tell()
                file.write(content)
            places[role][name] = known[key], len(content)
        file.flush()
        os.fsync(file.fileno())
    return places


def _large(graphs: Mapping[str, Model]) -> Iterator[tuple[str, str, Any]]:
    for role, model in graphs.items():
        for name, value in model.ir.graph.initializers.items():
            tensor = value.const_value
            if tensor is not None and tensor.nbytes >= SMALL and tensor.dtype != onnx_ir.DataType.STRING:
                yield role, name, tensor
