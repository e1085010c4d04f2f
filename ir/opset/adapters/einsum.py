"""Einsum in terms of Transpose, ReduceSum and MatMul; a repeated label first selects the diagonal."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.positions import numbers_along
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

unchanged("Einsum", 12, 28)


@decomposition("Einsum", 12)
def einsum(op: OpBuilder, node: ir.Node) -> Replacement:
    """Contract operand by operand, from left to right."""
    terms, result = _terms(op, str(op.attr("equation")), [op.x(index) for index in range(len(node.inputs))])
    operands = [_on_diagonals(op, term, op.x(index)) for index, term in enumerate(terms)]
    labels, value = operands[0]
    for index in range(1, len(operands)):
        later = set(result).union(*(term for term, _ in operands[index + 1 :]))
        labels, value = _contract(op, (labels, value), operands[index], later)
    value, labels = _summed(op, value, labels, set(result))
    return _ordered(op, value, labels, result)


def _terms(op: OpBuilder, equation: str, values: list[ir.Value]) -> tuple[list[str], str]:
    """The labels of every operand and of the result; axes that an ellipsis stands for get labels of their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(values):
        op.refuse(f"equation '{equation}' does not fit {len(values)} operands")
    letters = left.replace(",", "").replace(".", "")
    if not arrow:
        right = "..." * ("." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if "." not in equation:
        return terms, right
    spare = [chr(code) for code in range(ord("A"), ord("z")) if chr(code).isalpha() and chr(code) not in letters]
    counts = [op.need_rank(x) - len(term) + 3 if "." in term else 0 for term, x in zip(terms, values, strict=True)]
    most = max(counts)
    if most > len(spare):
        op.refuse(f"equation '{equation}' has more axes than letters")
    hidden = "".join(spare[:most])
    spelled = [term.replace("...", hidden[most - count :]) for term, count in zip(terms, counts, strict=True)]
    _need_no_broadcasting(op, hidden, spelled, values)
    return spelled, right.replace("...", hidden)


def _need_no_broadcasting(op: OpBuilder, hidden: str, terms: list[str], values: list[ir.Value]) -> None:
    """Refuse axes under an ellipsis that may be stretched from one: all sizes of a label are assumed to be equal."""
    for letter in hidden:
        shapes = [
            (op.shape(x) or [])[term.index(letter)] for term, x in zip(terms, values, strict=True) if letter in term
        ]
        if len(shapes) > 1 and (None in shapes or len(set(shapes)) > 1):
            op.refuse("axes under an ellipsis may be broadcast", hint="possible with equal, fixed sizes")


def _on_diagonals(op: OpBuilder, term: str, x: ir.Value) -> tuple[str, ir.Value]:
    """The diagonal of an operand over all axes of one label, which keeps that label once."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            shape, rank = op.Shape(x), len(term)
            along = [numbers_along(op, shape, axis, rank) for axis in (first, second)]
            x = op.ReduceSum(op.Where(op.Equal(*along), x, op.const(0, like=x)), axes=[second], keepdims=0)
            term = term[:second] + term[second + 1 :]
    return term, x


def _contract(op: OpBuilder, a: tuple[str, ir.Value], b: tuple[str, ir.Value], later: set[str]) -> tuple[str, ir.Value]:
    """One MatMul over (batch, own, summed) x (batch, summed, own)."""
    (left, x), (right, y) = a, b
    x, left = _summed(op, x, left, later | set(right))
    y, right = _summed(op, y, right, later | set(left))
    batch = "".join(letter for letter in left if letter in right and letter in later)
    summed = "".join(letter for letter in left if letter in right and letter not in later)
    own_x, own_y = ("".join(c for c in term if c not in batch + summed) for term in (left, right))
    x, y = _ordered(op, x, left, batch + own_x + summed), _ordered(op, y, right, batch + summed + own_y)
    shapes = [_pieces(op, x, batch + own_x + summed), _pieces(op, y, batch + summed + own_y)]
    product = op.MatMul(
        _grouped(op, x, shapes[0], batch, own_x, summed), _grouped(op, y, shapes[1], batch, summed, own_y)
    )
    target = [shapes[0][c] for c in batch + own_x] + [shapes[1][c] for c in own_y]
    return batch + own_x + own_y, _reshaped(op, product, target)


def _pieces(op: OpBuilder, x: ir.Value, labels: str) -> dict[str, ir.Value]:
    """The size of each axis as a 1-element tensor."""
    shape = op.Shape(x)
    return {
        letter: op.Slice(shape, op.ints(index), op.ints(index + 1), op.ints(0)) for index, letter in enumerate(labels)
    }


def _grouped(op: OpBuilder, x: ir.Value, sizes: dict[str, ir.Value], batch: str, rows: str, columns: str) -> ir.Value:
    """(batch axes, all rows, all columns), by products of sizes, as -1 could stand for only one of them."""
    return _reshaped(op, x, [*(sizes[c] for c in batch), _product(op, sizes, rows), _product(op, sizes, columns)])


def _product(op: OpBuilder, sizes: dict[str, ir.Value], labels: str) -> ir.Value:
    total = op.ints(1)
    for letter in labels:
        total = op.Mul(total, sizes[letter])
    return total


def _reshaped(op: OpBuilder, x: ir.Value, sizes: list[ir.Value]) -> ir.Value:
    target = op.Concat(*sizes, axis=0) if sizes else op.const([], dtype=ir.DataType.INT64)
    reshaped: ir.Value = op.Reshape(x, target)
    return reshaped


def _summed(op: OpBuilder, x: ir.Value, labels: str, kept: set[str]) -> tuple[ir.Value, str]:
    axes = [index for index, letter in enumerate(labels) if letter not in kept]
    if not axes:
        return x, labels
    return op.ReduceSum(x, axes=axes, keepdims=0), "".join(letter for letter in labels if letter in kept)


def _ordered(op: OpBuilder, x: ir.Value, labels: str, wanted: str) -> ir.Value:
    if labels == wanted:
        return x
    if sorted(labels) != sorted(wanted):
        op.refuse(f"einsum output '{wanted}' names an axis that no input has")
    ordered: ir.Value = op.Transpose(x, perm=[labels.index(letter) for letter in wanted])
    return ordered
