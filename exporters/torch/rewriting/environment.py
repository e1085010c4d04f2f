"""A part of a program that is run aside: on tensors without values, leaving no nodes and no conditions behind.

All that is private about torch's shape environment, and belongs to such runs, is here.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.rewriting.logarithms import logarithm
from entrepot.exporters.torch.upstream import (
    ConstantSource,
    DimDynamic,
    FakeTensor,
    disable_proxy_modes_tracing,
    know_functions_of_sizes,
    size_settings,
    statically_known_true,
)

_KEPT = ("replacements", "var_to_range", "axioms", "divisible", "deferred_runtime_asserts", "dim_constraints")
_numbers = itertools.count()
SHIFT = 2
"""How far a number is from the size that stands for it: torch knows of no size that it is 0 or 1."""
_PRIVATE: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()
"""Symbols that mean something in runs aside only, by environment."""
_FROM_NONE: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()
"""Sizes of what grows in a loop, by environment."""
_EMPTY: weakref.WeakKeyDictionary[Any, set[tuple[Any, Any]]] = weakref.WeakKeyDictionary()
"""Sizes that are 0 wherever others are, by environment."""


_ONES: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()
"""Sizes that are 1 more often than not, though not in the sample, by environment."""


def note_ones(size: Any) -> None:
    """Note that a size is 1 more often than not: a branch on that is one of the graph, whatever operators ask."""
    if isinstance(size, torch.SymInt) and expression(size).is_Symbol:
        _ONES.setdefault(size.node.shape_env, set()).add(expression(size))


def is_often_one(condition: Any) -> bool:
    """Whether it says of such a size that it is 1, or is not: torch takes the latter for granted sooner or later."""
    found = expression(condition)
    own = _ONES.get(condition.node.shape_env, ()) if isinstance(condition, torch.SymBool) else ()
    return isinstance(found, sympy.Eq | sympy.Ne) and found.lhs in own and found.rhs == 1


def environment(values: Sequence[Any]) -> Any:
    """The shape environment of tensors and sizes during a capture; ``None`` outside of one."""
    for value in values:
        if isinstance(value, torch.SymInt | torch.SymBool | torch.SymFloat):
            return value.node.shape_env
        if isinstance(value, FakeTensor) and value.fake_mode.shape_env is not None:
            return value.fake_mode.shape_env
    return None


def expression(size: Any) -> Any:
    """A size in sympy, with what is known of it put in."""
    if isinstance(size, torch.SymInt | torch.SymBool | torch.SymFloat):
        return size.node.expr
    return sympy.Integer(size) if isinstance(size, int) else sympy.sympify(size)


def with_equal_sizes(condition: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """A condition with one symbol for all sizes that are known to be equal."""
    env = environment(tensors)
    return condition if env is None else env.replace(condition)


def hint(size: Any) -> Any:
    """The value in the sample; ``None`` where it depends on data."""
    if isinstance(size, torch.SymInt | torch.SymBool | torch.SymFloat):
        return size.node.hint if size.node.has_hint() else None
    return size


def is_private(size: Any) -> bool:
    """Whether it means something in a run aside only."""
    own = _PRIVATE.get(size.node.shape_env, ()) if isinstance(size, torch.SymInt) else ()
    return any(symbol in own for symbol in expression(size).free_symbols)


def empty_without(count: Any, size: Any) -> None:
    """Note that a size is 0 wherever a number of things is, as torch takes those that depend on data for unrelated."""
    if isinstance(count, torch.SymInt) and isinstance(size, torch.SymInt):
        _EMPTY.setdefault(count.node.shape_env, set()).add((expression(count), expression(size)))


def none_where(env: Any, sizes: Mapping[Any, int]) -> dict[Any, int]:
    """The sizes that are 0 where others are what is given, beside these."""
    pairs = () if env is None else _EMPTY.get(env, ())
    return {env.replace(size): 0 for count, size in pairs if value_of(env.replace(count), sizes) == 0}


def note_growing(size: Any) -> None:
    """Note that it is the size of what grows in a loop."""
    if isinstance(size, torch.SymInt):
        _FROM_NONE.setdefault(size.node.shape_env, set()).update(expression(size).free_symbols)


def may_be_none(size: Any) -> bool:
    """Whether it is the size of what grows in a loop: it may be 0, though torch takes for granted that it is not."""
    own = _FROM_NONE.get(size.node.shape_env, ()) if isinstance(size, torch.SymInt) else ()
    return any(symbol in own for symbol in expression(size).free_symbols)


def known(condition: Any) -> bool | None:
    """Whether a condition on sizes always holds, or never; ``None`` where it depends on them."""
    if not isinstance(condition, torch.SymBool):
        return bool(condition)
    if is_often_one(condition):
        return None
    if statically_known_true(condition):
        return True
    return False if statically_known_true(torch.sym_not(condition)) else None


class Aside:
    """Conditions that were met in a run aside.

    Attributes:
        guards: Those that torch would have put on the program.
        private: Symbols that mean something only there.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.guards: list[Any] = []
        self.private: set[Any] = set()

    def number(self, value: int) -> Any:
        """A number that varies, 0 or more, of which torch takes nothing for granted."""
        return self.size(value + SHIFT, open_below=False) - SHIFT

    def size(self, value: int, *, open_below: bool = True) -> Any:
        """A size that varies. Torch takes for granted that it is not 0, or where it is not open below, at least 2."""
        source = ConstantSource(f"entrepot_{next(_numbers)}")
        symbol = self.env.create_symbol(value, source, DimDynamic.DYNAMIC, None, do_not_specialize_zero_one=open_below)
        self.private.add(symbol)
        _PRIVATE.setdefault(self.env, set()).add(symbol)
        if open_below:
            _FROM_NONE.setdefault(self.env, set()).add(symbol)
        return self.env.create_symintnode(symbol, hint=value, source=source)

    def conditions(self) -> list[Any]:
        """Those on sizes that exist outside as well."""
        private = _PRIVATE.get(self.env, set())
        return [guard for guard in self.guards if not guard.expr.free_symbols & private]

    def needed(self, symbols: Iterable[Any]) -> dict[Any, int]:
        """What sizes that depend on data have to be for what has run so far: with others, it raises an error."""
        found = ((each, self.env.replace(each)) for each in symbols if each not in self.env.backed_var_to_val)
        return {each: int(number) for each, number in found if number.is_Integer}

    def adopt(self) -> None:
        """Put the conditions on the program."""
        self.env.guards.extend(self.conditions())


