"""More cases from the cases: every attribute takes every value it can, every input every element type, in pairs.

Nothing here knows an operator. What an attribute can be is read from the operator's schema (default, the values its
description names), from all cases of the operator, and, for axes, from the rank. A value that alone makes no valid
model, or none that an oracle computes, is left out; the rest is combined so that every pair of values meets.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from tests.op_cases.case import Case

ABSENT = None
"""The value of an attribute or an optional input that is not given."""
MOST = 8
"""How many values of a number or a list are enough; names, axes and element types are never cut short."""
FLOATING = (TensorProto.FLOAT, TensorProto.DOUBLE)
"""What an attribute can be that names an element type, besides what the cases say; fewer bits round elsewhere."""

Settle = Callable[[Case], Case | None]
"""Gives a case with what it computes, or ``None`` when it is not valid or its oracles do not agree."""


class Factor(NamedTuple):
    """One thing that varies: how to set it, and to what; the first value is the base's own."""

    name: str
    set: Callable[[Case, Any], Case]
    values: tuple[Any, ...]


def variants(cases: Sequence[Case], settle: Settle, *, strength: int = 2) -> Iterator[Case]:
    """The settled variants of the cases of one operator.

    Args:
        cases: All cases of the operator.
        settle: Says what a case computes.
        strength: 1 for every value of every factor once, 2 for every pair of values as well.
    """
    seen = {_key(case) for case in cases}
    for base in _bases(cases):
        factors = []
        for factor in _factors(base, cases):
            good = [factor.values[0]]
            for value in factor.values[1:]:
                variant = factor.set(base, value)
                settled = settle(variant)
                if settled is not None:
                    good.append(value)
                    yield from _new(settled, seen)
            factors.append(factor._replace(values=tuple(good)))
        if strength > 1:
            for row in pairs([len(factor.values) for factor in factors]):
                variant = base
                for factor, index in zip(factors, row, strict=True):
                    variant = factor.set(variant, factor.values[index]) if index else variant
                if _key(variant) not in seen:
                    settled = settle(variant)
                    yield from () if settled is None else _new(settled, seen)


def _new(case: Case, seen: set[Any]) -> Iterator[Case]:
    if _key(case) not in seen:
        seen.add(_key(case))
        yield case


def _key(case: Case) -> Any:
    return str(case), case.output_count, repr([_content(value) for value in case.inputs])


def _content(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) and value.dtype.kind != "O" else value


def _bases(cases: Sequence[Case]) -> list[Case]:
    """One case of every combination of ranks: one that both oracles know, with the most attributes, tells most."""
    found: dict[Any, Case] = {}
    for case in sorted(cases, key=lambda case: (-len(case.oracles), -len(case.attributes))):
        if all(not isinstance(value, np.ndarray) or value.size for value in case.inputs):
            found.setdefault(tuple(_layout(value) for value in case.inputs), case)
    return [case.asking_both() for case in found.values()]


def _layout(value: Any) -> Any:
    return value.ndim if isinstance(value, np.ndarray) else type(value).__name__


def _factors(base: Case, cases: Sequence[Case]) -> list[Factor]:
    return [*_types(base), *_ties(base), *_sizes(base), *_inputs(base), *_attributes(base, cases), *_outputs(base)]


def _types(base: Case) -> Iterator[Factor]:
    """The element type of all inputs that share a type variable."""
    for constraint in base.schema.type_constraints:
        places = [n for n, formal in enumerate(_formals(base)) if formal.type_str == constraint.type_param_str]
        places = [n for n in places if isinstance(base.inputs[n], np.ndarray)]
        if places:
            own = base.inputs[places[0]].dtype
            allowed = [dtype for name in constraint.allowed_type_strs if (dtype := _dtype(name)) is not None]

            def cast(case: Case, dtype: np.dtype, places: Sequence[int] = tuple(places)) -> Case:
                return case.feeding(
                    {n: _cast(x, dtype) for n in places if n < len(case.inputs) and (x := case.inputs[n]) is not None}
                )

            yield Factor(constraint.type_param_str, cast, (own, *sorted(set(allowed) - {own}, key=str)))


def _formals(case: Case) -> list[onnx.defs.OpSchema.FormalParameter]:
    """The schema's parameter of each input; the last one repeats when it is variadic."""
    formals = list(case.schema.inputs)
    return [formals[min(n, len(formals) - 1)] for n in range(len(case.inputs))]


