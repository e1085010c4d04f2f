"""What a thing is, told by its classes or its contents, without importing any framework."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, ModuleType
from typing import Any

from entrepot.exporters.sample import Sample
from entrepot.ir.io.foreign import Foreign, recognised

_HEAD = 1 << 12
"""Bytes of a file that are looked at."""


@dataclass(frozen=True)
class Found:
    """Something that is to be exported.

    Attributes:
        obj: The object as it was given.
        sample: What it is called with, which may tell whose function a plain function is.
        path: Where it is, if it is a file or a folder, or the name of one that does not exist.
    """

    obj: Any
    sample: Any = None
    path: Path | None = None

    @classmethod
    def of(cls, obj: Any, sample: Any = None) -> Found:
        """A thing with its path, if it has one."""
        return cls(obj, sample, Path(obj) if isinstance(obj, str | os.PathLike) else None)

    def is_of(self, *packages: str) -> bool:
        """Whether a class of the object, or one of its bases, is defined in one of these packages or modules."""
        homes = [f"{cls.__module__}." for cls in type(self.obj).__mro__]
        return any(home.startswith(f"{package}.") for home in homes for package in packages)

    def samples(self, *packages: str) -> bool:
        """Whether the sample, or a member of it, is of one of these packages."""
        return any(Found(member).is_of(*packages) for member in _members(self.sample))

    @property
    def is_function(self) -> bool:
        """Whether it is a plain function, one written in C, a method or a partial one."""
        known = isinstance(self.obj, functools.partial | BuiltinFunctionType)
        return known or (callable(self.obj) and hasattr(self.obj, "__code__"))

    def uses(self, *packages: str, depth: int = 3) -> bool:
        """Whether a function is a method of, or mentions, something of one of these packages, or one of them itself.

        A partial one does so by what it wraps and by the arguments that it holds; where the sample does not say of
        which framework it is, a function does so by others of its user that it calls.
        """
        function, held = self.obj, list[Any]()
        while isinstance(function, functools.partial):
            held += [function.func, *function.args, *function.keywords.values()]
            function = function.func
        around = surroundings(function).values()
        if Found(None, held).samples(*packages) or any(
            Found(value).is_of(*packages) or getattr(value, "__name__", "") in packages for value in around
        ):
            return True
        called = [Found(value, self.sample) for value in around if _is_of_user(value)]
        deeper = depth > 0 and not self.samples(*_TELLING)
        return deeper and any(each.uses(*packages, depth=depth - 1) for each in called)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path is not None and os.path.isdir(self.path)  # which, unlike pathlib, takes any name

    def has_suffix(self, *suffixes: str) -> bool:
        """Whether the name of the file or folder ends in one of these."""
        return self.path is not None and self.path.suffix.lower() in suffixes

    def contains(self, name: str) -> bool:
        """Whether it is a folder in which there is a file of this name."""
        return self.path is not None and os.path.isfile(self.path / name)

    @functools.cached_property
    def head(self) -> bytes:
        """The first bytes of the file; empty if there is none, or it cannot be read."""
        if self.path is None or not os.path.isfile(self.path):
            return b""
        try:
            with self.path.open("rb") as file:
                return file.read(_HEAD)
        except OSError:
            return b""

    @functools.cached_property
    def foreign(self) -> Foreign | None:
        """What the file, folder or bytes are, by their contents, if that is anything but an ONNX model."""
        if self.is_bytes:
            return recognised(bytes(self.obj))
        return None if self.path is None else recognised(self.path)

    @property
    def is_bytes(self) -> bool:
        """Whether it is what a file consists of."""
        return isinstance(self.obj, bytes | bytearray | memoryview)


def surroundings(function: Any) -> dict[str, Any]:
    """What a function is a method of, and the variables around it that it, or a function inside it, reads."""
    code, owner = getattr(function, "__code__", None), getattr(function, "__self__", None)
    around = {} if owner is None else {"module": owner}
    if code is None:
        return around
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    around |= {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return around | {name: function.__globals__[name] for name in _names(code) if name in function.__globals__}


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_of_user(value: Any) -> bool:
    """Whether it is a function, and none of a library."""
    file = str(getattr(getattr(value, "__code__", None), "co_filename", _LIBRARIES[0]))
    return not any(part in file for part in _LIBRARIES)


_LIBRARIES = ("-packages", "/lib/python")


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a variable that has no value yet
        return False


def _members(sample: Any) -> Iterator[Any]:
    """What a sample consists of, inside of plain containers and of ``Sample``."""
    if isinstance(sample, Sample):
        yield from _members((*sample.args, *sample.kwargs.values()))
    elif isinstance(sample, tuple | list):
        for member in sample:
            yield from _members(member)
    elif isinstance(sample, Mapping):
        yield from _members(tuple(sample.values()))
    else:
        yield sample


_TELLING = ("torch", "tensorflow", "jax", "jaxlib")
"""Whose arrays in a sample say of which framework a function is."""
_TORCH_SUFFIXES = (".pt2", ".pt", ".pth", ".ts")
_MODEL_FIELDS = frozenset(b"\x12\x1a\x22\x28\x32\x3a\x42\x72")
"""First bytes of what may follow ``ir_version`` in an ``onnx.ModelProto``."""


def is_onnx(found: Found) -> bool:
    """An ONNX model in any form that ``load`` reads."""
    if found.path is None:
        by_class = found.is_of("onnx", "onnx_ir", "entrepot.ir.model")
        return by_class or (found.is_bytes and not _is_of_jax(found.foreign))
    head = found.head
    by_content = len(head) > 2 and head[0] == 8 and 3 <= head[1] < 128 and head[2] in _MODEL_FIELDS
    return by_content or (found.has_suffix(".onnx") and found.foreign is None)


def is_keras(found: Found) -> bool:
    """A model or a layer of Keras, on whatever backend, or a file of one."""
    if found.path is None:
        return found.is_of("keras")
    known = found.foreign is not None and found.foreign.framework == "keras"
    return known or (found.has_suffix(".keras") and os.path.isfile(found.path))


def _is_of_torch(found: Found) -> bool:
    """Whether a function takes torch's tensors, or is a method of a module."""
    return found.samples("torch") or found.uses("torch")


