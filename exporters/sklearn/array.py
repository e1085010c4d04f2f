"""A NumPy array that is not there yet: whatever is done with it is written into a graph.

A formula in NumPy, an estimator's own or a user's, becomes a graph by being run on it once. Types are promoted as NumPy
promotes them, so that a graph computes in what scikit-learn computes in.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.sklearn.shapes import Shape, broadcast, reduced
from entrepot.ir.errors import ConversionError

Symbolic: TypeAlias = Any
"""An ``Array`` in a formula of NumPy, whose annotations promise arrays of its own."""


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """A value of a graph that behaves like an array.

    Args:
        build: The graph.
        value: The value.
        dtype: NumPy's type; ``object`` is text.
        shape: Its sizes, ``None`` where one is not known.
    """

    __array_priority__ = 1000
    column: Any = None
    """The name of the column of a data frame that it is, if it is one by itself."""

    def __init__(self, build: Builder, value: ir.Value, dtype: Any, shape: Shape) -> None:
        self.build, self.dtype, self.shape = build, np.dtype(dtype), tuple(shape)
        self.value = typed(value, self.dtype, self.shape)

    # what NumPy asks --------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        from entrepot.exporters.sklearn.functions import reduce_with, universal

        (out,), where = options.pop("out", (None,)), options.pop("where", True)
        if method == "reduce" and out is None and where is True:
            return reduce_with(ufunc.__name__, *operands, **options)
        if method != "__call__" or (where is not True and out is None):
            raise _inexpressible(f"np.{ufunc.__name__}.{method} with its arguments")
        found = universal(self.build, ufunc, operands, options)
        found = found if where is True else np.where(where, found, out)
        return found if out is None else self._written(out, found)

    def _written(self, out: Any, found: Any) -> Any:
        """``x += 1``: the array is another value of the graph from then on."""
        if not isinstance(out, Array) or out.ndim != found.ndim:
            raise _inexpressible("a result that is written into an array of NumPy")
        out.value = found.astype(out.dtype).value
        return out

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from entrepot.exporters.sklearn.functions import FUNCTIONS

        name = function.__name__
        if name not in FUNCTIONS:
            raise _inexpressible(f"np.{name}")
        return FUNCTIONS[name](*args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise _inexpressible("a conversion into an array of NumPy")

    def __bool__(self) -> bool:
        raise _inexpressible("a branch that depends on values")

    __float__ = __int__ = __index__ = __bool__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        if self.shape and self.shape[0] is not None:
            return self.shape[0]
        raise _inexpressible("the number of rows as a number of Python")

    def __iter__(self) -> Any:
        return (self[at] for at in range(len(self)))

    # what an array has ------------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def T(self) -> Array:
        """With its axes in reverse."""
        return self.transpose()

    def op(
        self, op_type: str, *operands: Any, dtype: Any = None, shape: Shape | None = None, **attributes: Any
    ) -> Array:
        """Write a node, this array being its first operand, whose type and shape the result has unless it says so."""
        values = [item.value if isinstance(item, Array) else item for item in (self, *operands)]
        value = self.build.op(op_type, *values, **attributes)
        return Array(self.build, value, self.dtype if dtype is None else dtype, self.shape if shape is None else shape)

    def lift(self, value: Any, dtype: Any = None) -> Array:
        """A number or an array as a constant of the same graph."""
        return lifted(self.build, value, dtype)

    def astype(self, dtype: Any, copy: bool = False) -> Array:
        """In another type."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self
        if kind.kind in "US":
            raise _inexpressible("text made of numbers")
        return Array(self.build, self.build.cast(self.value, kind), kind, self.shape)

    def reshape(self, *shape: Any) -> Array:
        """With other axes; one size may be -1."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        dims = [(0 if -1 in given else -1) if dim is None else int(dim) for dim in given]  # as many rows as it has
        if self.value.const_value is not None and -1 not in dims:
            return lifted(self.build, self.value.const_value.numpy().reshape(dims))
        known = all(isinstance(dim, int) for dim in self.shape)
        count = math.prod(self.shape) if known else None  # type: ignore[arg-type]
        rest = math.prod(dim for dim in dims if dim != -1)
        free = None if count is None else count // max(rest, 1)
        return self.op("Reshape", dims, shape=[free if dim == -1 else dim or None for dim in dims])

    def ravel(self) -> Array:
        """With one axis."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> Array:
        """With its axes in another order, in reverse unless it is given."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes or range(self.ndim)[::-1]
        perm = [int(axis) % self.ndim for axis in order]
        return self.op("Transpose", perm=perm, shape=[self.shape[axis] for axis in perm])

    def take(self, indices: Any, axis: int) -> Array:
        """The elements at these positions of an axis."""
        axis %= self.ndim
        where = indices if isinstance(indices, Array) else np.asarray(indices, np.int64)
        if not isinstance(where, Array):
            where = np.where(where < 0, where + (self.shape[axis] or 0), where) if self.shape[axis] else where
        shape = (*self.shape[:axis], *where.shape, *self.shape[axis + 1 :])
        return self.op("Gather", where, axis=axis, shape=shape)

    def expand(self, axis: int) -> Array:
        """With a further axis of size 1."""
        axis %= self.ndim + 1
        return self.op("Unsqueeze", [axis], shape=(*self.shape[:axis], 1, *self.shape[axis:]))

    def reduce(self, op_type: str, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Array:
        """One of the operators that take axes as an operand."""
        axes = list(range(self.ndim)) if axis is None else [int(a) % self.ndim for a in np.atleast_1d(axis)]
        shape = reduced(self.shape, axes, keepdims)
        return self.op(op_type, axes, keepdims=int(keepdims), shape=shape, dtype=dtype)

    def rows(self, row: Any) -> Array:
        """A constant, once for each of the rows that this array has."""
        row = lifted(self.build, row)
        count = self.build.op("Reshape", self.build.size(self.value, 0), [1])
        sizes = self.build.op("Concat", count, self.build.constant(np.array(row.shape, np.int64)), axis=0)
        shape = (self.shape[0], *row.shape)
        return Array(self.build, self.build.op("Expand", row.value, sizes), row.dtype, shape)

    def __getitem__(self, key: Any) -> Any:
        from entrepot.exporters.sklearn.indexing import indexed

        return indexed(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from entrepot.exporters.sklearn.assigning import assigned

        self.value = assigned(self, key, value).value

    # methods that are functions as well -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """Methods that are functions of NumPy as well: ``x.sum(axis=1)``."""
        if name in _METHODS:
            return functools.partial(getattr(np, name), self)
        raise AttributeError(f"an array that stands for others has no '{name}'")


_METHODS = frozenset({
    "sum", "mean", "max", "min", "prod", "any", "all", "argmax", "argmin", "clip", "copy", "dot", "cumsum", "round",
    "std", "var",
})  # fmt: skip


def lifted(build: Builder, value: Any, dtype: Any = None) -> Array:
    """A number or an array as a constant of a graph; itself if it is a part of it."""
    if isinstance(value, Array):
        return value if dtype is None else value.astype(dtype)
    array = np.asarray(value, dtype)
    if array.dtype.kind in "USO":
        texts = ir.StringTensor([str(text).encode() for text in array.ravel()], shape=ir.Shape(array.shape))
        return Array(build, build.weight("text", texts), object, array.shape)
    return Array(build, build.constant(array), array.dtype, array.shape)


def common(build: Builder, operands: Sequence[Any], dtype: Any = None) -> tuple[list[Array], np.dtype[Any], Shape]:
    """Operands of one type, NumPy's for them, and the shape that they broadcast to."""
    kinds = [np.asarray(x).dtype if isinstance(x, list | tuple) else getattr(x, "dtype", x) for x in operands]
    text = any(isinstance(kind, str) or (isinstance(kind, np.dtype) and kind.kind in "USO") for kind in kinds)
    found = np.dtype(object) if text else np.result_type(*kinds) if dtype is None else np.dtype(dtype)
    made = [lifted(build, x, None if text else found) for x in operands]
    return made, found, broadcast([x.shape for x in made])


def _inexpressible(what: str) -> ConversionError:
    return ConversionError(
        f"{what} cannot be written into a graph",
        hint="write it with NumPy functions of the array that it is given, or register a converter for its class",
    )
