"""Products of matrices, convolutions and transforms."""

from __future__ import annotations

from typing import Any

from jax import lax
from jaxlib.mlir.dialects import stablehlo

from entrepot.exporters.jax.exported.operation import Operation, array, numbers
from entrepot.exporters.jax.exported.table import means


@means("dot_general")
def dot_general(operation: Operation, x: Any, y: Any) -> Any:
    """Sums of products."""
    how = stablehlo.DotDimensionNumbers(operation.attribute("dot_dimension_numbers"))
    dims = (
        (tuple(how.lhs_contracting_dimensions), tuple(how.rhs_contracting_dimensions)),
        (tuple(how.lhs_batching_dimensions), tuple(how.rhs_batching_dimensions)),
    )
    return lax.dot_general(x, y, dims, preferred_element_type=operation.dtype)


@means("convolution")
def convolution(operation: Operation, x: Any, kernel: Any) -> Any:
    """With any dimension numbers."""
    return _convolved(operation, x, kernel, operation.pairs("padding", [(0, 0)] * (len(x.shape) - 2)))


@means("dynamic_conv")
def dynamic_conv(operation: Operation, x: Any, kernel: Any, padding: Any) -> Any:
    """With padding that is computed, of which only constants can be read."""
    whole, weight = (array(each, kind) for each, kind in zip((x, kernel), operation.operand_types, strict=False))
    sides = numbers(padding.ravel())
    return _convolved(operation, whole, weight, [*zip(sides[::2], sides[1::2], strict=True)])


def _convolved(operation: Operation, x: Any, kernel: Any, padding: Any) -> Any:
    how = stablehlo.ConvDimensionNumbers(operation.attribute("dimension_numbers"))
    dims = lax.ConvDimensionNumbers(
        (how.input_batch_dimension, how.input_feature_dimension, *how.input_spatial_dimensions),
        (how.kernel_output_feature_dimension, how.kernel_input_feature_dimension, *how.kernel_spatial_dimensions),
        (how.output_batch_dimension, how.output_feature_dimension, *how.output_spatial_dimensions),
    )
    ones = [1] * (len(x.shape) - 2)
    if operation.has("window_reversal") and any(list(operation.attribute("window_reversal"))):
        raise operation.unsupported("turns its windows round")
    return lax.conv_general_dilated(
        x, kernel, operation.integers("window_strides", ones), padding, operation.integers("lhs_dilation", ones),
        operation.integers("rhs_dilation", ones), dims, operation.number("feature_group_count", 1),
        operation.number("batch_group_count", 1), preferred_element_type=operation.dtype,
    )  # fmt: skip


@means("fft")
def fft(operation: Operation, x: Any) -> Any:
    """A Fourier transform."""
    return lax.fft(x, operation.word("fft_type"), tuple(operation.integers("fft_length")))


@means("cholesky")
def cholesky(operation: Operation, x: Any) -> Any:
    """The lower or the upper root."""
    found = lax.linalg.cholesky(x)
    return found if operation.flag("lower") else lax.transpose(found, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@means("triangular_solve")
def triangular_solve(operation: Operation, a: Any, b: Any) -> Any:
    """A system of equations."""
    turned = operation.word("transpose_a")
    return lax.linalg.triangular_solve(
        a, b, left_side=operation.flag("left_side"), lower=operation.flag("lower"),
        transpose_a=turned in ("TRANSPOSE", "ADJOINT"), conjugate_a=turned == "ADJOINT",
        unit_diagonal=operation.flag("unit_diagonal"),
    )  # fmt: skip
