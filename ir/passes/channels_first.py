"""Layers over the last axis, on what has its channels first: worth it where a transposition is spared.

ONNX normalises over the last axes and multiplies by matrices along the last one, so that a network of convolutions
with such layers in between would transpose its images for each of them, back and forth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.passes.graphs import is_fixed
from entrepot.ir.passes.sinking import Perm, Sinking, perm_of, ranked, source_of
from entrepot.ir.traits import traits_of

_PASSED = frozenset({"Concat", "Identity", "LayerNormalization", "MatMul", "Pad", "Slice", "Softmax"})
_EXACT = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""Others are normalised in single precision, whatever they are themselves."""
_STRIP = 64
"""Rows that are copied together."""


def normalized(sinking: Sinking, perm: Perm) -> bool:
    """A LayerNormalization, spelled out along other axes."""
    node, (given, scale, *offset) = sinking.node, sinking.node.inputs
    shape = sinking.shape(given)
    if perm_of(given) != perm or shape is None or scale is None or sinking.types.dtype(given) not in _EXACT:
        return False
    if not _is_plain(sinking, scale, *offset) or not _meets(sinking, perm):
        return False
    x = source_of(given)
    first = node.attributes.get_int("axis", -1) % len(perm)
    axes = sinking.constant(sorted(perm[first:]), "axes")
    whole = [shape[perm.index(axis)] for axis in range(len(perm))]
    single = [1 if axis in perm[first:] else size for axis, size in enumerate(whole)]
    centred = sinking.before("Sub", [x, sinking.before("ReduceMean", [x, axes], single, x)], whole, x)
    squares = sinking.before("Mul", [centred, centred], whole, x)
    variance = sinking.before("ReduceMean", [squares, axes], single, x)
    epsilon = sinking.number(node.attributes.get_float("epsilon", 1e-5), like=x)
    spread = sinking.before("Sqrt", [sinking.before("Add", [variance, epsilon], single, x)], single, x)
    result = sinking.before("Div", [centred, spread], whole, x)
    for op_type, weight in (("Mul", scale), ("Add", offset[0] if offset else None)):
        if weight is not None:
            result = sinking.before(op_type, [result, sinking.along(weight, perm[-1], len(perm))], whole, x)
    sinking.turn(result, perm)
    return True


def projected(sinking: Sinking, perm: Perm) -> bool:
    """A product with a matrix along the channels, as a convolution with a kernel of size 1; an offset is its bias."""
    given, matrix = sinking.node.inputs
    sizes, whole = sinking.shape(matrix), sinking.shape(given)
    if perm_of(given) != perm or len(perm) < 3 or (perm[0], perm[-1]) != (0, 1) or not is_fixed(matrix):
        return False
    if sizes is None or len(sizes) != 2 or whole is None or not _meets(sinking, perm):
        return False
    assert matrix is not None
    offset = _taken_offset(sinking)  # while the node can still be asked for shapes
    kernel = _kernel(sinking, matrix, [*sizes[::-1], *[1] * (len(perm) - 2)])
    x, after = source_of(given), [*whole[:-1], sizes[1]]
    result = sinking.before("Conv", [x, kernel, *offset], [after[perm.index(axis)] for axis in range(len(perm))], x)
    sinking.turn(result, perm)
    return True


def _kernel(sinking: Sinking, matrix: ir.Value, form: list[Any]) -> ir.Value:
    """A matrix as a kernel; in its own place, where nothing else reads it."""
    assert matrix.const_value is not None
    if len(matrix.uses()) == 1 and not matrix.is_graph_output():
        matrix.const_value = ir.tensor(_turned(matrix.const_value.numpy()).reshape(tuple(form)), name=matrix.name)
        matrix.shape = ir.Shape(form)
        return matrix
    turned = sinking.before("Transpose", [matrix], form[:2], matrix, perm=[1, 0])
    return sinking.before("Reshape", [turned, sinking.constant(form, "form")], form, matrix)


def _turned(matrix: np.ndarray) -> np.ndarray:
    """A transposed copy, made in strips: NumPy (2.4) takes four times as long for all at once."""
    turned = np.empty(matrix.shape[::-1], matrix.dtype)
    for row in range(0, len(matrix), _STRIP):
        turned[:, row : row + _STRIP] = matrix[row : row + _STRIP].T
    return turned


def _taken_offset(sinking: Sinking) -> list[ir.Value]:
    """The row that is added to what the node returns and to nothing else; the sum is then what it returns."""
    output = sinking.node.outputs[0]
    uses = list(output.uses())
    addition = uses[0].node if len(uses) == 1 and not output.is_graph_output() else None
    if addition is None or addition.op_type != "Add" or addition.domain or addition.graph is not sinking.node.graph:
        return []
    row = addition.inputs[1 - uses[0].idx]
    width, sizes = (sinking.shape(output) or [None])[-1:], sinking.shape(row)
    if row is None or not is_fixed(row) or sizes is None or sizes != width:
        return []
    return [row] if sinking.skip(addition) else []


def _is_plain(sinking: Sinking, *weights: ir.Value | None) -> bool:
    """Whether weights are along the last axis alone."""
    shapes = [sinking.shape(weight) for weight in weights if weight is not None]
    return all(shape is not None and len(shape) == 1 and isinstance(shape[0], int) for shape in shapes)


def _meets(sinking: Sinking, perm: Perm) -> bool:
    """Whether a transposition after the node would meet one that undoes it, or a reduction that ends it."""
    done: set[ir.Node] = set()
    pending = [sinking.node]
    while pending:
        for user in _users(pending.pop()):
            if user in done or user.domain:
                continue
            done.add(user)
            if _undoes(sinking, user, perm):
                return True
            if user.op_type in _PASSED or traits_of(user).elementwise:
                pending.append(user)
    return False


def _users(node: ir.Node) -> Iterator[ir.Node]:
    for output in node.outputs:
        yield from (use.node for use in output.uses())


def _undoes(sinking: Sinking, node: ir.Node, perm: Perm) -> bool:
    if node.op_type == "Transpose":
        outer = node.attributes.get_ints("perm", ())
        return len(outer) == len(perm) and [perm[axis] for axis in outer] == list(range(len(perm)))
    kept = node.attributes.get_int("keepdims", 1)
    if kept or not node.op_type.startswith("Reduce"):
        return False
    axes = sinking.types.known.array(node.inputs[1]) if len(node.inputs) > 1 else None
    gone = set() if axes is None else {int(axis) % len(perm) for axis in axes.reshape(-1)}
    left = ranked([place for axis, place in enumerate(perm) if axis not in gone])
    return bool(gone) and list(left) == sorted(left)
