"""Einsum in terms of Transpose, ReduceSum and MatMul, where no operand repeats a label."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

unchanged("Einsum", 12, 28)


@decomposition("Einsum", 12)
def einsum(op: OpBuilder, node: ir.Node) -> Replacement:
    """Contract operand by operand, from left to right."""
    terms, result = _terms(op, str(op.attr("equation")), len(node.inputs))
    values = [op.x(index) for index in range(len(terms))]
    labels, value = terms[0], values[0]
    for index in range(1, len(terms)):
        later = set(result).union(*terms[index + 1 :])
        labels, value = _contract(op, (labels, value), (terms[index], values[index]), later)
    value, labels = _summed(op, value, labels, set(result))
    return _ordered(op, value, labels, result)


def _terms(op: OpBuilder, equation: str, count: int) -> tuple[list[str], str]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = "".join(terms)
    if "." in equation or any(len(set(term)) != len(term) for term in terms) or len(terms) != count:
        op.refuse(f"equation '{equation}' is not expressible before opset 12")
    return terms, right if arrow else "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))


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
    """(batch axes, all rows, all columns), by products of sizes: -1 could stand for one of them only."""
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