@contextlib.contextmanager
def aside(env: Any) -> Iterator[Aside]:
    """Inside, torch computes shapes only: no node is recorded, and what it assumes is taken back afterwards."""
    found = Aside(env)
    before = {name: copy.copy(getattr(env, name)) for name in _KEPT if hasattr(env, name)}
    asserts = {key: list(each) for key, each in env.deferred_runtime_asserts.items()}
    count, made = len(env.guards), env.num_deferred_runtime_asserts
    know_functions_of_sizes({"OpaqueUnaryFn_log2": logarithm})
    with disable_proxy_modes_tracing(), env.ignore_fresh_unbacked_symbols():
        try:
            yield found
        finally:
            found.guards = list(env.guards[count:])
            del env.guards[count:]
            for name, value in before.items():
                setattr(env, name, value)
            env.deferred_runtime_asserts = asserts
            env.num_deferred_runtime_asserts = made
            _forget(env)


def _forget(env: Any) -> None:
    """Have torch conclude anew what it concluded: a condition that is met again becomes one of the program then."""
    env._update_version_counter()  # noqa: SLF001
    env._version_counter += 1  # noqa: SLF001 - or what was concluded inside is still thought to hold
    env._replacements_version_counter += 1  # noqa: SLF001 - or sizes keep the formulas that they had inside
    remembered = env._inner_evaluate_expr, env._maybe_guard_rel  # noqa: SLF001 - whatever has come to be known
    for each in (*remembered, env.guard_or_defer_runtime_assert):
        each.cache_clear()