def _dtype(type_name: str) -> np.dtype | None:
    name = re.fullmatch(r"tensor\((\w+)\)", type_name)
    codes = dict(onnx.TensorProto.DataType.items())
    code = codes.get(name[1].upper()) if name else None
    return None if code is None else np.dtype(helper.tensor_dtype_to_np_dtype(code))


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same values in another type; words become numbers, numbers words, and no fraction of an integer becomes 0."""
    if array.dtype.kind == "O":
        array = np.arange(array.size).reshape(array.shape)
    elif array.dtype.kind == "V":  # of ml_dtypes, which cast to NumPy's types only
        array = array.astype(np.float64)
    if dtype.kind == "O":
        return array.astype(str).astype(object)
    if array.dtype.kind == "f" and ("int" in dtype.name):
        away = np.copysign(np.ceil(np.abs(array)), array)
        array = np.where(np.isfinite(array), away, 1)
    with np.errstate(all="ignore"):
        return (np.abs(array) if "uint" in dtype.name and array.dtype.kind in "if" else array).astype(dtype)


def _ties(base: Case) -> Iterator[Factor]:
    """Few values, so that many are equal."""
    for n, value in enumerate(base.inputs):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 4:

            def tie(case: Case, tied: bool, n: int = n) -> Case:
                own = case.inputs[n] if n < len(case.inputs) else None
                return case.feeding({n: np.sign(own)}) if tied and own is not None and own.dtype.kind == "f" else case

            yield Factor(f"ties {n}", tie, (False, True))


def _sizes(base: Case) -> Iterator[Factor]:
    """No elements along one axis of an input, or along all axes of the size of one of the first input."""
    sizes = set(base.inputs[0].shape) - {0} if base.inputs and isinstance(base.inputs[0], np.ndarray) else set()
    axes = [
        (n, axis)
        for n, value in enumerate(base.inputs)
        if isinstance(value, np.ndarray)
        for axis in range(value.ndim)
        if n == 0 or value.ndim == _rank(base) > 1
    ]
    if axes:
        yield Factor("empty", _emptied, (ABSENT, *sorted(sizes), *axes))


def _emptied(case: Case, what: int | tuple[int, int] | None) -> Case:
    changes = {}
    for n, value in enumerate(case.inputs):
        if what is not None and isinstance(value, np.ndarray):
            places = [(size if isinstance(what, int) else (n, axis)) for axis, size in enumerate(value.shape)]
            if what in places:
                changes[n] = value[tuple(slice(0 if place == what else None) for place in places)]
    return case.feeding(changes)


def _inputs(base: Case) -> Iterator[Factor]:
    """Axes over their whole range, and optional inputs left out."""
    for n, (formal, value) in enumerate(zip(_formals(base), base.inputs, strict=True)):
        optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        values: list[Any] = [value]
        if formal.name in ("axes", "axis") and isinstance(value, np.ndarray):
            chosen = _axes(_rank(base)) if value.ndim else range(-_rank(base), _rank(base))
            values += [np.array(item, value.dtype) for item in chosen]
        if optional and value is not None:
            values.append(ABSENT)
        if len(values) > 1:
            yield Factor(formal.name, lambda case, x, n=n: case.feeding({n: x}), tuple(values))


def _axes(rank: int) -> list[list[int]]:
    return [*([n] for n in range(-rank, rank)), [], [0, -1], [-1, 0], list(range(rank))]


def _rank(case: Case) -> int:
    first = next((value for value in case.inputs if isinstance(value, np.ndarray)), None)
    if first is None and case.inputs and isinstance(case.inputs[0], list) and case.inputs[0]:
        return int(np.ndim(case.inputs[0][0])) + 1
    return 0 if first is None else first.ndim


def _attributes(base: Case, cases: Sequence[Case]) -> Iterator[Factor]:
    for name, attribute in base.schema.attributes.items():
        own = base.attributes.get(name, ABSENT)
        others = [_fitted(case, base, name) for case in cases if name in case.attributes]
        values = _distinct([own, *_values(base, name, attribute, others)])
        if attribute.required:
            values = [value for value in values if value is not ABSENT]
        if len(values) > 1:
            yield Factor(name, lambda case, value, name=name: _having(case, name, value), tuple(values))


def _having(case: Case, name: str, value: Any) -> Case:
    """The case with an attribute, without those that "cannot be used simultaneously with" it."""
    attributes = case.schema.attributes
    if value is not ABSENT and repr(value) != repr(_python(attributes[name].default_value)):
        for other in attributes.keys() & case.attributes.keys():
            if _excludes(attributes[name], other) or _excludes(attributes[other], name):
                case = case.having(other, ABSENT)
    return case.having(name, value)


def _excludes(attribute: Any, other: str) -> bool:
    return f"cannot be used simultaneously with {other} " in attribute.description


def _fitted(case: Case, base: Case, name: str) -> Any:
    """A case's value, a list of one or two numbers per spatial axis repeated or cut for the base's axes."""
    value, have, wanted = case.attributes[name], _rank(case) - 2, _rank(base) - 2
    if isinstance(value, list) and value and have > 0 < wanted and have != wanted and len(value) % have == 0:
        return list(itertools.islice(itertools.cycle(value), len(value) // have * wanted))
    return value


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list({repr(value): value for value in values}.values())


def _values(base: Case, name: str, attribute: Any, others: list[Any]) -> list[Any]:
    kind = int(attribute.type.value)
    default = attribute.default_value
    known = [ABSENT, *([_python(default)] if default.name else []), *others]
    if kind == AttributeProto.STRING:
        return [*known, *_named(attribute.description)]
    demanded = re.search(r"[Mm]ust be (?:one of )?([^.]*)", attribute.description)
    if name.endswith("_axis") and demanded:
        return [*known, *(int(number) for number in re.findall(r"\d+", demanded[1]))]
    if name == "axis" or name.endswith("_axis"):
        return [*known, *range(-_rank(base), _rank(base) + 1)]
    if kind == AttributeProto.INT and name.endswith("type"):
        return [*known, *FLOATING]
    if name == "axes":
        return [*known, *_axes(_rank(base))]
    if kind == AttributeProto.INT:
        return [*known, *((0, 1) if {0, 1}.issuperset(set(known) - {ABSENT}) else ())]
    if kind == AttributeProto.FLOAT:
        return [*known, 0.5, 2.0][:MOST]
    if kind == AttributeProto.INTS:
        own = base.attributes.get(name) or next((value for value in others if value), [])
        fitting = [value for value in others if len(value) == len(own)]
        return _distinct([ABSENT, own[::-1], [1] * len(own), [value + 1 for value in own], *fitting])[:MOST]
    return _distinct(known)[:MOST]


def _python(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute) if attribute.type else ABSENT
    return value.decode() if isinstance(value, bytes) else value


def _named(description: str) -> list[str]:
    """The values that a description names: in quotes, or in capitals."""
    found = re.findall(r"[\"'`]([A-Za-z_]+)[\"'`]|\b([A-Z]{2,}(?:_[A-Z]+)+|[A-Z]{3,})\b", description)
    return [quoted or capitals for quoted, capitals in found]


def _outputs(base: Case) -> Iterator[Factor]:
    outputs = base.schema.outputs
    variadic = outputs and outputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    counts = range(max(base.schema.min_output, 1), len(outputs) + 1)
    if len(counts) > 1 and not variadic:
        own = base.output_count
        yield Factor("outputs", Case.outputs, (own, *(count for count in counts if count != own)))


def pairs(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Rows in which every pair of values of every two columns meets; greedy, so not the fewest.

    Args:
        sizes: How many values each column has.
    """
    open_pairs = {
        (a, i, b, j)
        for a, b in itertools.combinations(range(len(sizes)), 2)
        for i, j in itertools.product(range(sizes[a]), range(sizes[b]))
    }
    rows = []
    while open_pairs:
        a, i, b, j = min(open_pairs)
        row = {a: i, b: j}
        for column in sorted(set(range(len(sizes))) - {a, b}, key=lambda column: -sizes[column]):
            row[column] = max(range(sizes[column]), key=lambda v: (len(_met(row, column, v) & open_pairs), -v))
        open_pairs -= {pair for column, value in row.items() for pair in _met(row, column, value)}
        rows.append(tuple(row[column] for column in range(len(sizes))))
    return rows


def _met(row: dict[int, int], column: int, value: int) -> set[tuple[int, int, int, int]]:
    return {
        (column, value, other, at) if column < other else (other, at, column, value)
        for other, at in row.items()
        if other != column
    }
