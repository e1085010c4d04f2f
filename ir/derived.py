"""Weights that are computed from others when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir


class DerivedTensor(ir.LazyTensor):
    """A weight that is computed from others when it is read, and not before.

    Args:
        make: Computes the array.
        sources: What it is computed from; those of a derived one count instead of it.
        dtype: The element type.
        shape: The shape.
        name: The name.

    Attributes:
        sources: The weights at the beginning.
    """

    def __init__(
        self,
        make: Callable[[], np.ndarray],
        sources: Sequence[ir.TensorProtocol],
        *,
        dtype: ir.DataType,
        shape: Sequence[int],
        name: str | None,
    ) -> None:
        def read() -> ir.TensorProtocol:
            return ir.Tensor(np.ascontiguousarray(make()), dtype=dtype, name=name)

        super().__init__(read, dtype, ir.Shape(shape), name=name)
        parts: list[Sequence[ir.TensorProtocol]] = [
            each.sources if isinstance(each, DerivedTensor) else (each,) for each in sources
        ]
        self.sources: tuple[ir.TensorProtocol, ...] = tuple(source for part in parts for source in part)


def derived(
    make: Callable[[], np.ndarray],
    sources: Sequence[ir.TensorProtocol],
    *,
    like: ir.TensorProtocol,
    shape: Sequence[int],
) -> DerivedTensor:
    """A weight in the place of another, under its name and of its element type."""
    return DerivedTensor(make, sources, dtype=like.dtype, shape=shape, name=like.name)
