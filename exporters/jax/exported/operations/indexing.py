"""Parts that are taken from, or put into, places given by indices."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from entrepot.exporters.jax.exported.operation import Operation, array, numbers
from entrepot.exporters.jax.exported.table import means

_SCATTERS = {
    "add": lax.scatter_add, "multiply": lax.scatter_mul, "minimum": lax.scatter_min, "maximum": lax.scatter_max,
    "subtract": lax.scatter_sub, "or": lax.scatter_max, "and": lax.scatter_min,
}  # fmt: skip


@means("gather")
def gather(operation: Operation, x: Any, indices: Any) -> Any:
    """Parts of a size."""
    return _gathered(operation, x, indices, operation.integers("slice_sizes"))


@means("dynamic_gather")
def dynamic_gather(operation: Operation, x: Any, indices: Any, sizes: Any) -> Any:
    """The same for a size that is computed."""
    whole, places = (array(each, kind) for each, kind in zip((x, indices), operation.operand_types, strict=False))
    return _gathered(operation, whole, places, numbers(sizes))


def _gathered(operation: Operation, x: Any, indices: Any, sizes: Any) -> Any:
    how = stablehlo.GatherDimensionNumbers(operation.attribute("dimension_numbers"))
    dims = lax.GatherDimensionNumbers(
        offset_dims=tuple(how.offset_dims),
        collapsed_slice_dims=tuple(how.collapsed_slice_dims),
        start_index_map=tuple(how.start_index_map),
        operand_batching_dims=tuple(how.operand_batching_dims),
        start_indices_batching_dims=tuple(how.start_indices_batching_dims),
    )
    places = _last(indices, how.index_vector_dim)
    return lax.gather(x, places, dims, tuple(sizes), mode=lax.GatherScatterMode.CLIP)


def _last(indices: Any, axis: int) -> Any:
    """Indices with the axis along which one index lies at the end."""
    return indices[..., None] if axis == len(indices.shape) else jnp.moveaxis(indices, axis, -1)


@means("scatter")
def scatter(operation: Operation, x: Any, indices: Any, updates: Any) -> Any:
    """Parts put in, or taken together with what is there; none of those that do not fit."""
    how = stablehlo.ScatterDimensionNumbers(operation.attribute("scatter_dimension_numbers"))
    dims = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(how.update_window_dims),
        inserted_window_dims=tuple(how.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(how.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(how.input_batching_dims),
        scatter_indices_batching_dims=tuple(how.scatter_indices_batching_dims),
    )
    name, arguments = operation.combiner()
    function = lax.scatter if (name, arguments) == ("argument", [1]) else _SCATTERS.get(name)
    if function is None or (name == "subtract" and arguments != [0, 1]):
        raise operation.unsupported("combines what it puts in by a function of its own")
    places = _last(indices, how.index_vector_dim)
    return function(
        x, places, updates, dims, unique_indices=operation.flag("unique_indices"),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )  # fmt: skip
