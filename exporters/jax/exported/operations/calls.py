"""Calls of what is not in the program: functions of CHLO with their decompositions, and LAPACK's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from entrepot.exporters.jax.exported.operation import Operation, array, numbers
from entrepot.exporters.jax.exported.operations.regions import in_windows
from entrepot.exporters.jax.exported.table import means
from entrepot.exporters.jax.upstream import geqrf

_COMPOSITES: dict[str, Callable[..., Any]] = {
    "chlo.acos": lax.acos, "chlo.acosh": lax.acosh, "chlo.asin": lax.asin, "chlo.asinh": lax.asinh,
    "chlo.atan": lax.atan, "chlo.atanh": lax.atanh, "chlo.bessel_i1e": lax.bessel_i1e, "chlo.conj": lax.conj,
    "chlo.cosh": lax.cosh, "chlo.digamma": lax.digamma, "chlo.erf": lax.erf, "chlo.erf_inv": lax.erf_inv,
    "chlo.erfc": lax.erfc, "chlo.lgamma": lax.lgamma, "chlo.next_after": lax.nextafter,
    "chlo.polygamma": lax.polygamma, "chlo.sinh": lax.sinh, "chlo.square": lax.square, "chlo.tan": lax.tan,
    "chlo.zeta": lax.zeta,
}  # fmt: skip


@means("composite")
def composite(operation: Operation, *operands: Any) -> Any:
    """What ``jax.lax`` has itself, and else what it consists of."""
    name = operation.symbol("name")
    if name == "chlo.top_k":
        found = lax.top_k(operands[0], operation.dims[-1] or operation.shape[-1])
        return [found[0], found[1]]
    if name in _COMPOSITES:
        return _COMPOSITES[name](*operands)
    return operation.program.function(operation.symbol("decomposition"), operands)


_NOTHING = ("shape_assertion",)
_SAME = ("Sharding", "annotate_device_placement", "SPMDFullToShardShape", "SPMDShardToFullShape")


@means("custom_call")
def custom_call(operation: Operation, *operands: Any) -> Any:
    """Of what XLA calls, checks and notes, what is dynamic for its sizes alone, and LAPACK."""
    name = operation.symbol("call_target_name")
    if name in _NOTHING:
        return []
    if name in _SAME:
        return list(operands)
    kinds = operation.operand_types
    if name == "stablehlo.dynamic_reduce_window":
        return _in_windows(operation, operands)
    if name == "stablehlo.dynamic_top_k":
        (count,) = numbers(operands[1])
        return list(lax.top_k(array(operands[0], kinds[0]), count))
    if name == "ApproxTopK":
        return _best(operation, array(operands[0], kinds[0]))
    routine = name.removeprefix("lapack_").removesuffix("_ffi")[1:]
    if name.startswith("lapack_") and name.endswith("_ffi") and routine in _LAPACK:
        sizes = operation.integers("indices_of_shape_operands")  # of results: they come last
        given = zip(operands[: len(operands) - len(sizes)], kinds, strict=False)
        values = [array(each, kind) for each, kind in given]
        return _LAPACK[routine](operation, *values)
    raise operation.unsupported(f"calls {name}, which is no part of the program")


def _best(operation: Operation, x: Any) -> list[Any]:
    """The largest or smallest along an axis, as the name of what compares them says."""
    config = operation.attribute("mhlo.backend_config")
    (compares,) = operation.attribute("called_computations")
    choose = lax.approx_max_k if compares.value.startswith("top_k_gt") else lax.approx_min_k
    return list(choose(x, int(config["top_k"].value), reduction_dimension=int(config["reduction_dim"].value)))


def _in_windows(operation: Operation, operands: Any) -> Any:
    """The operands, where they start, and what windows are like."""
    *given, sizes, strides, base, apart, padding = operands
    values = [array(each, kind) for each, kind in zip(given, operation.operand_types, strict=False)]
    how = [numbers(each) for each in (sizes, strides, base, apart)]
    sides = numbers(padding.ravel())
    (program,) = operation.attribute("called_computations")
    return in_windows(operation, values, how, [*zip(sides[::2], sides[1::2], strict=True)], program.value)


def _letter(operation: Operation, name: str) -> str:
    config = operation.attribute("mhlo.backend_config")
    return chr(int(config[name].value)) if name in config else ""


def _done(x: Any) -> Any:
    """That all went well, for each matrix."""
    return jnp.zeros(x.shape[:-2], np.int32)


def _root(operation: Operation, x: Any) -> list[Any]:
    if _letter(operation, "uplo") == "U":
        raise operation.unsupported("asks for an upper root")
    return [lax.linalg.cholesky(x, symmetrize_input=False), _done(x)]


def _factors(operation: Operation, x: Any) -> list[Any]:
    found, pivots, _ = lax.linalg.lu(x)
    return [found, pivots + 1, _done(x)]


def _eigen(operation: Operation, x: Any) -> list[Any]:
    vectors, values = lax.linalg.eigh(x, lower=_letter(operation, "uplo") == "L", symmetrize_input=False)
    return [vectors, values, _done(x)]


def _reflections(operation: Operation, x: Any) -> list[Any]:
    return list(geqrf(x))


def _reflected(operation: Operation, x: Any, scales: Any) -> Any:
    return lax.linalg.householder_product(x, scales)


def _singular(operation: Operation, x: Any) -> list[Any]:
    mode = _letter(operation, "mode")
    if mode == "N":
        raise operation.unsupported("asks for singular values alone")
    u, values, v = lax.linalg.svd(x, full_matrices=mode == "A")
    return [x, values, u, v, _done(x)]


def _solved(operation: Operation, a: Any, b: Any) -> Any:
    turned = _letter(operation, "trans_x")
    return lax.linalg.triangular_solve(
        a, b, left_side=_letter(operation, "side") == "L", lower=_letter(operation, "uplo") == "L",
        transpose_a=turned in "TC", conjugate_a=turned == "C", unit_diagonal=_letter(operation, "diag") == "U",
    )  # fmt: skip


_LAPACK: dict[str, Callable[..., Any]] = {
    "potrf": _root, "getrf": _factors, "syevd": _eigen, "geqrf": _reflections, "orgqr": _reflected,
    "gesdd": _singular, "trsm": _solved,
}  # fmt: skip
