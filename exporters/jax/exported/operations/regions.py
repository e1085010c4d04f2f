"""Operations with programs inside: reductions, sorting, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from entrepot.exporters.jax.exported.operation import Operation
from entrepot.exporters.jax.exported.table import means

_MONOIDS: dict[str, Callable[..., Any]] = {
    "add": lax.add, "multiply": lax.mul, "maximum": lax.max, "minimum": lax.min, "and": lax.bitwise_and,
    "or": lax.bitwise_or, "xor": lax.bitwise_xor,
}  # fmt: skip
_RUNNING = {"add": lax.cumsum, "multiply": lax.cumprod, "maximum": lax.cummax, "minimum": lax.cummin}


def _combining(operation: Operation, count: int, program: str = "") -> Callable[..., Any]:
    """What a region or a function does with two elements: a function of ``jax.lax`` where it is one."""
    name, arguments = operation.combiner(program)
    if count == 1 and name in _MONOIDS and sorted(arguments) == [0, 1]:
        return _MONOIDS[name]

    def run(*values: Any) -> list[Any]:
        return operation.program.function(program, values) if program else operation.region()(*values)

    if count == 1:
        return lambda x, y: run(x, y)[0]
    return lambda x, y: tuple(run(*x, *y))


@means("reduce")
def reduce(operation: Operation, *operands: Any) -> Any:
    """Everything along some axes taken together."""
    count = len(operands) // 2
    function, axes = _combining(operation, count), operation.integers("dimensions")
    if count == 1:
        return lax.reduce(operands[0], operands[1], function, axes)
    return list(lax.reduce(tuple(operands[:count]), tuple(operands[count:]), function, axes))


@means("reduce_window")
def reduce_window(operation: Operation, *operands: Any) -> Any:
    """The same in windows."""
    rank = len(operands[0].shape)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    how = [operation.integers(name, [1] * rank) for name in names]
    return in_windows(operation, operands, how, operation.pairs("padding", [(0, 0)] * rank))


def in_windows(operation: Operation, operands: Any, how: Sequence[Any], padding: Any, program: str = "") -> Any:
    """Elements of windows taken together; windows that reach back to the start are running sums."""
    count = len(operands) // 2
    running = _running(operation.combiner(program)[0], operands, how, padding) if count == 1 else None
    if running is not None:
        return running
    function, (sizes, strides, base, apart) = _combining(operation, count, program), how
    values = operands if count == 1 else (tuple(operands[:count]), tuple(operands[count:]))
    found: Any = lax.reduce_window(values[0], values[1], function, sizes, strides, padding, base, apart)
    return found if count == 1 else list(found)


def _running(name: str, operands: Any, how: Sequence[Any], padding: Any) -> Any:
    x, start = operands
    wide = [axis for axis, size in enumerate(how[0]) if not _is_one(size)]
    if name not in _RUNNING or len(wide) != 1 or not all(_is_one(each) for row in how[1:] for each in row):
        return None
    axis, size = wide[0], x.shape[wide[0]]
    low, high = padding[axis]
    back, ahead = (low == size - 1 and _is_none(high)), (high == size - 1 and _is_none(low))
    if how[0][axis] != size or not (back or ahead) or not _is_neutral(name, start):
        return None
    return _RUNNING[name](x, axis, reverse=not back)


def _is_one(number: Any) -> bool:
    return isinstance(number, int) and number == 1


def _is_none(number: Any) -> bool:
    return isinstance(number, int) and number == 0


def _is_neutral(name: str, start: Any) -> bool:
    if not isinstance(start, np.ndarray):
        return False
    least, most = (-np.inf, np.inf) if start.dtype.kind == "f" else (_limit(start, "min"), _limit(start, "max"))
    return bool(start == {"add": 0, "multiply": 1, "maximum": least, "minimum": most}[name])


def _limit(value: np.ndarray, side: str) -> Any:
    return getattr(np.iinfo(value.dtype), side) if value.dtype.kind in "iu" else None


@means("sort")
def sort(operation: Operation, *operands: Any) -> list[Any]:
    """By the operands that the comparison reads, from the smallest on."""
    keys = sorted({at // 2 for at in operation.reads()})
    if keys != [*range(len(keys))] or not _ascends(operation, operands, len(keys)):
        raise operation.unsupported("sorts by a comparison of its own")
    dimension, is_stable = operation.number("dimension", -1), operation.flag("is_stable")
    return list(lax.sort(operands, dimension=dimension, is_stable=is_stable, num_keys=len(keys)))


def _ascends(operation: Operation, operands: Sequence[Any], keys: int) -> bool:
    """Whether the comparison is that of numbers, one key after the other, as it says of some."""
    import jax

    def compared(*values: Any) -> Any:
        return operation.region()(*values)[0]

    with jax.ensure_compile_time_eval():
        for first in range(keys):
            for low, high in ((0, 1), (1, 0), (1, 1)):
                pairs = [
                    np.array(value, operand.dtype)
                    for at, operand in enumerate(operands)
                    for value in ((0, 0) if at < first else (low, high) if at == first else (1, 0))
                ]
                tie = low == high and first + 1 < keys
                if bool(compared(*pairs)) != (low < high) and not tie:
                    return False
    return True


@means("while")
def loop(operation: Operation, *operands: Any) -> list[Any]:
    """A loop as long as something holds."""
    holds, body = operation.regions()
    return list(lax.while_loop(lambda carry: holds(*carry)[0], lambda carry: tuple(body(*carry)), tuple(operands)))


@means("case")
def case(operation: Operation, index: Any) -> list[Any]:
    """One of several branches."""
    return list(lax.switch(index, [lambda branch=branch: tuple(branch()) for branch in operation.regions()]))


@means("if")
def choice(operation: Operation, condition: Any) -> list[Any]:
    """One of two branches."""
    yes, no = operation.regions()
    return list(lax.cond(condition, lambda: tuple(yes()), lambda: tuple(no())))
