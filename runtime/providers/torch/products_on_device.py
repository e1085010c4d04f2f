"""Products by constant matrices on a device: with the row that is added, and several of one tensor at once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor

from entrepot.runtime.planning.chains import after_matmul, as_one
from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import Step, Value
from entrepot.runtime.providers.torch.moving import claim_product

_FLOATS = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
"""Types that every kernel on a device knows."""

_LONG = 8192
"""Rows from which float32 is multiplied faster by a matrix as torch's layers have it, by up to 6 %; below that it is
slower by it, by up to 15 %."""

_TOGETHER = 4
"""Products that are made at once. All results stay in memory as long as one is read, so these are as many as attention
has of a token, and not the keys and values of all layers that read one encoder."""


@dataclass(frozen=True)
class _Product:
    """A product by a constant matrix, and its row if one is added.

    Attributes:
        steps: MatMul, then Add if there is a row.
        weights: The matrix.
        bias: The row.
    """

    steps: list[Step]
    weights: Value
    bias: Value | None


def are_alike(values: Iterable[Value | None]) -> bool:
    """Whether values are of one type that kernels know."""
    kinds = {None if value is None or value.type is None else value.type.dtype for value in values}
    return len(kinds) == 1 and kinds <= _FLOATS


def fuse_one(graph: Neighbours, step: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row: rounded once, also in the narrow types."""
    found = None if graph.is_taken(step) else _found(graph, step)
    if found is not None and found.bias is not None:
        x = step.inputs[0]
        weights = _in_order_of_results(found.weights) if _is_long(x) else found.weights
        graph.replace(found.steps, as_one(found.steps, [x, weights, found.bias], _product))


def fuse_several(graph: Neighbours, step: Step) -> None:
    """Products of one tensor by several matrices, all with a row or none: one by the matrices side by side.

    A device is not filled by a small product, and starts the next only when it is through.
    """
    x, first = step.inputs[0], _found(graph, step)
    if first is None:
        return
    alike = [_found(graph, other) for other in graph.free_readers(x) if other.is_a("MatMul") and other.inputs[0] is x]
    found = [each for each in alike if each is not None and (each.bias is None) == (first.bias is None)][:_TOGETHER]
    if len(found) == 1:
        return
    weights = _beside_one_another(each.weights for each in found)
    inputs = [x, _in_order_of_results(weights) if _is_long(x) else weights]
    if first.bias is not None:
        inputs.append(_beside_one_another(filter(None, (each.bias for each in found))))
    widths = [each.weights.constant.shape[1] for each in found]

    def multiply(x: Tensor, weights: Tensor, bias: Tensor | None = None) -> tuple[Tensor, ...]:
        return torch.split(_product(x, weights, bias), widths, dim=-1)

    steps = [other for each in found for other in each.steps]
    made = as_one(steps, inputs, multiply)
    made.outputs = [each.steps[-1].outputs[0] for each in found]
    graph.replace(steps[::-1], made)  # it runs where the first product is: before all that reads a result


def _found(graph: Neighbours, step: Step) -> _Product | None:
    """The product that a MatMul is, with its row if one is added."""
    weights = step.inputs[1]
    if weights is None or np.ndim(weights.constant) != 2 or not are_alike(step.inputs):
        return None
    chain = after_matmul(graph, step, lambda _: False)
    bias = None if chain is None else chain.bias
    width = weights.constant.shape[1]
    if chain is None or bias is None or not are_alike([weights, bias]):
        return _Product([step], weights, None)
    if np.shape(bias.constant) in ((width,), (1, width)):
        return _Product(chain.steps[:2], weights, bias)
    return _Product([step], weights, None)


def _beside_one_another(values: Iterable[Value]) -> Value:
    """Matrices, or rows, as one."""
    arrays = [np.atleast_2d(value.constant) for value in values]
    return Value("beside_one_another", constant=np.concatenate(arrays, axis=1))


def _is_long(x: Value | None) -> bool:
    """Whether there are certainly many rows of float32."""
    known = None if x is None else x.type
    sizes = None if known is None or known.shape is None else known.shape[:-1]
    if known is None or known.dtype != ir.DataType.FLOAT or not sizes:
        return False
    return math.prod(size for size in sizes if isinstance(size, int)) >= _LONG


def _in_order_of_results(weights: Value) -> Value:
    """The same matrix with all that makes one result side by side, as torch's layers have it."""
    return replace(weights, constant=np.ascontiguousarray(weights.constant.T).T)


def _product(x: Tensor, weights: Tensor, bias: Tensor | None = None) -> Tensor:
    claim_product(x, weights)
    if x.ndim < 2 or bias is None:
        y = torch.matmul(x, weights)
        return y if bias is None else y + bias.reshape(-1)
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return torch.addmm(bias.reshape(-1), rows, weights).reshape(*x.shape[:-1], weights.shape[1])
