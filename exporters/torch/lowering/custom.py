"""Translations that users register, and users' custom operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from entrepot.exporters.torch.translations.vision import vision_translations
from entrepot.exporters.torch.upstream import OpOverload, OpOverloadPacket, all_arguments, custom_function, packet_name
from entrepot.ir.errors import InputError

_QUANTISED = ("quantized::", "quantized_decomposed::")
_KNOWN = ("aten::", "prims::", "entrepot::", *_QUANTISED, "onnx", "inductor::", "torchvision::nms")


@dataclass(frozen=True, eq=False)
class Entry:
    """One registration.

    Attributes:
        name: How it is called.
        targets: The functions or overloads that it is for.
        function: What takes their place.
        into: ``"torch"`` or ``"onnx"``.
    """

    name: str
    targets: tuple[Any, ...]
    function: Callable[..., Any]
    into: str


_ENTRIES: list[Entry] = []
"""In the order of registration: the last one counts."""


def add(target: Any, function: Callable[..., Any], into: str) -> Entry:
    """See ``entrepot.register_translation``."""
    if str(into) not in ("torch", "onnx"):
        raise InputError(f"into is {into!r}", hint='give "torch" or "onnx"')
    if not callable(function):
        raise InputError(f"expected a function, got {type(function).__name__}", hint="give what to call in its place")
    name, targets = _targets(target)
    if into == "onnx" and not all(isinstance(each, OpOverload) for each in targets):
        raise InputError(
            f"{name} is a Python function, and only operators become ONNX nodes",
            hint='name the operator, "aten::relu", or give a function that computes with torch',
        )
    entry = Entry(name, targets, function, into)
    _ENTRIES.append(entry)
    return entry


def remove(entry: Entry) -> None:
    """Forget one registration."""
    if entry in _ENTRIES:
        _ENTRIES.remove(entry)


def onnx_translations() -> tuple[tuple[Any, Callable[..., Any]], ...]:
    """Overload and function of every registration that builds ONNX nodes, the last one last, after torchvision's."""
    users = [(target, entry.function) for entry in _ENTRIES if entry.into == "onnx" for target in entry.targets]
    return (*vision_translations(), *users)


def registered(func: Any) -> Callable[..., Any] | None:
    """What users want captured for ``func``: itself where it is to become ONNX nodes; ``None`` for nothing."""
    overloads = _overloads(func) if _ENTRIES else []
    for entry in reversed(_ENTRIES):
        if func in entry.targets or (overloads and set(overloads) <= set(entry.targets)):
            return entry.function if entry.into == "torch" else func
    return None


def python_of(func: Any) -> Callable[..., Any] | None:
    """The Python function of a custom operator, if it has one: ONNX lacks the operator, but may have what it calls."""
    name = qualified_name(func)
    if not name or name.startswith(_KNOWN):
        return None
    return custom_function(name) or _KERNELS.get(name)


def is_foreign(name: str) -> bool:
    """Whether an operator is neither torch's nor ours, and nothing is known of how it is written."""
    return bool(name) and not name.startswith(_KNOWN) and custom_function(name) is None


def remember_kernel(name: str, function: Callable[..., Any]) -> None:
    """Capture this function where the operator is called; it takes every argument of the schema."""

    def call(*args: Any, **kwargs: Any) -> Any:
        positional, named = all_arguments(name, args, kwargs)
        return function(*positional, **named)

    _KERNELS[name] = call
    _CODES[function.__code__] = name


def foreign_operator(code: CodeType) -> str:
    """The name of the operator whose kernel this is the code of, or ""."""
    return _CODES.get(code, "")


_KERNELS: dict[str, Callable[..., Any]] = {}
_CODES: dict[CodeType, str] = {}


def qualified_name(func: Any) -> str:
    """``mylib::scale``, for an operator and each of its overloads; else ""."""
    if isinstance(func, OpOverload):
        func = func.overloadpacket
    return packet_name(func) if isinstance(func, OpOverloadPacket) else ""


def _targets(target: Any) -> tuple[str, tuple[Any, ...]]:
    target = getattr(target, "_qualname", target)  # a custom operator, as its decorator returns it
    if isinstance(target, str):
        target = _operator(target)
    overloads = _overloads(target)
    if overloads:
        return str(target), tuple(overloads)
    if not callable(target):
        raise InputError(
            f"expected an operator, got {type(target).__name__}", hint='give "mylib::scale" or a function of torch'
        )
    return getattr(target, "__name__", str(target)), (target,)


def _operator(name: str) -> Any:
    """The operator of a name as torch writes it, ``mylib::scale`` or ``mylib.scale``, with or without overload."""
    parts = name.replace("::", ".").split(".")
    try:
        found: Any = torch.ops
        for part in parts if 2 <= len(parts) <= 3 else ():
            found = getattr(found, part)
    except AttributeError:
        found = torch.ops
    if found is torch.ops:
        raise InputError(
            f"there is no torch operator '{name}'", hint='write "mylib::scale", and import what defines it first'
        )
    return found


def _overloads(target: Any) -> list[Any]:
    if isinstance(target, OpOverloadPacket):
        return [getattr(target, name) for name in target.overloads()]
    return [target] if isinstance(target, OpOverload) else []
