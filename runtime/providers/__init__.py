"""Who can run nodes: one folder per provider."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from entrepot.ir.arguments import as_names, expected
from entrepot.ir.errors import InputError, MissingDependencyError
from entrepot.ir.limits import Limits
from entrepot.ir.plugins import named, plugins
from entrepot.ir.typing.plain import Type, of_spec
from entrepot.runtime.device import Array, Device
from entrepot.runtime.dividing.copies import Copy

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from entrepot.ir.model import Model
    from entrepot.ir.typing.query import Types
    from entrepot.runtime.emitting.emit import Emitted


class Provider(Protocol):
    """What a session needs of whoever runs a part of a graph; it is made for one session, from its ``Setting``."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def device(self) -> Device:
        """Where its parts take their inputs and leave their outputs; shared by all providers of that memory."""

    @staticmethod
    def available() -> str:
        """Empty, or what is missing here and how to get it, as the end of "provider 'x' ..."; imports nothing large."""

    def place(self, constant: np.ndarray[Any, Any]) -> Array:
        """A constant on the device; the same memory each time it is asked about the same constant."""

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""

    def compile(self, part: ir.GraphView) -> Compiled:
        """A straight-line callable: the part's inputs in order to its outputs in order."""


@dataclass(frozen=True)
class Compiled:
    """A part made ready to run.

    Attributes:
        run: Takes the part's inputs by position, returns its outputs as a tuple.
        emitted: The generated source behind ``run``, where there is one.
        how: What became of each node; empty if unknown, because a library runs the part as a whole.
        locate: The node that an error raised in ``run`` comes from; empty when unknown.
        observed: Like ``run`` after a function that is told the name and value of everything computed; ``None`` where
            values are not to be seen.
        on_host: Positions of the inputs that ``run`` takes as NumPy arrays, on whatever device the others are.
        made_on_host: Positions of the outputs that ``run`` returns as NumPy arrays, likewise.
        unread: Positions of the inputs of which only the shape matters: taken from the host and the device alike.
        copies: What is moved between the host and the device in the course of ``run``.
        remark: Says what would make it faster here; empty if nothing is known.
    """

    run: Callable[..., tuple[Any, ...]]
    emitted: Emitted | None = None
    how: Mapping[ir.Node, str] = field(default_factory=dict)
    locate: Callable[[BaseException], str] = lambda error: ""
    observed: Callable[..., tuple[Any, ...]] | None = None
    on_host: frozenset[int] = frozenset()
    made_on_host: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    copies: tuple[Copy, ...] = ()
    remark: Callable[[], str] = lambda: ""


@dataclass(frozen=True)
class Setting:
    """What every provider of a session is given.

    Attributes:
        hub: The model at the hub's opset, whose nodes providers are asked about and compile.
        original: The model as it was given.
        limits: Bounds on what the model may cost.
        threads: Threads that one operator may use; ``None`` for the library's own choice.
    """

    hub: Model
    original: Model
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None

    @cached_property
    def types(self) -> Types:
        """What is known of the values of the hub's main graph, inferred where somebody asks."""
        from entrepot.ir.inference import scope_types

        return scope_types(self.hub.ir)[self.hub.ir.graph]

    def type_of(self, value: ir.Value) -> Type | None:
        """The type of a value of the hub's main graph, as far as it is known."""
        return of_spec(self.types.spec(value))


_TORCH = "entrepot.runtime.providers.torch.provider"

_HOMES = {
    "cpu": ("entrepot.runtime.providers.cpu.provider", "CpuProvider"),
    "reference": ("entrepot.runtime.providers.reference.provider", "ReferenceProvider"),
    "onnxruntime": ("entrepot.runtime.providers.onnxruntime.provider", "OnnxRuntimeProvider"),
    "torch": (_TORCH, "TorchProvider"),
    "torch:autotune": (_TORCH, "MeasuredTorchProvider"),
    "torch:compile": (_TORCH, "CompiledTorchProvider"),
    "torch:cuda": (_TORCH, "CudaProvider"),
    "torch:cuda:compile": (_TORCH, "CompiledCudaProvider"),
    "torch:mps": (_TORCH, "MpsProvider"),
    "cuda": (_TORCH, "CudaProvider"),
}

Providers: TypeAlias = "str | Sequence[str]"
"""Names in order of preference, or a single name."""


def as_providers(given: Providers) -> tuple[str, ...]:
    """The names of providers, each once.

    Raises:
        InputError: They are not names, or there is no provider of that name.
    """
    names = tuple(dict.fromkeys(as_names(given, "providers")))
    if not names:
        raise expected("providers", "at least one name", given, hint=_known())
    for name in names:
        if name not in _HOMES and named("providers", name) is None:
            raise InputError(f"unknown provider '{name}'", hint=_known())
    return names


def provider_names() -> tuple[str, ...]:
    """All providers: ours, then those that other distributions register among ``entrepot.providers``."""
    return (*_HOMES, *(plugin.name for plugin in plugins("providers") if plugin.name not in _HOMES))


def _known() -> str:
    return f"there are {', '.join(provider_names())}"


def make(name: str, setting: Setting) -> Provider:
    """A provider by one of ``provider_names()``.

    Raises:
        MissingDependencyError: It needs a library that is not installed.
        PluginError: What is registered under its name cannot be imported, or is no provider.
    """
    kind = _kind(name)
    if reason := kind.available():
        raise MissingDependencyError(f"provider '{name}' {reason}")
    provider: Provider = kind(setting)
    return provider


def delegate(setting: Setting) -> Provider:
    """Who runs users' operators where no provider that was asked for does."""
    from entrepot.runtime.providers.python.provider import PythonProvider

    return PythonProvider(setting)


def availability(name: str) -> str:
    """Empty, or why a provider, one of ``provider_names()``, cannot be used here."""
    reason: str = _kind(name).available()
    return reason


def _kind(name: str) -> Any:
    if name not in _HOMES:
        plugin = named("providers", name)
        if plugin is None:
            raise InputError(f"unknown provider '{name}'", hint=_known())
        return plugin.load(needs=("available", "place", "supports", "compile"))
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
