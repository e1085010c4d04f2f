"""A function called on tensors without values, whose sizes are symbols: what torch notes about them on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.capture.rounding import rounded_sizes
from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.capture.sparing import sparing
from entrepot.exporters.torch.upstream import (
    ConstantSource,
    DimDynamic,
    FakeTensorMode,
    ShapeEnv,
    StatelessSymbolicContext,
    enable_python_dispatcher,
)


@dataclass(frozen=True)
class SymbolicRun:
    """What torch noted about the sizes of tensors without values.

    Attributes:
        axes: The symbol of each axis, by tensor and axis.
        equations: Pairs of terms that have to be equal.
        at_most: Terms that have to be zero or less.
        complete: Whether the call came to its end.
    """

    axes: Mapping[tuple[int, int], Any]
    equations: Sequence[tuple[Any, Any]]
    at_most: Sequence[Any]
    complete: bool


def symbolic_run(
    call: Callable[[Sequence[torch.Tensor]], Any],
    tensors: Sequence[torch.Tensor],
    errors: tuple[type[BaseException], ...],
) -> SymbolicRun:
    """Call a function on tensors without values, whose sizes are symbols that have those of ``tensors``.

    Args:
        call: Called with the tensors.
        tensors: What they are made after.
        errors: What ends the call early; what was noted before stands.
    """
    environment: Any = ShapeEnv(duck_shape=False)
    complete, axes = False, dict[tuple[int, int], Any]()
    with contextlib.ExitStack() as stack:
        stack.enter_context(rounded_sizes())
        stack.enter_context(capture_settings())
        stack.enter_context(sparing())
        modes = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True, static_shapes=False)
        stack.enter_context(enable_python_dispatcher())  # composite operators in C++ ask sizes for numbers
        stack.enter_context(modes)
        stack.enter_context(contextlib.suppress(*errors))
        fakes = [_symbolic(modes, index, tensor) for index, tensor in enumerate(tensors)]
        axes = {
            (index, axis): size.node.expr
            for index, fake in enumerate(fakes)
            for axis, size in enumerate(_sizes(fake))
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol
        }
        call(fakes)
        complete = True
    conditions = [guard.expr for guard in environment.guards]
    equations = [each.args for each in conditions if isinstance(each, sympy.Eq)]
    return SymbolicRun(axes, equations, [*_at_most(conditions)], complete)


def _sizes(tensor: torch.Tensor) -> Sequence[Any]:
    return tensor.shape


def _symbolic(mode: FakeTensorMode, index: int, tensor: torch.Tensor) -> torch.Tensor:
    sizes: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * tensor.dim())
    return mode.from_tensor(tensor, symbolic_context=sizes, source=ConstantSource(f"tensor_{index}"))


def _at_most(conditions: Iterable[Any]) -> Iterator[Any]:
    for condition in conditions:
        if isinstance(condition, sympy.Le | sympy.Ge):
            difference = condition.lhs - condition.rhs
            yield difference if isinstance(condition, sympy.Le) else -difference
