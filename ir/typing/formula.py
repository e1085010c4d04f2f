"""The size of an axis as a formula over those of others: ``past + sequence``, ``2*length``, ``(length - 3)//2 + 1``.

A formula is what the name of an axis says in a file, so two that are equal have to read the same: sums are multiplied
out and their terms sorted, which is all that sizes need.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from entrepot.ir.typing.arithmetic import value_of

_Sum: TypeAlias = dict[tuple[str, ...], int]
"""The factor of each product of names and of parts that are not sums, such as ``length//2``."""

_LONGEST = 300
_MOST_TERMS = 40
_HIGHEST_POWER = 4
_HIGHEST_DIVISOR = 64


@dataclass(frozen=True)
class Formula:
    """A size, computed from others.

    Attributes:
        text: In Python's notation; the same for equal formulas.
        names: The names in it, in alphabetical order.
    """

    text: str
    names: tuple[str, ...] = field(compare=False)
    _tree: ast.expr = field(compare=False, repr=False)

    @staticmethod
    def of(text: str) -> Formula | None:
        """What a text says, with functions as torch and sympy write them; ``None`` if it is anything but a formula."""
        return _parsed(text) if len(text) <= _LONGEST else None

    @property
    def is_name(self) -> bool:
        """Whether it is the size of an axis as it is."""
        return self.text.isidentifier()

    def size(self, sizes: Mapping[str, int]) -> int | None:
        """Its value; ``None`` where a name is missing or the result is no size."""
        try:
            result = self.compute(sizes)
        except (KeyError, ArithmeticError, TypeError):
            return None
        return int(result) if result >= 0 and result == int(result) else None

    def compute(self, sizes: Mapping[str, Any]) -> Any:
        """Its value over numbers, or over the symbolic sizes of a framework.

        Raises:
            KeyError: A name is missing.
            ArithmeticError: It divides by zero.
        """
        return value_of(self._tree, sizes)

    def slope(self) -> tuple[int, int] | None:
        """The whole factor and the offset, where it is that of one name and an offset: ``2*length + 1``."""
        terms = _sum_of(self._tree)
        factors = [product for product in terms if product]
        if len(self.names) != 1 or factors != [self.names]:
            return None
        return terms[factors[0]], terms.get((), 0)

    @property
    def is_power(self) -> bool:
        """Whether it is one name, multiplied by itself."""
        factors = [product for product in _sum_of(self._tree) if product]
        return len(self.names) == 1 and self.slope() is None and all({*each} == {*self.names} for each in factors)

    def renamed(self, names: Mapping[str, str]) -> Formula:
        """The same with other names, or with formulas in place of them."""
        words = {name: f"({names.get(name, name)})" for name in self.names}
        return _made(ast.unparse(_Renaming(words).visit(ast.parse(self.text, mode="eval").body)))

    def __str__(self) -> str:
        return self.text


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._trees = {name: ast.parse(text, mode="eval").body for name, text in names.items()}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._trees.get(node.id, node)


@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> Formula | None:
    try:
        return _made(text)
    except (ValueError, SyntaxError, ArithmeticError, TypeError, RecursionError):
        return None


def _made(text: str) -> Formula:
    terms = _sum_of(ast.parse(text.strip(), mode="eval").body)
    canonical = _written(terms)
    tree = ast.parse(canonical, mode="eval").body
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}
    return Formula(canonical, tuple(sorted(names)), tree)


def _sum_of(node: ast.AST) -> _Sum:
    """A term multiplied out.

    Raises:
        ValueError: It contains something else than sizes are made of.
    """
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return {(): number} if number else {}
        case ast.Name(id=name):
            return {(name,): 1}
        case ast.UnaryOp(ast.USub(), operand):
            return _minus({}, _sum_of(operand))
        case ast.BinOp(left, operation, right) if type(operation) in _BINARY:
            return _BINARY[type(operation)](_sum_of(left), _sum_of(right))
        case ast.Call(ast.Name(id=name), arguments, []):
            return _called(name, arguments)
    raise ValueError(ast.dump(node))


