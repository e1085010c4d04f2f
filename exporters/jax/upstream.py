"""What is taken from the private side of JAX (0.10), each with a canary in ``tests/exporters/jax/test_upstream.py``."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from jax._src import source_info_util
from jax._src.export.shape_poly import UnexpectedDimVar
from jax._src.interpreters import mlir
from jax._src.lax import lax, linalg, special
from jax._src.random import core as random_core
from jax._src.random import prng, threefry2x32
from jaxlib.mlir.dialects import stablehlo

__all__ = [
    "DESERIALISING",
    "EQUAL",
    "IMPLEMENTED",
    "Comparison",
    "UnexpectedDimVar",
    "geqrf",
    "is_threefry",
    "scope_of",
    "stablehlo_module",
    "threefry",
    "threefry_generator",
    "undecided",
    "user_frame",
]


def scope_of(eqn: Any) -> str:
    """The path of an equation, ``encoder/layer_0``, as ``jax.named_scope`` made it, without transformations."""
    stack = eqn.source_info.name_stack.stack
    return "/".join(each.name for each in stack if type(each).__name__ == "Scope")


def user_frame(eqn: Any) -> str:
    """The user's line that an equation comes from, ``net.py:12 in forward``; empty if it is not known."""
    frame = source_info_util.user_frame(eqn.source_info.traceback)
    if frame is None:
        return ""
    return f"{frame.file_name.rpartition('/')[2]}:{frame.start_line} in {frame.function_name.rpartition('.')[2]}"


EQUAL = "=="


class Comparison(NamedTuple):
    """Two expressions over symbols, and what is said of them: ``t <= 16``."""

    left: str
    operator: str
    right: str


_COMPARED = re.compile(r"comparison '(.+?)' (<=|>=|<|>) '(.+?)' is inconclusive")
_CHOSEN = re.compile(r"(?:min|max)\(([^(),]+), ([^(),]+)\)")


def undecided(error: BaseException | None) -> list[Comparison]:
    """The comparisons that JAX could not decide for all sizes, as it says in an error or in what that comes from."""
    found: list[Comparison] = []
    while error is not None:
        found += [Comparison(*parts) for parts in _COMPARED.findall(str(error))]
        for left, right in _CHOSEN.findall(str(error)):
            found += [Comparison(left, "<=", right), Comparison(right, "<=", left)]
        error = error.__cause__ or error.__context__
    return list(dict.fromkeys(found))


def is_threefry(dtype: Any) -> bool:
    """Whether keys of a type draw by JAX's default algorithm."""
    return isinstance(dtype, prng.KeyTy) and dtype._impl is threefry2x32.threefry_prng_impl  # noqa: SLF001


def threefry(key0: Any, key1: Any, x0: Any, x1: Any) -> Any:
    """Two words of random bits for each two words of a counter."""
    return threefry2x32._threefry2x32_lowering(key0, key1, x0, x1, use_rolled_loops=False)  # noqa: SLF001


def threefry_generator() -> Any:
    """The functions of the default generator: ``seed``, ``split``, ``random_bits``, ``fold_in``, on words."""
    return threefry2x32.threefry_prng_impl


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    return special._up_and_broadcast(function)  # noqa: SLF001


IMPLEMENTED: dict[str, Callable[..., Any]] = {
    "regularized_incomplete_beta": _wide(special.regularized_incomplete_beta_impl),
    "igamma_grad_a": _wide(special.igamma_grad_a_impl),
    "bessel_i0e": special.bessel_i0e_impl,
    "mulhi": lax._mulhi_impl,  # noqa: SLF001
    "lu_pivots_to_permutation": linalg._generic_lu_pivots_to_permutation,  # noqa: SLF001
    "ragged_dot_general": lax._ragged_dot_general_impl,  # noqa: SLF001
    "cholesky_update": linalg._cholesky_update_jax_fn,  # noqa: SLF001
    "symmetric_product": linalg._symmetric_product_jax_fn,  # noqa: SLF001
    "tridiagonal_solve": linalg._tridiagonal_solve_jax,  # noqa: SLF001
    "random_gamma": random_core._gamma_impl,  # noqa: SLF001
}
"""How JAX itself writes some primitives in terms of others."""


DESERIALISING: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, LookupError, AttributeError, AssertionError, RuntimeError, OverflowError),
    struct.error,
)
"""What ``jax.export.deserialize`` raises for bytes that it did not write."""


def geqrf(x: Any) -> Any:
    """Householder's reflections, and their scales."""
    return linalg.geqrf(x)


def stablehlo_module(exported: Any) -> Any:
    """The program in what ``jax.export`` made, as a module of MLIR."""
    context = mlir.make_ir_context()
    return stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)
