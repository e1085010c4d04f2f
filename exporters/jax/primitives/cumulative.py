"""What is taken together from the start of an axis to each place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.jax.primitives.reductions import WIDE
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule


@rule("cumsum")
def cumsum(step: Step, x: ir.Value) -> ir.Value:
    """CumSum."""
    axis, backward = np.array(step.params["axis"], np.int64), int(step.params["reverse"])

    def summed(value: ir.Value) -> ir.Value:
        result: ir.Value = step.op("CumSum", value, axis, reverse=backward)
        return result

    wide = WIDE.get(step.dtype.name)
    return summed(x) if wide is None else step.through(wide, summed, x)


def _scanned(function: Callable[[Any, Any], Any]) -> Callable[[Step, ir.Value], list[Any]]:
    def translate(step: Step, x: ir.Value) -> list[Any]:
        axis, backward = step.params["axis"], step.params["reverse"]

        def along(x: Any) -> Any:
            moved = jnp.moveaxis(x, axis, 0)
            first = moved[-1] if backward else moved[0]

            def next_one(carry: Any, each: Any) -> Any:
                at, total = carry
                found = jnp.where(at == 0, each, function(total, each))
                return (at + 1, found), found

            _, found = lax.scan(next_one, (jnp.int32(0), jnp.zeros_like(first)), moved, reverse=backward)
            return jnp.moveaxis(found, 0, axis)

        return step.in_jax(along, x)

    return translate


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "cumprod": lax.mul, "cummax": lax.max, "cummin": lax.min, "cumlogsumexp": jnp.logaddexp,
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    rule(_name)(_scanned(_function))
