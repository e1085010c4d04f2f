"""A text becomes a module, with its weights."""

from __future__ import annotations

import hashlib
import linecache
import sys
import traceback
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import nn

from entrepot.importers.torch.layers.layer import Array
from entrepot.importers.torch.text.source import Text
from entrepot.ir.errors import DEFECT, ConversionError
from entrepot.runtime.providers.torch.dtypes import tensor_of

_TITLE = "entrepot_imported"


class Imported(nn.Module):
    """What every imported module can do besides what its text says."""

    entrepot_text = ""
    """What it was made from."""

    report: Any = None
    """The proof that it computes what the model did."""

    def source(self) -> str:
        """The text that it was made from."""
        return type(self).entrepot_text

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, (type(self).entrepot_text, type(self).__name__), self.__dict__


def built(text: Text) -> nn.Module:
    """The module that a text defines, holding the model's weights.

    Raises:
        ConversionError: A layer of torch refuses its arguments.
    """
    try:
        with torch.device("meta"):
            module = _kind(text.module, text.name)()
    except (RuntimeError, TypeError, ValueError) as error:
        raise ConversionError(f"torch refuses '{_statement(error)}': {error}", hint=DEFECT) from error
    _fill(module, text.tensors, text.ties)
    return module.eval()


def _statement(error: Exception) -> str:
    """The line of the text that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.line or "" for frame in reversed(frames) if frame.filename.startswith(f"<{_TITLE}")), "")


def restored(source: str, name: str) -> nn.Module:
    """The module of a text, to which its state is yet to be given: what a pickle begins with."""
    kind = _kind(source, name)
    return kind.__new__(kind)


def _kind(source: str, name: str) -> type[nn.Module]:
    """The class that a text defines; its module can be found by name, as dataclasses and pickles ask for it."""
    title = f"{_TITLE}_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if title not in sys.modules:
        module = ModuleType(title)
        filename = f"<{title}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        sys.modules[title] = module
        try:
            exec(compile(source, filename, "exec"), vars(module))  # noqa: S102 - our own text
            plain = vars(module)[name]
            own = {"__module__": title, "__doc__": plain.__doc__, "entrepot_text": source, "__qualname__": name}
            vars(module)["Root"] = type(name, (plain, _beside(plain)), own)
        except BaseException:
            del sys.modules[title]
            raise
    found: type[nn.Module] = vars(sys.modules[title])["Root"]
    return found


def _beside(plain: type[nn.Module]) -> type[nn.Module]:
    """``Imported`` without what would hide a layer or a tensor of the module: one may be called ``source``."""
    with torch.device("meta"):
        made = plain()
    names = {*made._modules, *made._parameters, *made._buffers}  # noqa: SLF001
    if names.isdisjoint(vars(Imported)):
        return Imported
    kept = {key: value for key, value in vars(Imported).items() if key not in {*names, "__dict__", "__weakref__"}}
    return type(Imported.__name__, (nn.Module,), kept)


def _fill(module: nn.Module, tensors: Mapping[str, Array], ties: Mapping[str, str]) -> None:
    """Put tensors where those without memory are."""
    made: dict[str, Any] = {}
    for name, array in tensors.items():
        path, _, leaf = name.rpartition(".")
        owner = module.get_submodule(path)
        if name in ties:
            setattr(owner, leaf, made[ties[name]])
            continue
        tensor = tensor_of(array).clone(memory_format=torch.contiguous_format)
        made[name] = tensor if leaf in owner._buffers else nn.Parameter(tensor)  # noqa: SLF001
        setattr(owner, leaf, made[name])