def _called(name: str, arguments: list[ast.expr]) -> _Sum:
    match name, arguments:
        case ("floor", [ast.BinOp(left, ast.Div(), right)]) | ("FloorDiv" | "CleanDiv", [left, right]):
            return _divided(_sum_of(left), _sum_of(right))
        case (
            "TruncToInt" | "FloorToInt",
            [ast.BinOp(ast.Constant(value=float(factor)), ast.Mult(), ast.Call(ast.Name(id="ToFloat"), [term]))],
        ):
            ratio = Fraction(factor).limit_denominator(_HIGHEST_DIVISOR)
            if ratio != factor:
                raise ValueError(name)
            return _divided(_times({(): ratio.numerator}, _sum_of(term)), {(): ratio.denominator})
        case ("ceil" | "ceiling", [ast.BinOp(left, ast.Div(), right)]) | ("CeilDiv", [left, right]):
            divisor = _sum_of(right)
            return _divided(_plus(_plus(_sum_of(left), divisor), {(): -1}), divisor)
        case ("Mod" | "PythonMod", [left, right]):
            return _remainder(_sum_of(left), _sum_of(right))
        case ("min" | "max" | "Min" | "Max", [_, _, *_]):
            return _part(f"{name.lower()}({', '.join(sorted(_written(_sum_of(each)) for each in arguments))})")
    raise ValueError(name)


def _plus(one: _Sum, other: _Sum) -> _Sum:
    total = dict(one)
    for product, factor in other.items():
        total[product] = total.get(product, 0) + factor
    return {product: factor for product, factor in total.items() if factor}


def _minus(one: _Sum, other: _Sum) -> _Sum:
    return _plus(one, {product: -factor for product, factor in other.items()})


def _times(one: _Sum, other: _Sum) -> _Sum:
    if len(one) * len(other) > _MOST_TERMS:
        raise ValueError("too many terms")
    total: _Sum = {}
    for first, a in one.items():
        for second, b in other.items():
            total = _plus(total, {tuple(sorted((*first, *second))): a * b})
    return total


def _divided(total: _Sum, divisor: _Sum) -> _Sum:
    """What divides without a remainder, and the rest as one part whose offset is less than the divisor."""
    if divisor.keys() != {()} or divisor[()] <= 0:
        return _part(f"{_group(total)}//{_group(divisor)}")
    by = divisor[()]
    pulled = {product: factor // by for product, factor in total.items() if not product or factor % by == 0}
    whole = {product: factor for product, factor in pulled.items() if factor}
    rest = _minus(total, _times({(): by}, whole))
    return whole if not rest or rest.keys() == {()} else _plus(whole, _part(f"{_group(rest)}//{by}"))


def _remainder(total: _Sum, divisor: _Sum) -> _Sum:
    return _part(f"{_group(total)} % {_group(divisor)}")


def _power(base: _Sum, exponent: _Sum) -> _Sum:
    times = exponent.get((), 0)
    if exponent.keys() != {()} or not 0 < times <= _HIGHEST_POWER:
        raise ValueError("only small powers are written out")
    return functools.reduce(_times, [base] * times)


_BINARY: dict[type[ast.operator], Callable[[_Sum, _Sum], _Sum]] = {
    ast.Add: _plus,
    ast.Sub: _minus,
    ast.Mult: _times,
    ast.Pow: _power,
    ast.FloorDiv: _divided,
    ast.Mod: _remainder,
}


def _part(text: str) -> _Sum:
    return {(text,): 1}


def _group(total: _Sum) -> str:
    text = _written(total)
    return text if text.isidentifier() or text.isdecimal() else f"({text})"


def _written(total: _Sum) -> str:
    """Names before numbers, what is added before what is taken away."""
    order: Callable[[tuple[str, ...]], Any] = lambda product: (total[product] < 0, not product, product)  # noqa: E731
    text = ""
    for product in sorted(total, key=order):
        factor = total[product]
        sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
        text += sign + _product(abs(factor), product, is_negated=sign == "-")
    return text or "0"


def _product(factor: int, parts: tuple[str, ...], *, is_negated: bool) -> str:
    alone = len(parts) == 1 and factor == 1 and " % " not in parts[0] and not is_negated  # -a//b is (-a)//b
    words = [part if alone or _is_closed(part) else f"({part})" for part in parts]
    return "*".join(([str(factor)] if factor != 1 or not parts else []) + words)


def _is_closed(part: str) -> bool:
    """Whether a part can be a factor without brackets around it."""
    return part.isidentifier() or part.startswith(("min(", "max("))
