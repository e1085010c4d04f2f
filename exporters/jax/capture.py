"""A function traced with symbols for the sizes that vary, and translated; axes that it does not let vary stay fixed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import onnx_ir as ir

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.building import Builder
from entrepot.exporters.exporter import Captured
from entrepot.exporters.jax.dims import stated, symbol_values, symbolic_specs
from entrepot.exporters.jax.lowering import Lowering
from entrepot.exporters.jax.running import model_errors, user_line
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.exporters.options import Options
from entrepot.exporters.tree import Flat
from entrepot.ir.errors import ConversionError

if TYPE_CHECKING:
    from entrepot.exporters.jax.source import JaxSource


class _Traced:
    """A program, and the result that it has."""

    def __init__(self, source: JaxSource, specs: Sequence[Any]) -> None:
        self.flat: Flat | None = None

        def traced(*leaves: Any) -> list[Any]:
            self.flat = source.flat(leaves)
            return self.flat.tensors

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.program = jax.make_jaxpr(traced)(*specs)


def capture(source: JaxSource, prober: Prober, groups: list[Group], options: Options) -> Captured:
    """See ``Source.capture``."""
    options.tell(f"tracing the {source.noun}")
    source.numbers = frozenset()
    traced, kept, fixed = _trace(source, prober, groups)
    options.tell("translating to ONNX")
    graph = _translated(source, traced, prober, kept)
    assert traced.flat is not None
    names = [name for name in graph.graph.initializers if name in source.model.weights.values()]
    return Captured(graph, kept, fixed, traced.flat.numbers, names)


def _trace(source: JaxSource, prober: Prober, groups: list[Group]) -> tuple[_Traced, list[Group], dict[Axis, Fixed]]:
    """A program in which as many groups vary as it allows, one after the other."""
    failure = None
    for constraints in ([], [f"{group.symbol} >= 2" for group in groups if group.formula is None and group.step == 1]):
        try:
            return _Traced(source, symbolic_specs(prober.base, groups, constraints)), groups, {}
        except model_errors() as error:
            failure = failure or error
    if not groups:
        raise _untraceable(source, failure)
    kept: list[Group] = []
    fixed: dict[Axis, Fixed] = {}
    traced = _at_concrete_sizes(source, prober)
    for group in groups:
        try:
            traced = _Traced(source, symbolic_specs(prober.base, [*kept, group]))
        except model_errors() as error:
            fixed |= dict.fromkeys(group.axes, Fixed(CAPTURED, _first_line(error), user_line(error)))
        else:
            kept.append(group)
    return traced, kept, fixed


def _at_concrete_sizes(source: JaxSource, prober: Prober) -> _Traced:
    try:
        return _Traced(source, symbolic_specs(prober.base, []))
    except model_errors() as error:
        raise _untraceable(source, error) from error


def _untraceable(source: JaxSource, error: BaseException | None) -> ConversionError:
    assert error is not None
    at = user_line(error)
    return ConversionError(
        f"JAX cannot trace the {source.noun}: {_first_line(error)}{f', at {at}' if at else ''}",
        hint="it has to work under jax.jit: choose by jnp.where or jax.lax.cond, loop by jax.lax.scan or while_loop",
    )


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _translated(source: JaxSource, traced: _Traced, prober: Prober, groups: list[Group]) -> ir.Model:
    build = Builder(source.name)
    closed = traced.program
    inputs = [
        build.input(f"{at}_in", aval.dtype, _stated(aval.shape, at, groups)) for at, aval in enumerate(closed.in_avals)
    ]
    symbols = symbol_values(build, inputs, groups)
    outputs: list[Any] = Lowering(build, symbols, source.weight_name).inline(closed, inputs)
    return build.model([_own(build, each, at, outputs, inputs) for at, each in enumerate(outputs)])


def _stated(shape: Sequence[Any], at: int, groups: Sequence[Group]) -> list[Any]:
    symbols = {axis: group.symbol for group in groups for index, axis in group.axes if index == at}
    return [symbols.get(axis, dim) for axis, dim in enumerate(stated(shape))]


def _own(build: Builder, value: ir.Value, at: int, outputs: Sequence[Any], inputs: Sequence[Any]) -> ir.Value:
    """An output of its own, where a function returns an argument, a constant, or one result twice."""
    shared = value.const_value is not None or any(value is each for each in (*inputs, *outputs[:at]))
    if not shared:
        return value
    copy: ir.Value = build.op("Identity", value)
    copy.type, copy.shape = value.type, value.shape
    return copy
