"""One equation of a jaxpr while it is translated: what rules ask of it, and of the graph that they write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import ml_dtypes
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, element
from entrepot.exporters.jax.dims import Sizes, is_known
from entrepot.exporters.jax.running import model_errors
from entrepot.exporters.jax.upstream import user_frame
from entrepot.ir.errors import UnsupportedOpError

if TYPE_CHECKING:
    from entrepot.exporters.jax.lowering import Lowering
    from entrepot.exporters.jax.table import Operand


class Unfollowed(Exception):  # noqa: N818 - an answer, not a fault
    """What a primitive consists of cannot be written for sizes that vary."""


class Step:
    """An equation, and where its nodes go.

    Args:
        lowering: The graph that is being written.
        eqn: The equation.

    Attributes:
        build: The builder of the graph.
        sizes: Sizes in it.
        params: Parameters of the equation.
        ins: Abstract values of the operands.
        outs: Abstract values of the results.
    """

    def __init__(self, lowering: Lowering, eqn: Any) -> None:
        self.lowering, self.eqn = lowering, eqn
        self.build: Builder = lowering.build
        self.sizes: Sizes = lowering.sizes
        self.params: dict[str, Any] = eqn.params
        self.ins = [each.aval for each in eqn.invars]
        self.outs = [each.aval for each in eqn.outvars]

    def op(self, op_type: str, *operands: Any, **attributes: Any) -> Any:
        """Write a node; see ``Builder.op``. Numbers of attributes may be NumPy's, as JAX's parameters sometimes are."""
        plain: Any = {
            name: int(value) if isinstance(value, np.integer) else value for name, value in attributes.items()
        }
        return self.build.op(op_type, *operands, **plain)

    def number(self, value: Any, like: ir.Value) -> ir.Value:
        """A constant of the type of another value."""
        return self.build.constant(value, like.dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the first result."""
        return np.dtype(self.outs[0].dtype)

    def literal(self, at: int) -> Any:
        """The number that an operand is, if it is one in the program's text, else ``None``."""
        value = getattr(self.eqn.invars[at], "val", None)
        return value if value is not None and np.ndim(value) == 0 else None

    def shaped(self, value: ir.Value, shape: Sequence[Any]) -> ir.Value:
        """The value in another shape; at most one size need be computed from the elements."""
        unknown = [at for at, dim in enumerate(shape) if not is_known(dim)]
        if len(unknown) == 1 and all(dim != 0 for dim in shape if is_known(dim)):
            target = [-1 if at in unknown else int(dim) for at, dim in enumerate(shape)]
            return self.op("Reshape", value, target)
        result: ir.Value = self.op("Reshape", value, self.sizes.vector(shape), allowzero=self._may_be_empty(shape))
        return result

    @staticmethod
    def _may_be_empty(shape: Sequence[Any]) -> int | None:
        return 1 if any(not is_known(dim) or dim == 0 for dim in shape) else None

    def expanded(self, value: ir.Value, shape: Sequence[Any]) -> ir.Value:
        """The value repeated along axes of size 1; not at all along some, which onnxruntime (1.31) takes for once."""
        nothing = [axis for axis, dim in enumerate(shape) if is_known(dim) and dim == 0]
        whole = [1 if axis in nothing else dim for axis, dim in enumerate(shape)]
        result: ir.Value = self.op("Expand", value, self.sizes.vector(whole))
        none = [0] * len(nothing)
        return self.op("Slice", result, none, none, nothing) if nothing else result

    def transposed(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """The value with its axes in another order."""
        if list(order) == sorted(order):
            return value
        result: ir.Value = self.op("Transpose", value, perm=[int(axis) for axis in order])
        return result

    def filled(self, shape: Sequence[Any], number: Any, dtype: Any) -> ir.Value:
        """One number everywhere."""
        return self.expanded(self.build.constant(number, dtype), shape)

    def through(self, dtype: Any, function: Callable[..., Any], *values: ir.Value) -> ir.Value:
        """Compute in another element type, and return to that of the first value."""
        result = function(*(self.build.cast(value, dtype) for value in values))
        assert values[0].dtype is not None
        return self.build.cast(result, values[0].dtype)

    def in_jax(self, function: Callable[..., Any], *operands: Operand, avals: Sequence[Any] | None = None) -> list[Any]:
        """What a function of JAX computes from operands: it is traced, and translated in place.

        Args:
            function: It is called with the operands by position.
            operands: Values.
            avals: What they are, if they are not the operands of the equation.
        """
        known = self.ins if avals is None else avals
        specs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in known]
        try:
            traced = jax.make_jaxpr(function)(*specs)
        except model_errors() as error:
            if all(is_known(dim) for each in specs for dim in each.shape):
                raise
            first = next(iter(str(error).splitlines()), "")
            raise Unfollowed(f"{self.eqn.primitive.name}{self.place}: {first}") from error
        return self.lowering.inline(traced, operands)

    def unsupported(self, why: str, hint: str = "") -> UnsupportedOpError:
        """The error for a use of a primitive that has no counterpart."""
        return UnsupportedOpError(f"{self.eqn.primitive.name}{self.place}: {why}", hint=hint or None)

    @property
    def place(self) -> str:
        """The user's line, to be put behind what is said of the equation."""
        line = user_frame(self.eqn)
        return f" (at {line})" if line else ""


def kind_of(dtype: Any) -> ir.DataType:
    """ONNX's name of an element type of JAX."""
    return element(np.dtype(dtype))


def limits_of(dtype: Any) -> ml_dtypes.finfo:
    """What a floating-point type consists of."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
