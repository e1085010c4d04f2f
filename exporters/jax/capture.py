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
from entrepot.exporters.calls import user_line
from entrepot.exporters.exporter import Captured
from entrepot.exporters.jax.branches import Branches, Traced
from entrepot.exporters.jax.dims import stated, symbol_values, symbolic_specs
from entrepot.exporters.jax.equal_sizes import Sameness
from entrepot.exporters.jax.followed.copies import Copies
from entrepot.exporters.jax.followed.equalities import Equalities
from entrepot.exporters.jax.lowering import Lowering, is_random
from entrepot.exporters.jax.ranges import (
    FROM_TWO,
    Ranges,
    conditions,
    constraints,
    narrowed,
    only_size,
    restrict,
    symbols_of,
)
from entrepot.exporters.jax.running import model_errors
from entrepot.exporters.jax.sides import both_sides, is_joint
from entrepot.exporters.jax.step import Unfollowed
from entrepot.exporters.jax.upstream import Comparison, undecided
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.exporters.options import Options
from entrepot.exporters.paths.several import Take, Taken, put_together
from entrepot.exporters.size_checks import check_conditions
from entrepot.exporters.tree import Flat
from entrepot.ir.errors import ConversionError, EntrepotError, InputError

if TYPE_CHECKING:
    from entrepot.exporters.jax.source import JaxSource


class _Unfollowed(Exception):  # noqa: N818 - an answer, not a fault
    """JAX does not take the function with sizes that vary, or at all."""

    def __init__(self, error: Exception) -> None:
        first = next(iter(str(error).splitlines()), "")
        super().__init__(first if isinstance(error, Unfollowed) else f"{type(error).__name__}: {first}")
        self.line = user_line(error)
        self.undecided = undecided(error)

    @classmethod
    def of(cls, compared: Comparison, line: str) -> _Unfollowed:
        """One because of a comparison that the model decides otherwise for some sizes."""
        text = f"whether {compared.left} is {compared.right} decides what is computed, and differs from size to size"
        self = cls(jax.errors.InconclusiveDimensionOperation(text))
        self.line, self.undecided = line, [compared]
        return self


class _Traced:
    """A program, and the result that it has."""

    def __init__(self, source: JaxSource, specs: Sequence[Any], copies: Copies | None = None) -> None:
        self.flat: Flat | None = None
        self.equalities = Equalities() if copies is None else copies.equalities

        def traced(*leaves: Any) -> list[Any]:
            self.flat = source.followed(leaves, copies)
            return self.flat.tensors

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.program = jax.make_jaxpr(traced)(*specs)
        if source.model.draws and is_random(self.program.jaxpr):
            raise InputError(
                f"the {source.noun} draws random numbers from a generator that it holds, others in each call",
                hint="call module.eval() first; or take a key as an argument",
            )


def capture(source: JaxSource, prober: Prober, groups: list[Group], options: Options) -> Captured:
    """See ``Source.capture``."""
    source.numbers = frozenset()
    fixed: dict[Axis, Fixed] = {}
    found, failure = _with_all(source, prober, groups)
    kept = groups
    if found is None and not groups:
        raise _untraceable(source, failure)
    found = found or _on_both_sides(source, prober, groups, failure)
    if found is None:
        found, kept, fixed = _one_by_one(source, prober, groups)
        if (whole := put_together(source, prober, groups, kept, _at(source, prober, kept), options)) is not None:
            found, kept, fixed = Traced(whole.graph, whole.numbers, {}), groups, {}
    found = _everywhere(source, prober, kept, found)
    graph, numbers, ranges = found
    restrict(kept, ranges)
    if checked := conditions(kept, ranges):
        check_conditions(graph, checked)
    names = [name for name in graph.graph.initializers if name in source.model.weights.values()]
    return Captured(graph, kept, fixed, numbers, names)


def _at(source: JaxSource, prober: Prober, kept: list[Group]) -> Take:
    """Traces at the sizes of other arrays than the sample, where only some axes vary."""

    def trace(arrays: Sequence[Any]) -> Taken | None:
        try:
            graph, numbers, _ = _graph(source, prober, kept, {}, sample=arrays)
        except (_Unfollowed, EntrepotError):
            return None
        return Taken(graph, source.model.weights.values(), numbers)

    return trace


_MOST_NARROWED = 8


def _everywhere(source: JaxSource, prober: Prober, groups: list[Group], found: Traced) -> Traced:
    """A graph that holds wherever the model goes another way, too; what was found if there is none."""
    if not any(each.checked or each == FROM_TWO for each in found.ranges.values()):
        return found

    def trace(box: Ranges) -> Traced | None:
        return _with_all(source, prober, groups, box)[0]

    weights = frozenset(source.model.weights.values())
    return Branches(source, prober, groups, trace, weights).joined(found) or found


