"""A model made ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError, ExecutionError, InputError
from entrepot.ir.io.read import load
from entrepot.ir.limits import Limits
from entrepot.runtime import providers as registry
from entrepot.runtime import types
from entrepot.runtime.feeds import InputSpec, arrays, check_names, input_spec
from entrepot.runtime.fold import KERNEL_ERRORS
from entrepot.runtime.partition import Part, Placement, Plan, partition
from entrepot.runtime.providers import Compiled, Setting

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source
    from entrepot.ir.model import Model


@dataclass(frozen=True)
class Program:
    """What runs for one choice of outputs and of fed initializers."""

    specs: tuple[InputSpec, ...]
    names: tuple[str, ...]
    run: Callable[..., tuple[Any, ...]]
    parts: tuple[tuple[Part, Compiled], ...]


class Session:
    """Runs a model.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        providers: Who may run nodes, in order of preference: ``cpu``, ``reference``, ``onnxruntime``. One that is asked
            for and cannot be used is an error.
        limits: Bounds on what the model may cost.
        threads: Threads that one operator of onnxruntime may use; ``None`` for its own choice.

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
        self._program(self._outputs, frozenset())

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
        program = self._program(
            self._outputs if outputs is None else tuple(outputs),
            frozenset(name for name in feeds if name in self._defaults) if self._defaults else frozenset(),
        )
        check_names(program.specs, feeds, self._unneeded(program))
        values = arrays(program.specs, feeds)
        self._observe(observe)
        try:
            with np.errstate(all="ignore"):
                results = program.run(*values)
        except EntrepotError as error:
            error.node = error.node or _where(error, program)
            raise
        except KERNEL_ERRORS as error:
            raise ExecutionError(f"{type(error).__name__}: {error}", node=_where(error, program)) from error
        finally:
            self._observe(None)
        return dict(zip(program.names, [_result(value, values) for value in results], strict=True))

    def source(self) -> str:
        """The generated Python source that computes all outputs; one function per part."""
        parts = self._program(self._outputs, frozenset()).parts
        return "\n\n".join(compiled.source for _, compiled in parts if compiled.source)

    def plan(self) -> Plan:
        """Where every node of the main graph runs, what it became there, and who declined it."""
        placements: list[Placement] = []
        for part, compiled in self._program(self._outputs, frozenset()).parts:
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
        specs = tuple(input_spec(value.name or "", types.of_value(value)) for value in inputs)
        return Program(specs, names, _runner(compiled, inputs, wanted), compiled)

    def _value(self, name: str) -> ir.Value:
        if not self._values:
            self._values = {value.name or "": value for value in _main_values(self._graph)}
        if name not in self._values:
            raise InputError(f"the model has no output '{name}'", hint=f"its outputs are {list(self._outputs)}")
        return self._values[name]

    def _unneeded(self, program: Program) -> frozenset[str]:
        return frozenset()

    def _observe(self, observe: Callable[[str, Any], None] | None) -> None:
        for provider in self._providers:
            if hasattr(provider, "observe"):
                provider.observe = observe
            elif observe is not None:
                raise InputError(
                    f"provider '{provider.name}' cannot be observed",
                    hint="use providers=['reference'] to observe values",
                )


def _main_values(graph: ir.Graph) -> list[ir.Value]:
    made = [output for node in graph for output in node.outputs]
    return [*made, *graph.initializers.values(), *graph.inputs, *graph.outputs]


def _runner(
    compiled: Sequence[tuple[Part, Compiled]], inputs: Sequence[ir.Value], wanted: Sequence[ir.Value]
) -> Callable[..., tuple[Any, ...]]:
    """One callable for all parts; a single part that takes the inputs as they come is that callable."""
    if len(compiled) == 1:
        part, only = compiled[0]
        if list(part.inputs) == list(inputs):
            return only.run

    def run(*feeds: Any) -> tuple[Any, ...]:
        values = dict(zip(inputs, feeds, strict=True))
        for part, each in compiled:
            results = each.run(*(values[value] for value in part.inputs))
            values.update(zip(part.outputs, results, strict=True))
        return tuple(values[value] for value in wanted)

    return run


def _where(error: BaseException, program: Program) -> str:
    return next(filter(None, (compiled.locate(error) for _, compiled in program.parts)), "")


def _result(value: Any, feeds: Sequence[Any]) -> Any:
    """What the caller gets is theirs: never a constant of the model, nor one of the arrays they fed."""
    if isinstance(value, list):
        return [_result(member, feeds) for member in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.base is None and array.flags.writeable:
        return array.copy() if any(array is feed for feed in feeds) else array
    shared = not array.flags.writeable or any(
        isinstance(feed, np.ndarray) and np.may_share_memory(array, feed) for feed in feeds
    )
    return array.copy() if shared else array
