"""Views of tensors without values that are laid out plainly, where the sizes show that the elements fit.

torch (2.13) infers a size and compares numbers of elements by a dozen questions about symbols, and computes the strides
by an operator of its own: a millisecond for each view, of which attention alone has ten in a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.capture.upstream import as_for_kernels
from entrepot.exporters.torch.upstream import (
    FakeTensor,
    FakeTensorMode,
    is_surely_contiguous,
    layouts,
    shape_inference,
    size_functions,
)

_VIEWS = "view", "_unsafe_view"
"""What is asked for, and what products end in."""


def view_rules() -> dict[Any, Callable[..., Any]]:
    """What stands in for operators that make views, by operator."""
    operators = (getattr(torch.ops.aten, name).default for name in _VIEWS)
    return {operator: _rule(operator) for operator in operators}


def _rule(operator: Any) -> Callable[..., Any]:
    torchs: Any = shape_inference.op_implementations_dict[operator]

    def rule(mode: FakeTensorMode, source: Any, shape: Sequence[Any]) -> Any:
        plain = isinstance(source, FakeTensor) and source.dim() > 0 and shape and is_surely_contiguous(source)
        sizes = _fitting(source.shape, shape) if plain else None
        if sizes is None:
            return torchs(mode, operator, source, shape)
        with as_for_kernels(mode):
            made = torch.ops.aten.as_strided.default(source, sizes, layouts.make_contiguous_strides_for(sizes))
        return FakeTensor(mode, made, device=source.device)

    return rule


def _fitting(sizes: Sequence[Any], shape: Sequence[Any]) -> list[Any] | None:
    """The sizes of a view, with one inferred if need be; ``None`` if they are not seen to be fitting."""
    given = [size for size in shape if not (type(size) is int and size == -1)]
    inferred = len(shape) - len(given)
    if inferred > 1 or not all(_is_positive(size) if inferred else _is_no_less(size) for size in given):
        return None
    (number, term), (own_number, own_term) = _product(sizes), _product(given)
    left = number / own_number * (term / own_term)
    if not inferred:
        return list(shape) if left == 1 else None
    found = _inferred(left, [*sizes, *given])
    return None if found is None else [found if type(size) is int and size == -1 else size for size in shape]


def _product(sizes: Sequence[Any]) -> tuple[Any, Any]:
    """The number of elements as a number and a term: ``4*n + 4`` are four times as many as ``n + 1``."""
    factors = (factor.primitive() for size in sizes for factor in sympy.Mul.make_args(_term(size)))
    numbers, terms = zip((sympy.S.One, sympy.S.One), *factors, strict=True)
    return sympy.Mul(*numbers), sympy.Mul(*terms)


def _inferred(term: Any, known: Sequence[Any]) -> Any:
    """A size, by its formula; ``None`` if that is none, or a sum, which torch may spell otherwise."""
    if term.is_Integer:
        return int(term)
    if sympy.fraction(term)[1] != 1 or not term.is_positive:
        return None
    same = next((size for size in known if isinstance(size, torch.SymInt) and size.node.expr == term), None)
    if same is not None:
        return same
    env: Any = next(size.node.shape_env for size in known if isinstance(size, torch.SymInt))
    if not term.free_symbols <= env.backed_var_to_val.keys():
        return None
    return env.create_symintnode(term, hint=int(term.xreplace(env.backed_var_to_val)))


def _is_no_less(size: Any) -> bool:
    """Whether a size is 0 or more for sure."""
    return bool(_term(size).is_nonnegative)


def _is_positive(size: Any) -> bool:
    return all(factor.is_positive or _holds_one(factor) for factor in sympy.Mul.make_args(_term(size)))


def _holds_one(term: Any) -> bool:
    """Whether a size is divided by no more than it is: ``(n + 3) // 4``."""
    if not isinstance(term, size_functions.FloorDiv):
        return False
    number, step = term.args
    return bool(step.is_positive and (number - step).is_nonnegative)


def _term(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
