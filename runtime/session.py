"""A model made ready to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from entrepot.ir.arguments import IntegerLike, as_integer, as_names, expected
from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.limits import Limits
from entrepot.ir.operators import uses_defined
from entrepot.runtime import providers as registry
from entrepot.runtime import room
from entrepot.runtime.device import HOST, Device
from entrepot.runtime.dividing.copies import Copy
from entrepot.runtime.dividing.partition import delegated, partition
from entrepot.runtime.feeds import Feeding, by_name
from entrepot.runtime.placement import Placement, Plan
from entrepot.runtime.profile import Profile, profile
from entrepot.runtime.program import Program
from entrepot.runtime.providers import Providers, Setting, as_providers
from entrepot.runtime.threads import available, context

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source
    from entrepot.ir.model import Model, ValueSpec


class Session:
    """Runs a model; pickles and copies with it.

    Args:
        model: A ``Model``, or anything ``load`` reads. A session that was given a path is pickled as that path, so
            the file has to exist where it is unpickled; any other takes the model along.
        providers: Who may run nodes, in order of preference: ``cpu``, ``reference``, ``onnxruntime``, ``torch``,
            ``torch:cuda`` or ``cuda``, ``torch:mps``. One that is asked for but cannot be used is an error.
        limits: Bounds on what the model may cost.
        threads: Threads that one run may use; ``None`` for as many as the process has processors. Results do not
            depend on it.

    Raises:
        InputError: An argument is none of the things above.
        UnsupportedOpError: No provider can run some of the nodes; all of them are named.
        ConversionError: The model cannot be brought to the hub's opset.
        MissingDependencyError: A provider's library is not installed.
    """

    def __init__(
        self,
        model: Source,
        *,
        providers: Providers = ("cpu",),
        limits: Limits | None = None,
        threads: IntegerLike | None = None,
    ) -> None:
        names = as_providers(providers)
        count = None if threads is None else as_integer(threads, "threads", least=1, hint=_ALL_THREADS)
        self._context = context(count or available())
        self._context.run(room.limit, Limits.of(limits).result_bytes)
        self._model = load(model, limits=limits)
        self._origin = os.path.abspath(model) if isinstance(model, str | os.PathLike) else self._model
        self._options: dict[str, Any] = {"providers": names, "limits": limits, "threads": count}
        self._hub = self._model.at_hub()
        self._graph = self._hub.ir.graph
        setting = self._setting = Setting(self._hub, self._model, Limits.of(limits), count)
        self._providers = [registry.make(name, setting) for name in names]
        self._delegates = [registry.delegate(setting)] if uses_defined(self._hub.ir) else []
        self._programs: dict[tuple[tuple[str, ...], frozenset[str]], Program] = {}
        self._outputs = tuple(value.name or "" for value in self._graph.outputs)
        self._defaults = frozenset(
            value.name or "" for value in self._graph.inputs if value.name in self._graph.initializers
        )
        self._values: dict[str, ir.Value] = {}
        self._default = self._program(self._outputs, frozenset())

    @property
    def model(self) -> Model:
        """The model as it was given."""
        return self._model

    @property
    def inputs(self) -> tuple[ValueSpec, ...]:
        """What must be fed, in order."""
        return self._model.inputs

    @property
    def outputs(self) -> tuple[ValueSpec, ...]:
        """What comes out, in order."""
        return self._model.outputs

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers asked for, in order."""
        return tuple(provider.name for provider in self._providers)

    @property
    def threads(self) -> int:
        """Threads that one run may use."""
        return self._options["threads"] or available()

    def run(
        self,
        feeds: Feeding,
        outputs: Any = None,
        *,
        observe: Callable[[str, Any], None] | None = None,
    ) -> dict[str, Any]:
        """Run the model once.

        Args:
            feeds: Input name to array: an array or tensor of any library, on the host or on the device that runs the
                model, or Python numbers and lists.
                Arrays must have the declared element type. Initializers that are also inputs may be fed. Without names:
                one array for a model with one input, or a list or tuple of all in order.
            outputs: Names to compute, or one; only what they need is run. Any value of the main graph may be asked for.
                ``run(names, feeds)`` and ``run(None, feeds)``, in onnxruntime's order, are understood too.
            observe: Called with the name and value of everything computed; only with ``providers=["reference"]``.

        Returns:
            Output name to array; sequences are lists, an empty optional is ``None``. Arrays are NumPy's, unless a
            feed was on the provider's own device: then they stay there.

        Raises:
            InputError: Feeds are missing, unknown, or of the wrong type, rank or size.
            ExecutionError: A node failed; the message names it.
            ResourceLimitError: A result would be larger than ``limits`` or the machine allow.
        """
        if type(feeds) is not dict and not isinstance(feeds, Mapping):
            if isinstance(outputs, Mapping):
                feeds, outputs = outputs, feeds
            else:
                feeds = by_name(self._default.specs, feeds)
        program = self._default
        if outputs is not None or self._defaults:
            names = self._outputs if outputs is None else as_names(outputs, "outputs")
            program = self._program(names, frozenset(name for name in feeds if name in self._defaults))
        if observe is None:
            return program.run(feeds)
        return program.run(feeds, self._as_observer(observe))

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run the model like a function: ``y = session(x)``.

        Args:
            arrays: The first inputs, in order.
            named: Other inputs by name.

        Returns:
            The output if the model has only one, else a tuple of all in order.

        Raises:
            InputError: As for ``run``.
        """
        specs = self._default.specs
        if len(arrays) > len(specs):
            raise InputError(f"{len(arrays)} arrays are more than there are inputs", hint=f"they are {self._names()}")
        feeds = {spec.name: array for spec, array in zip(specs, arrays, strict=False)}
        if twice := feeds.keys() & named.keys():
            raise InputError(f"given by position and by name: {sorted(twice)}", hint=f"inputs are {self._names()}")
        results = tuple(self.run({**feeds, **named}).values())
        return results[0] if len(self._outputs) == 1 else results

    def _names(self) -> list[str]:
        return [spec.name for spec in self._default.specs]

    def __repr__(self) -> str:
        name = self._model.ir.graph.name or "model"
        threads = f"{self.threads} thread{'s' * (self.threads != 1)}"
        lines = [f"entrepot.Session {name!r} on {', '.join(self.providers)}, {threads}"]
        lines += [f"  in   {spec}" for spec in self.inputs]
        lines += [f"  out  {spec}" for spec in self.outputs]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (type(self), self._origin, self._options)

    def _as_observer(self, observe: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
        if not callable(observe):
            raise expected("observe", "a function that takes a name and a value", observe)
        for part, compiled in self._default.parts:
            if compiled.observed is None:
                raise InputError(
                    f"provider '{part.provider.name}' cannot be observed",
                    hint="use providers=['reference'] to observe values",
                )
        return observe

    def source(self) -> str:
        """The generated Python source that computes all outputs, one function per part.

        For a part without source, because another library runs it, a comment says who runs what, and why.
        """
        parts = self._default.parts
        texts = [
            compiled.emitted.source if compiled.emitted else delegated(part, f"part {at} of {len(parts)}")
            for at, (part, compiled) in enumerate(parts, start=1)
        ]
        return "\n\n".join(texts)

    def profile(self, feeds: Feeding) -> Profile:
        """Where the time of one run goes, by operator; only for sessions that one provider of ours runs on the host.

        Args:
            feeds: See ``run``.

        Raises:
            InputError: The session has other providers, or the feeds do not fit.
        """
        part, compiled = self._default.parts[0]
        device, emitted = part.provider.device, compiled.emitted
        if len(self._default.parts) != 1 or emitted is None or not device.shares_host:
            raise InputError(
                "only a session that runs on cpu or torch alone can be profiled", hint="use providers=['cpu']"
            )
        fed = self._default.values(by_name(self._default.specs, feeds))
        values = [value if at in compiled.on_host else device.to_device(value) for at, value in enumerate(fed)]
        return self._context.copy().run(profile, emitted, values)

    def plan(self) -> Plan:
        """Where every node of the main graph runs, what it became there, who declined it, and what is copied."""
        parts = self._default.parts
        placements: dict[ir.Node, Placement] = {}
        for part, compiled in parts:
            for node, row in zip(part.graph, part.placements, strict=True):
                placements.setdefault(node, replace(row, how=compiled.how.get(node, "whole part")))
        remarks = dict.fromkeys(compiled.remark() for _, compiled in parts)
        copies = [*self._crossings(), *(copy for _, compiled in parts for copy in compiled.copies)]
        return Plan(tuple(placements.values()), tuple(filter(None, remarks)), tuple(copies))

    def memory(self) -> dict[str, int]:
        """Bytes in use per provider that knows: all that torch has on a device; on the host, the session's weights."""
        counts = [(each.name, getattr(each, "memory", None)) for each in self._providers]
        return {name: count() for name, count in counts if count is not None}

    def trim(self) -> None:
        """Give back the memory that only makes the next run faster."""
        for each in self._providers:
            give_back = getattr(each, "trim", None)
            if give_back is not None:
                give_back()

    def _crossings(self) -> Iterator[Copy]:
        for value, source, target in self._default.flow.crossings():
            yield Copy(value.name or "", source, target, self._setting.type_of(value))

    def _program(self, names: tuple[str, ...], overridden: frozenset[str]) -> Program:
        key = (names, overridden)
        if key not in self._programs:
            try:
                self._programs[key] = self._build(names, overridden)
            except MemoryError as error:
                raise room.out_of_memory(error, "") from error
        return self._programs[key]

    def _build(self, names: tuple[str, ...], overridden: frozenset[str]) -> Program:
        wanted = [self._value(name) for name in names]
        providers = [*self._providers, *self._delegates]
        parts = partition(self._setting, providers, wanted, overridden)
        compiled = tuple((part, part.provider.compile(part.graph)) for part in parts)
        inputs = [v for v in self._graph.inputs if v.name not in self._defaults or v.name in overridden]
        devices = [provider.device for provider in providers]
        model = self._model
        return Program(names, inputs, wanted, compiled, self._context, model.related, model.steps, devices)

    def _value(self, name: str) -> ir.Value:
        if not self._values:
            self._values = {value.name or "": value for value in _main_values(self._graph)}
        if name not in self._values:
            raise InputError(f"the model has no output '{name}'", hint=f"its outputs are {list(self._outputs)}")
        return self._values[name]


_ALL_THREADS = "leave it out to use all processors"


def _reopened(kind: type[Session], origin: Any, options: dict[str, Any]) -> Session:
    return kind(origin, **options)


def _main_values(graph: ir.Graph) -> list[ir.Value]:
    made = [output for node in graph for output in node.outputs]
    return [*made, *graph.initializers.values(), *graph.inputs, *graph.outputs]


def device_of(session: Session) -> Device:
    """Where the first provider keeps its arrays that does so elsewhere than NumPy; what is fed from there stays."""
    return next(iter(session._default.flow.devices), HOST)  # noqa: SLF001 - beside the class, as no user needs it
