"""JAX's arrays as the pipeline sees them: NumPy's, of the types that JAX gives them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from entrepot.exporters.arrays import Array, Arrays
from entrepot.exporters.jax.keys import is_key
from entrepot.ir.errors import InputError


class JaxArrays(Arrays):
    """Arrays of JAX, of NumPy, and what stands for one while a function is traced."""

    constants = (np.dtype, jax.sharding.Sharding)

    def leaf(self, value: Any, name: str) -> Array | None:
        """The array that a value stands for; keys of generators are their words.

        Raises:
            InputError: It is an array of texts, dates or objects.
        """
        if is_key(value):
            value = jax.random.key_data(value)
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.kind in "OSUMmV" and not _is_extension(value.dtype):
                raise InputError(f"JAX has no arrays of {value.dtype}", value=name or None, hint="give numbers")
            return np.asarray(value, jax.dtypes.canonicalize_dtype(value.dtype))
        if isinstance(value, jax.core.Tracer):
            return value
        return np.asarray(value) if isinstance(value, jax.Array) else None

    def is_symbolic(self, value: Any) -> bool:
        """Whether it is a size, or computed from one, while JAX traces."""
        return jax.export.is_symbolic_dim(value)

    def of_number(self, value: Any) -> Array:
        """A number, or a size, as a scalar."""
        if self.is_symbolic(value):
            return jax.lax.convert_element_type(jnp.asarray(value), np.int32)
        return np.asarray(value, np.int32 if isinstance(value, int) else np.float32)


JAX = JaxArrays()


def _is_extension(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of ml_dtypes."""
    return dtype.kind == "V" and dtype.names is None and dtype.type.__module__ == "ml_dtypes"
