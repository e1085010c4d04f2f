"""Arithmetic on sizes: what a step computes in Python instead of on tensors."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.text.sizes import MOST, Sizes, bracketed, is_number, literal
from entrepot.runtime.planning.plan import Step

Rule = Callable[[Step, Sequence[Sizes | None]], Sizes | None]

_WHOLE = (ir.DataType.INT64, ir.DataType.INT32)
_KINDS = (*_WHOLE, ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.DOUBLE)


def may_compute(step: Step) -> bool:
    """Whether a step is of a kind that is computed in Python, if its operands are numbers."""
    out = step.outputs[0] if len(step.outputs) == 1 else None
    return (
        step.domain == ""
        and step.op_type in _RULES
        and out is not None
        and out.type is not None
        and (out.type.dtype in _KINDS)
    )


def computed(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    """What a step makes of numbers; ``None`` where it is left to tensors."""
    rule = _RULES.get(step.op_type) if step.domain == "" and len(step.outputs) == 1 else None
    if rule is None or any(
        sizes is None or sizes.items is None for sizes, value in zip(given, step.inputs, strict=True) if value
    ):
        return None
    made = rule(step, given)
    if made is None or made.dtype not in _KINDS or (made.items is not None and len(made.items) > MOST):
        return None
    return made


def parted(step: Step, given: Sequence[Sizes | None]) -> list[Sizes] | None:
    """The parts that Split makes of a list of numbers; ``None`` where it is left to tensors."""
    data, lengths = given[0], given[1].known if len(given) > 1 and given[1] is not None else None
    if data is None or data.items is None or data.rank != 1 or data.dtype not in _KINDS:
        return None
    count = len(data.items)
    if lengths is None:
        most = -(-count // len(step.outputs))
        lengths = [max(0, min(most, count - at * most)) for at in range(len(step.outputs))]
    ends = [0, *itertools.accumulate(lengths)]
    if len(lengths) != len(step.outputs) or min(lengths) < 0 or ends[-1] != count:
        return None  # an error, which the tensors' own operator raises
    return [Sizes(data.items[start:end], 1, data.dtype, data.natural) for start, end in itertools.pairwise(ends)]


def _pairs(given: Sequence[Sizes]) -> tuple[list[tuple[str, ...]], int] | None:
    """The operands of each element, broadcast."""
    length = max(len(sizes.items or ()) for sizes in given)
    if any(len(sizes.items or ()) not in (1, length) for sizes in given):
        return None
    columns = [sizes.items * (length if len(sizes.items) == 1 else 1) for sizes in given if sizes.items is not None]
    return list(zip(*columns, strict=True)), max(sizes.rank for sizes in given)


def _elementwise(write: Callable[[Step, Sequence[Sizes], tuple[str, ...]], str | None], natural: bool = True) -> Rule:
    def rule(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
        operands = [sizes for sizes in given if sizes is not None]
        found = _pairs(operands)
        if found is None or (out := step.outputs[0]) is None:
            return None
        items = [write(step, operands, row) for row in found[0]]
        if any(item is None for item in items):
            return None
        dtype = out.type.dtype if out.type is not None and out.type.dtype is not None else operands[0].dtype
        kept = natural and all(sizes.natural for sizes in operands if sizes.dtype != ir.DataType.BOOL)
        return Sizes(tuple(str(item) for item in items), found[1], dtype, kept)

    return rule


_EXTREMES: dict[str, Callable[[Iterable[int]], int]] = {"min": min, "max": max}
_FOLDED = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _infix(sign: str, natural: bool = True) -> Rule:
    def write(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str | None:
        left, right = row
        if is_number(left) and is_number(right) and sign in _FOLDED:
            return str(_FOLDED[sign](int(left), int(right)))
        if (sign == "*" and right == "1") or (sign in "+-" and right == "0"):
            return left
        if (sign == "*" and left == "1") or (sign == "+" and left == "0"):
            return right
        return f"{bracketed(left)} {sign} {bracketed(right)}"

    return _elementwise(write, natural)


def _equal(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str:
    """Sizes are never what stands for one that is left open, as exporters ask of every shape they expand to."""
    left, right = row
    if left == right:
        return "True"
    if is_number(left) and is_number(right):
        return "False"
    for sizes, number in ((given[0], right), (given[1], left)):
        if sizes.natural and is_number(number) and int(number) < 0:
            return "False"
    return f"{left if is_number(left) else bracketed(left)} == {right if is_number(right) else bracketed(right)}"


def _divided(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str | None:
    left, right = row
    if given[0].dtype not in _WHOLE:
        return f"{bracketed(left)} / {bracketed(right)}"
    if right == "1":
        return left
    if right == "0":
        return None
    if is_number(left) and is_number(right):
        return str(_truncated(int(left), int(right)))
    return _quotient(left, right, given[0].natural, given[1].natural)


def _truncated(left: int, right: int) -> int:
    """The quotient rounded to 0, as ONNX does."""
    return abs(left) // abs(right) * (1 if left * right >= 0 else -1)


def _quotient(left: str, right: str, is_natural: bool, by_natural: bool) -> str:
    """Rounded to 0, as ONNX does; Python rounds down."""
    x, y = bracketed(left), bracketed(right)
    if is_natural and by_natural:
        return f"{x} // {y}"
    if by_natural:
        return f"{x} // {y} if {left} >= 0 else -(-{x} // {y})"
    if is_natural:
        return f"{x} // {y} if {right} > 0 else -({x} // -{y})"
    return f"abs({left}) // abs({right}) * (1 if {x} * {y} >= 0 else -1)"


def _remainder(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str | None:
    if step.attributes.get("fmod") and not all(sizes.natural for sizes in given):
        return None
    return f"{bracketed(row[0])} % {bracketed(row[1])}" if row[1] != "0" else None


def _negative(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str:
    return str(-int(row[0])) if is_number(row[0]) else f"-{bracketed(row[0])}"


def _call(name: str) -> Rule:
    def write(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str:
        distinct = list(dict.fromkeys(row))
        if all(map(is_number, distinct)):
            return str(_EXTREMES[name](map(int, distinct)))
        return distinct[0] if len(distinct) == 1 else f"{name}({', '.join(distinct)})"

    return _elementwise(write)


def _rounded(name: str) -> Rule:
    return _elementwise(lambda step, given, row: f"float(math.{name}({row[0]}))")


def _chosen(step: Step, given: Sequence[Sizes], row: tuple[str, ...]) -> str:
    condition, left, right = row
    if condition in ("True", "False"):
        return left if condition == "True" else right
    return left if left == right else f"{bracketed(left)} if {condition} else {bracketed(right)}"


def _cast(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    (sizes,) = given
    assert sizes is not None
    to = ir.DataType(step.attributes.get("to", 0))
    if sizes.dtype in _WHOLE and to in _WHOLE:
        return Sizes(sizes.items, sizes.rank, to, sizes.natural)
    function = {ir.DataType.FLOAT: "float", ir.DataType.DOUBLE: "float"}.get(to, "int" if to in _WHOLE else "")
    if not function or sizes.dtype == ir.DataType.BOOL:
        return None
    return Sizes(tuple(f"{function}({item})" for item in sizes.items or ()), sizes.rank, to, sizes.natural)


def _gather(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    data, index = given
    places = None if index is None else index.known
    if data is None or data.items is None or index is None or places is None or data.rank != 1:
        return None
    if any(not -len(data.items) <= place < len(data.items) for place in places):
        return None
    return Sizes(tuple(data.items[place] for place in places), index.rank, data.dtype, data.natural)


def _slice(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    data, *rest = given
    known = [None if sizes is None else sizes.known for sizes in rest]
    if data is None or data.items is None or data.rank != 1 or any(k is None or len(k) != 1 for k in known):
        return None
    (start, *_), (end, *_), *more = [k for k in known if k is not None]
    step_size = more[1][0] if len(more) > 1 else 1
    if step_size < 1:
        return None
    return Sizes(data.items[start:end:step_size], 1, data.dtype, data.natural)


def _concat(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    parts = [sizes for sizes in given if sizes is not None]
    if any(sizes.rank != 1 for sizes in parts):
        return None
    items = tuple(item for sizes in parts for item in sizes.items or ())
    return Sizes(items, 1, parts[0].dtype, all(sizes.natural for sizes in parts))


def _reshaped(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    data, out = given[0], step.outputs[0]
    target = given[1] if step.is_a("Reshape") and len(given) > 1 else None
    if data is not None and target is not None and target.known in ([-1], [1]) and len(data.items or ()) == 1:
        return Sizes(data.items, 1, data.dtype, data.natural)
    if data is not None and len(data.items or ()) == 1 and step.is_a("Squeeze"):
        return Sizes(data.items, 0, data.dtype, data.natural)
    if data is None or out is None or out.type is None or out.type.shape is None or len(out.type.shape) > 1:
        return None
    rank = len(out.type.shape)
    return Sizes(data.items, rank, data.dtype, data.natural) if rank or len(data.items or ()) == 1 else None


def _filled(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    """As many copies of a number as a known length says."""
    length = None if given[0] is None else given[0].known
    if length is None or len(length) != 1 or not 0 <= length[0] <= MOST:
        return None
    number = np.asarray(step.attributes.get("value", np.zeros(1, np.float32))).reshape(-1)
    natural = number.dtype.kind in "iu" and bool(number[0] >= 0)
    return Sizes((literal(number[0], number.dtype),) * length[0], 1, ir.DataType.from_numpy(number.dtype), natural)


def _counted(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    """How many numbers there are: the rank of a tensor, where they are its shape."""
    data = given[0]
    return None if data is None or data.items is None else Sizes((str(len(data.items)),), 0, ir.DataType.INT64, True)


def _product(step: Step, given: Sequence[Sizes | None]) -> Sizes | None:
    data = given[0]
    out = step.outputs[0]
    if data is None or not data.items or out is None or out.type is None or out.type.shape is None:
        return None
    numbers = math.prod(int(item) for item in data.items if is_number(item))
    factors = [bracketed(item) for item in data.items if not is_number(item)]
    text = " * ".join([*factors, *([str(numbers)] if numbers != 1 or not factors else [])])
    return Sizes((text,), len(out.type.shape), data.dtype, data.natural)


_RULES: dict[str, Rule] = {
    "Add": _infix("+"),
    "Sub": _infix("-", natural=False),
    "Mul": _infix("*"),
    "Div": _elementwise(_divided),
    "Mod": _elementwise(_remainder),
    "Min": _call("min"),
    "Max": _call("max"),
    "Neg": _elementwise(_negative, natural=False),
    "Abs": _elementwise(lambda step, given, row: f"abs({row[0]})"),
    "Sqrt": _elementwise(lambda step, given, row: f"math.sqrt({row[0]})"),
    "Floor": _rounded("floor"),
    "Ceil": _rounded("ceil"),
    "Equal": _elementwise(_equal),
    "Less": _infix("<"),
    "Greater": _infix(">"),
    "LessOrEqual": _infix("<="),
    "GreaterOrEqual": _infix(">="),
    "And": _infix("and"),
    "Or": _infix("or"),
    "Not": _elementwise(lambda step, given, row: f"not {bracketed(row[0])}"),
    "Where": _elementwise(_chosen),
    "Cast": _cast,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Squeeze": _reshaped,
    "Unsqueeze": _reshaped,
    "Reshape": _reshaped,
    "Identity": lambda step, given: given[0],
    "ReduceProd": _product,
    "Size": _counted,
}