def _with_all(
    source: JaxSource, prober: Prober, groups: list[Group], box: Ranges | None = None
) -> tuple[Traced | None, _Unfollowed | None]:
    """A graph in which every group varies, perhaps within a box of sizes.

    What JAX cannot say of all sizes, it may of those from 2 on, or of those that the model takes.
    """
    failure: _Unfollowed | None = None
    two: Ranges = {group.symbol: FROM_TWO for group in groups if group.formula is None and group.step == 1}
    ranges: Ranges = box or {}
    for _ in range(_MOST_NARROWED):
        try:
            return _graph(source, prober, groups, ranges), None
        except _Unfollowed as error:
            failure = failure or error
            narrower = two if two and not ranges else narrowed(ranges, error.undecided, groups, prober, box or {})
        if narrower is None:
            break
        ranges = narrower
    return None, failure


def _one_by_one(
    source: JaxSource, prober: Prober, groups: list[Group]
) -> tuple[Traced, list[Group], dict[Axis, Fixed]]:
    """A graph in which as many groups vary as it allows, one after the other."""
    kept: list[Group] = []
    fixed: dict[Axis, Fixed] = {}
    found, failure = _with_all(source, prober, [])
    if found is None:
        raise _untraceable(source, failure)
    for group in groups:
        more, failure = _with_all(source, prober, [*kept, group])
        if more is None:
            assert failure is not None
            fixed |= dict.fromkeys(group.axes, Fixed(CAPTURED, str(failure), failure.line))
        else:
            found = more
            kept.append(group)
    return found, kept, fixed


def _on_both_sides(
    source: JaxSource, prober: Prober, groups: list[Group], failure: _Unfollowed | None
) -> Traced | None:
    """A graph in which every group varies, made of several, where conditions on more than one of them decide."""
    if failure is None or not any(map(is_joint, failure.undecided)):
        return None
    two: Ranges = {group.symbol: FROM_TWO for group in groups}

    def trace(conditions: Sequence[str]) -> Traced | Sequence[Comparison]:
        compared: list[Comparison] = []
        for ranges in ({}, two):
            try:
                return _graph(source, prober, groups, ranges, conditions)
            except _Unfollowed as error:
                compared += error.undecided
        return compared

    return both_sides(source, prober, groups, trace, frozenset(source.model.weights.values()))


def _graph(
    source: JaxSource,
    prober: Prober,
    groups: list[Group],
    ranges: Ranges,
    conditions: Sequence[str] = (),
    sample: Sequence[Any] | None = None,
) -> Traced:
    known = {
        group.symbol: size for name, group in symbols_of(groups).items() if (size := only_size(group, ranges.get(name)))
    }
    told = [*constraints(ranges), *conditions]
    traced = _traced(source, symbolic_specs(sample or prober.sample, groups, told, known), bool(groups))
    assert traced.flat is not None
    try:
        graph, numbers = _translated(source, traced, prober, groups), traced.flat.numbers
    except (Unfollowed, jax.errors.InconclusiveDimensionOperation) as error:  # any other is ours
        raise _Unfollowed(error) from error
    if pairs := traced.equalities.pairs(symbols_of(groups)):
        for compared in Sameness(source, prober, groups, ranges).contradicted(graph, numbers, list(pairs)):
            raise _Unfollowed.of(compared, pairs[compared.left, compared.right])
    return Traced(graph, numbers, ranges)


def _traced(source: JaxSource, specs: Sequence[Any], are_open: bool) -> _Traced:
    """The program; where sizes vary, by copies of the user's functions, or by the functions if JAX takes only those."""
    copies, failure = Copies(), None
    if are_open:
        try:
            return _Traced(source, specs, copies)
        except EntrepotError:
            raise
        except model_errors() as error:
            failure = _Unfollowed(error)
    try:
        traced = _Traced(source, specs)
    except EntrepotError:
        raise
    except model_errors() as error:
        other = _Unfollowed(error)
        failure = failure or other  # copies get as far as the functions, or farther
        failure.undecided += [each for each in other.undecided if each not in failure.undecided]
        raise failure from error
    traced.equalities = copies.equalities
    return traced


def _untraceable(source: JaxSource, error: _Unfollowed | None) -> ConversionError:
    assert error is not None
    return ConversionError(
        f"JAX cannot trace the {source.noun}: {error}{f', at {error.line}' if error.line else ''}",
        hint="it has to work under jax.jit: choose by jnp.where or jax.lax.cond, loop by jax.lax.scan or while_loop",
    )


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