def is_torch(found: Found) -> bool:
    """A module, a program or a script, a function of tensors, or an archive that torch writes."""
    if found.path is None:
        return found.is_of("torch") or (found.is_function and _is_of_torch(found))
    if found.foreign is not None:
        return found.foreign.framework == "torch"
    return found.has_suffix(*_TORCH_SUFFIXES)


TABULAR = ("sklearn", "xgboost", "lightgbm", "catboost")
"""Libraries of estimators."""


def is_sklearn(found: Found) -> bool:
    """An estimator of scikit-learn or in its manner, a booster or its file, or a method of one."""
    if found.path is not None:
        return found.foreign is not None and found.foreign.framework == "sklearn"
    owner = getattr(found.obj, "__self__", None)
    return found.is_of(*TABULAR) or (owner is not None and Found(owner).is_of(*TABULAR))


def _is_of_tensorflow(found: Found) -> bool:
    """Whether a function takes TensorFlow's tensors, mentions them, or is its own."""
    own = str(getattr(found.obj, "__module__", "")).startswith("tensorflow.")
    return own or found.samples("tensorflow") or found.uses("tensorflow")


def is_tensorflow(found: Found) -> bool:
    """A function, a module or a graph of TensorFlow, or a file or folder that it writes."""
    if found.path is None:
        return found.is_of("tensorflow") or (found.is_function and _is_of_tensorflow(found))
    if checkpoint_prefix(found.path) is not None:
        return True
    if found.foreign is not None:
        return found.foreign.framework == "tensorflow"
    path, signature = split_signature(found.path)
    return bool(signature) or (found.has_suffix(".pb") and path.is_file())


def split_signature(path: Path) -> tuple[Path, str]:
    """A SavedModel and the signature of it that is meant, written ``folder#name``; nothing for any other path."""
    folder, mark, name = str(path).rpartition("#")
    if mark and not path.exists() and os.path.isfile(os.path.join(folder, "saved_model.pb")):
        return Path(folder), name
    return path, ""


def checkpoint_prefix(path: Path) -> Path | None:
    """What the files of a checkpoint of TensorFlow 1 begin with: ``model.ckpt`` for ``model.ckpt.meta``.

    Args:
        path: That, or one of the files, or the folder in which there is one such checkpoint.
    """
    if path.suffix in (".meta", ".index"):
        path = path.with_suffix("")
    if os.path.isdir(path):
        found = sorted(path.glob("*.meta"))
        path = found[-1].with_suffix("") if found else path
    both = os.path.isfile(f"{path}.meta") and os.path.isfile(f"{path}.index")
    return path if both else None


_JAX = ("jax", "jaxlib", "flax.linen", "flax.nnx", "flax.core", "equinox")
_JAX_PACKAGES = ("jax", "jaxlib", "flax", "equinox")


def is_jax(found: Found) -> bool:
    """A module of flax or equinox, also with its variables, a function of JAX's arrays, or what jax.export wrote."""
    if found.path is not None or found.is_bytes:
        return _is_of_jax(found.foreign)
    if isinstance(found.obj, tuple) and len(found.obj) == 2:
        return Found(found.obj[0]).is_of("flax.linen")
    if found.is_of(*_JAX):
        return True
    if callable(found.obj) and found.samples(*_JAX):
        return True
    return found.is_function and _holds_jax(found.obj, 4)


def _is_of_jax(foreign: Foreign | None) -> bool:
    return foreign is not None and foreign.framework == "jax"


def _holds_jax(value: Any, depth: int) -> bool:
    """Whether a function, or one that it calls or holds, mentions JAX or holds an array of its."""
    if isinstance(value, functools.partial):
        held: Iterable[Any] = (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, Mapping):
        held = value.values()
    elif isinstance(value, tuple | list):
        held = value
    elif Found(value).is_of(*_JAX) or _home(value).partition(".")[0] in _JAX_PACKAGES:
        return True
    else:
        held = surroundings(value).values() if Found(value).is_function else ()
    return depth > 0 and any(_holds_jax(each, depth - 1) for each in held)


def _home(value: Any) -> str:
    """The module that a value is, or that it or its class is defined in."""
    name = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
    return name if isinstance(name, str) else ""
