"""A package as a folder: what it says of itself, and its files."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entrepot.ir.arguments import PathLike, as_path
from entrepot.ir.errors import InputError, MissingFileError, ModelFormatError, StorageError
from entrepot.ir.io.read import load as load_model
from entrepot.ir.limits import Limits
from entrepot.runtime.generation.fitting import check_fits
from entrepot.runtime.generation.manifest import FORMAT, Manifest, as_mapping

if TYPE_CHECKING:
    from entrepot.runtime.generation.package import Package

MANIFEST = "entrepot.json"
_BLOCK = 1 << 20


def is_package(path: PathLike) -> bool:
    """Whether a folder is a package."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def leftovers(path: Path) -> list[Path]:
    """What saves of a package left beside it when they were killed: ``.tmp`` unfinished, ``.old`` what it replaces."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{8}\.(tmp|old)")
    try:
        return sorted(each for each in path.parent.iterdir() if pattern.fullmatch(each.name))
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return []


def check_whole(path: Path) -> None:
    """Refuse a package that a save had moved away when it was killed, and say where it is.

    Raises:
        MissingFileError: It is not there.
    """
    moved = [] if os.path.exists(path) else [each for each in leftovers(path) if each.suffix == ".old"]
    if moved:
        raise MissingFileError(
            "a save that was to replace the package was interrupted",
            path=path,
            hint=f"the package as it was is in '{moved[0]}': rename that, or save the new one again",
        )


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def load(path: PathLike, *, limits: Limits | None = None) -> Package:
    """Read a package; the weights are mapped, not copied, and not looked at: ``check`` does that.

    Raises:
        ModelFormatError: It is no package of a version that is known, or a graph is not valid.
        StorageError: A file cannot be read.
    """
    from entrepot.runtime.generation.package import Package

    folder = Path(as_path(path))
    described = _described(folder / MANIFEST)
    roles: Any = described.get("graphs")
    kept: Any = described.get("kept", [])
    if not (_are_names(roles) and roles and _are_names(kept)):
        raise ModelFormatError("it does not say what belongs to the package", path=folder / MANIFEST)
    digests = _digests(described, folder / MANIFEST)
    graphs = {role: load_model(folder / f"{role}.onnx", limits=limits) for role in roles}
    for file in (folder / f"{role}.onnx" for role in roles):
        if file.name in digests and digest_of(file) != digests[file.name]:
            raise ModelFormatError(
                "it is not the file that was saved",
                path=file,
                hint=f"if you changed it, remove its line from 'sha256' in {MANIFEST}",
            )
    try:
        manifest = Manifest.of(described)
        check_fits(manifest, graphs)
    except ModelFormatError as error:
        raise ModelFormatError(error.message, path=folder / MANIFEST, hint=error.hint) from error
    return Package(graphs, manifest, files={name: folder / name for name in kept})


def _are_names(given: Any) -> bool:
    """Whether it is a list of names of files in one folder."""
    return isinstance(given, list) and all(isinstance(name, str) and name == os.path.basename(name) for name in given)


def check(path: PathLike) -> list[str]:
    """The files of a package that are missing, or are not what was saved."""
    folder = Path(as_path(path))
    recorded = _digests(_described(folder / MANIFEST), folder / MANIFEST)
    return [
        name for name, digest in recorded.items() if not (folder / name).is_file() or digest_of(folder / name) != digest
    ]


def _digests(described: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """What files contained when they were saved, by name."""
    try:
        found = as_mapping(described.get("sha256", {}), "sha256")
    except InputError as error:
        raise ModelFormatError(error.message, path=path) from error
    if not _are_names(list(found)):
        raise ModelFormatError("sha256 names files that are not in the folder", path=path)
    return found


def _described(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            described = json.load(file)
    except FileNotFoundError as error:
        raise MissingFileError(
            f"the folder has no {MANIFEST}, so it is no package", path=path.parent, hint="name an .onnx file in it"
        ) from error
    except OSError as error:
        raise StorageError(f"the file cannot be read: {error}", path=path, errno=error.errno) from error
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"it is not JSON: {error}", path=path) from error
    version = described.get("format") if isinstance(described, dict) else None
    if version is True or version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        raise ModelFormatError(
            f"it is not of format {FORMAT}",
            path=path,
            hint="a newer entrepot wrote it" if newer else "ep.export_transformer(...).save(folder) writes packages",
        )
    return described