@contextlib.contextmanager
def taken_at(env: Any, sizes: Mapping[Any, int]) -> Iterator[None]:
    """Sizes of 1 are what they are inside of an arm that only they take; elsewhere none is known to be 1.

    torch (2.13) ends a capture where it takes a size for 2 or more that is 1.
    """
    if all(size > 1 for size in sizes.values()):
        yield
        return
    values = {symbol: sympy.Integer(size) for symbol, size in sizes.items()}
    for symbol in _ONES.get(env, set()) & values.keys():
        _forget_many(env, symbol)
    with (
        mock.patch.dict(env.backed_var_to_val, values),
        size_settings.patch(backed_size_oblivious=False),  # type: ignore[attr-defined]
    ):
        yield


def _forget_many(env: Any, symbol: Any) -> None:
    """In a run aside, forget what torch knows of a size only because it is not 1 in the sample."""
    told = {each: value_of(each, {symbol: 1}) for each in env.axioms if each.free_symbols == {symbol}}
    for each, found in told.items():
        if found is not None and found != bool(env.axioms[each]):
            del env.axioms[each]
    known = env.var_to_range.get(symbol)
    if known is not None and known.lower > 1:
        env.var_to_range[symbol] = type(known)(1, known.upper)
    _forget(env)


@contextlib.contextmanager
def supposed(env: Any, condition: Any) -> Iterator[None]:
    """Inside, in a run aside, a condition on sizes holds if there is one: torch reasons with it instead of asking.

    It would not know how many elements ``x[:, :-missing]`` has, as there are none where nothing is missing.
    """
    if condition is None:
        yield
        return
    env.axioms.update(dict(env.get_implications(env.simplify(condition))))
    _forget(env)
    often, own = _ONES.get(env, set()), condition.free_symbols
    _ONES[env] = often - own
    try:
        yield
    finally:
        _ONES[env] = often


def with_hints(env: Any, size: Any, values: Mapping[Any, int]) -> Any:
    """A size with another value in the sample."""
    if not isinstance(size, torch.SymInt) or not values:
        return size
    found = size.node.expr.xreplace({symbol: sympy.Integer(value) for symbol, value in values.items()})
    return env.create_symintnode(size.node.expr, hint=int(found)) if found.is_Integer else size


def as_in_sample(size: Any) -> Any:
    """A size that was computed with other values in the sample, with its own."""
    if not isinstance(size, torch.SymInt):
        return size
    found = value_of(size.node.expr, size.node.shape_env.backed_var_to_val)
    return size if found is None else size.node.shape_env.create_symintnode(size.node.expr, hint=found)


def without_powers(size: Any) -> Any:
    """The same size as a product: torch (2.13) puts those into a graph that were computed aside, but no powers."""
    if not isinstance(size, torch.SymInt) or not size.node.expr.has(sympy.Pow):
        return size
    return _multiplied_out(size.node.expr, size.node.shape_env)


def _multiplied_out(expr: Any, env: Any) -> Any:
    if expr.is_Integer:
        return int(expr)
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return math.prod([_multiplied_out(expr.base, env)] * int(expr.exp))
    if expr.is_Mul or expr.is_Add:
        parts = [_multiplied_out(each, env) for each in expr.args]
        return math.prod(parts) if expr.is_Mul else sum(parts)
    return env.create_symintnode(expr, hint=value_of(expr, env.backed_var_to_val))


def samples(symbols: Sequence[Any], hints: Mapping[Any, int]) -> Iterator[dict[Any, int]]:
    """Values of some symbols that may tell conditions apart, near those in the sample first."""
    near = sorted(range(1, 41), key=lambda value: abs(value - next(iter(hints.values()), 5)))
    if len(symbols) == 1:
        yield from ({symbols[0]: value} for value in [*near, 63, 64, 65, 100, 127, 128, 129, 255, 256, 512, 513, 1024])
        return
    few = [2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32] if len(symbols) == 2 else [2, 3, 4, 7, 8, 16]
    yield from (
        dict(zip(symbols, values, strict=True))
        for values in itertools.islice(itertools.product(few, repeat=len(symbols)), 400)
    )


def value_of(expr: Any, values: Mapping[Any, int]) -> Any:
    """An expression at some sizes; ``None`` if something in it is not known."""
    try:
        found = expr.xreplace({symbol: sympy.Integer(value) for symbol, value in values.items()})
    except (ZeroDivisionError, AssertionError):  # torch's remainder takes no negative number
        return None
    if found in (sympy.true, sympy.false):
        return bool(found)
    return int(found) if found.is_Integer else None
