"""A model made ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.limits import Limits
from entrepot.runtime import providers as registry
from entrepot.runtime.partition import Placement, Plan, partition
from entrepot.runtime.profile import Profile, profile
from entrepot.runtime.program import Program
from entrepot.runtime.providers import Setting
from entrepot.runtime.threads import available, context

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source
    from entrepot.ir.model import Model


class Session:
    """Runs a model.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        providers: Who may run nodes, in order of preference: ``cpu``, ``reference``, ``onnxruntime``. One that is asked
            for and cannot be used is an error.
        limits: Bounds on what the model may cost.
        threads: Threads that one run may use; ``None`` for as many as the process has processors. Results do not
            depend on it.

    Raises:
        UnsupportedOpError: Nodes that no provider runs; all of them are named.
        ConversionError: The model cannot be brought to the hub's opset.
        MissingDependencyError: A provider's library is not installed.
    """

    def __init__(
        self,
        model: Source,
        *,
        providers: Sequence[str] = ("cpu",),
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> None:
        if isinstance(providers, str) or not providers:
            raise InputError(f"providers is a list of names, not {providers!r}", hint="providers=['cpu']")
        if threads is not None and threads < 1:
            raise InputError(f"threads is 1 or more, not {threads}", hint="leave it out for all processors")
        self._context = context(threads or available())
        self._model = load(model, limits=limits)
        self._hub = self._model.at_hub()
        self._graph = self._hub.ir.graph
        setting = Setting(self._hub, self._model, limits or Limits(), threads)
        self._providers = [registry.make(name, setting) for name in providers]
        self._programs: dict[tuple[tuple[str, ...], frozenset[str]], Program] = {}
        self._outputs = tuple(value.name or "" for value in self._graph.outputs)
        self._defaults = frozenset(
            value.name or "" for value in self._graph.inputs if value.name in self._graph.initializers
        )
        self._values: dict[str, ir.Value] = {}
        self._default = self._program(self._outputs, frozenset())

    @property
    def model(self) -> Model:
        """The model as it came."""
        return self._model

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers asked for, in order."""
        return tuple(provider.name for provider in self._providers)

    def run(
        self,
        feeds: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        *,
        observe: Callable[[str, Any], None] | None = None,
    ) -> dict[str, Any]:
        """Run the model once.

        Args:
            feeds: Input name to array: anything with ``__array__`` or ``__dlpack__``, or Python numbers and lists.
                Arrays must have the declared element type. Initializers that are also inputs may be fed.
            outputs: Names to compute; only what they need is run. Any value of the main graph may be asked for.
            observe: Called with name and value of everything computed; with ``providers=["reference"]`` only.

        Returns:
            Output name to array; sequences are lists, an empty optional is ``None``.

        Raises:
            InputError: Feeds are missing, unknown, or of the wrong type, rank or size.
            ExecutionError: A node failed; the message names it.
        """
        program = self._default
        if outputs is not None or self._defaults:
            overridden = frozenset(name for name in feeds if name in self._defaults)
            program = self._program(self._outputs if outputs is None else tuple(outputs), overridden)
        if observe is None:
            return program.run(feeds)
        return self._observed(program, feeds, observe)

    def _observed(
        self, program: Program, feeds: Mapping[str, Any], observe: Callable[[str, Any], None]
    ) -> dict[str, Any]:
        blind = [provider.name for provider in self._providers if not hasattr(provider, "observe")]
        if blind:
            raise InputError(
                f"provider '{blind[0]}' cannot be observed", hint="use providers=['reference'] to observe values"
            )
        try:
            self._set_observer(observe)
            return program.run(feeds)
        finally:
            self._set_observer(None)

    def _set_observer(self, observe: Callable[[str, Any], None] | None) -> None:
        for provider in self._providers:
            provider.observe = observe  # type: ignore[attr-defined] # only those that have it get here

    def source(self) -> str:
        """The generated Python source that computes all outputs; one function per part."""
        parts = self._default.parts
        return "\n\n".join(compiled.emitted.source for _, compiled in parts if compiled.emitted)

    def profile(self, feeds: Mapping[str, Any]) -> Profile:
        """Where the time of one run goes, by operator; for sessions that run on ``cpu`` alone.

        Raises:
            InputError: The session has other providers, or the feeds do not fit.
        """
        emitted = self._default.parts[0][1].emitted
        if len(self._default.parts) != 1 or emitted is None:
            raise InputError("only a session that runs on cpu alone can be profiled", hint="use providers=['cpu']")
        return self._context.copy().run(profile, emitted, self._default.values(feeds))

    def plan(self) -> Plan:
        """Where every node of the main graph runs, what it became there, and who declined it."""
        placements: list[Placement] = []
        for part, compiled in self._default.parts:
            otherwise = "folded" if compiled.how else "whole part"
            placements += [replace(row, how=compiled.how.get(row.node, otherwise)) for row in part.placements]
        return Plan(tuple(placements))

    def _program(self, names: tuple[str, ...], overridden: frozenset[str]) -> Program:
        key = (names, overridden)
        if key not in self._programs:
            self._programs[key] = self._build(names, overridden)
        return self._programs[key]

    def _build(self, names: tuple[str, ...], overridden: frozenset[str]) -> Program:
        wanted = [self._value(name) for name in names]
        parts = partition(self._graph, self._providers, wanted, overridden)
        compiled = tuple((part, part.provider.compile(part.graph)) for part in parts)
        inputs = [v for v in self._graph.inputs if v.name not in self._defaults or v.name in overridden]
        return Program(names, inputs, wanted, compiled, self._context)

    def _value(self, name: str) -> ir.Value:
        if not self._values:
            self._values = {value.name or "": value for value in _main_values(self._graph)}
        if name not in self._values:
            raise InputError(f"the model has no output '{name}'", hint=f"its outputs are {list(self._outputs)}")
        return self._values[name]


def _main_values(graph: ir.Graph) -> list[ir.Value]:
    made = [output for node in graph for output in node.outputs]
    return [*made, *graph.initializers.values(), *graph.inputs, *graph.outputs]
