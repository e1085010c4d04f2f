"""A package as a folder: the graphs share one file of weights, and the folder appears whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir

from entrepot.ir.arguments import PathLike, as_path
from entrepot.ir.errors import EntrepotError, InputError, MissingFileError, ModelFormatError, StorageError
from entrepot.ir.io.atomic import sync_folder
from entrepot.ir.io.read import load as load_model
from entrepot.ir.io.weights import SMALL
from entrepot.ir.limits import Limits
from entrepot.ir.model import Model
from entrepot.runtime.generation.layouts import WEIGHTS as OTHER_WEIGHTS
from entrepot.runtime.generation.layouts import Layout, genai_config, graph_of, graphs_of
from entrepot.runtime.generation.manifest import FORMAT, Manifest

if TYPE_CHECKING:
    from entrepot.runtime.generation.package import Package

MANIFEST = "entrepot.json"
WEIGHTS = "model.data"
_ALIGNMENT = 4096
_BLOCK = 1 << 20


def is_package(path: PathLike) -> bool:
    """Whether a folder is a package."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def save(package: Package, path: PathLike, layout: Layout = "entrepot") -> None:
    """See ``Package.save``."""
    target = Path(os.path.abspath(as_path(path)))
    try:
        _check_target(target)
    except EntrepotError:
        raise
    except (OSError, ValueError) as error:  # a name that no file can have
        raise StorageError(f"the package cannot be written there: {error}", path=target) from error
    staged = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        staged.mkdir()
        _write(package, staged, layout)
        _move(staged, target)
    except OSError as error:
        raise StorageError(
            f"the package cannot be written: {error.strerror or error}", path=target, errno=error.errno
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _check_target(target: Path) -> None:
    if target.exists() and not (target.is_dir() and (is_package(target) or not any(target.iterdir()))):
        raise InputError(f"'{target}' exists and is no package", hint="give the name of a new folder")
    if not target.parent.is_dir():
        raise MissingFileError(f"folder '{target.parent}' does not exist", path=target)


def _move(staged: Path, target: Path) -> None:
    """Put the new folder in the place of the old one, which stays until then."""
    old = staged.with_suffix(".old")
    if target.exists():
        os.replace(target, old)
    try:
        os.replace(staged, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)
    sync_folder(target.parent)


def _write(package: Package, folder: Path, layout: Layout) -> None:
    graphs = _graphs(package, layout)
    weights, files = WEIGHTS if layout == "entrepot" else OTHER_WEIGHTS, dict(package.files)
    if layout == "genai":
        files["genai_config.json"] = genai_config(package)
    taken = {weights, *(f"{role}.onnx" for role in graphs)} & files.keys()
    if taken:
        raise InputError(f"the package writes a file '{taken.pop()}' itself", hint="give yours another name")
    _write_graphs(graphs, folder, weights)
    for name, origin in files.items():
        if isinstance(origin, bytes):
            (folder / name).write_bytes(origin)
        else:
            shutil.copyfile(origin, folder / name)
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
    content = {path.name: _hash(path) for path in sorted(folder.iterdir())}
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


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def load(path: PathLike, *, limits: Limits | None = None) -> Package:
    """Read a package; the weights are mapped, not copied.

    Raises:
        ModelFormatError: It is no package of a version that is known, or a graph is not valid.
        StorageError: A file cannot be read.
    """
    from entrepot.runtime.generation.package import Package

    folder = Path(as_path(path))
    described = _described(folder / MANIFEST)
    manifest = Manifest.of(described)
    roles: Any = described.get("graphs")
    kept: Any = described.get("kept", [])
    if not (_are_names(roles) and _are_names(kept)):
        raise ModelFormatError("it does not say what belongs to the package", path=folder / MANIFEST)
    graphs = {role: load_model(folder / f"{role}.onnx", limits=limits) for role in roles}
    return Package(graphs, manifest, files={name: folder / name for name in kept})


def _are_names(given: Any) -> bool:
    """Whether it is a list of names of files in one folder."""
    return isinstance(given, list) and all(isinstance(name, str) and name == os.path.basename(name) for name in given)


def check(path: PathLike) -> list[str]:
    """The files of a package that are missing, or are not what was saved."""
    folder = Path(as_path(path))
    recorded = _described(folder / MANIFEST).get("sha256", {})
    return [
        name for name, digest in recorded.items() if not (folder / name).is_file() or _hash(folder / name) != digest
    ]


def _described(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
    except OSError as error:
        raise StorageError(f"the file cannot be read: {error}", path=path, errno=error.errno) from error
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"it is not JSON: {error}", path=path) from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise ModelFormatError(f"it is not of format {FORMAT}", path=path)
    return described
