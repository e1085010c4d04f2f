"""Special functions: written in JAX, by its own formulas or those of XLA, and translated in place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.functions import gelu, incomplete_gamma
from entrepot.exporters.functions.terms import Term, choose
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule
from entrepot.exporters.jax.upstream import IMPLEMENTED

_SMALL = (np.dtype(np.float16), np.dtype(jnp.bfloat16))

for _name in (
    "regularized_incomplete_beta", "igamma_grad_a", "bessel_i0e", "mulhi",
    "lu_pivots_to_permutation",    "ragged_dot_general", "cholesky_update", "symmetric_product", "tridiagonal_solve",
):  # fmt: skip

    @rule(_name)
    def _implemented(step: Step, *operands: ir.Value, _name: str = _name) -> list[Any]:
        """As JAX itself writes it."""
        params = {key: value for key, value in step.params.items() if key not in ("sharding", "out_sharding")}
        return step.in_jax(lambda *given: IMPLEMENTED[_name](*given, **params), *operands)


for _name, _function, _of_zero in (
    ("igamma", incomplete_gamma.igamma, 1.0),
    ("igammac", incomplete_gamma.igammac, 0.0),
):

    @rule(_name)
    def _incomplete_gamma(
        step: Step, a: ir.Value, x: ir.Value, _function: Any = _function, _of_zero: float = _of_zero
    ) -> list[ir.Value]:
        """By a fixed number of points: JAX's own series takes as many turns as its numbers are large."""
        first, second, value = (Term(step.build, each) for each in (a, x, _function(step.build, a, x)))
        value = choose((first == 0) & (second > 0), _of_zero, value)
        return [choose(first.isinf() | ((first == 0) & (second == 0)), math.nan, value).value]


def _formula(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of JAX's arrays of one type, which float16 and bfloat16 enter as float32."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @rule(*names)
        def translate(step: Step, *operands: ir.Value) -> list[Any]:
            def widened(*given: Any) -> Any:
                if step.dtype not in _SMALL:
                    return function(*given)
                wide = (lax.convert_element_type(each, np.float32) for each in given)
                return lax.convert_element_type(function(*wide), step.dtype)

            return step.in_jax(widened, *operands)

        return function

    return register


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    result = jnp.full_like(x, coefficients[0])
    for each in coefficients[1:]:
        result = result * x + each
    return result


_LANCZOS = (
    676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
    -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707,
    9.984369578019570859563e-6, 1.50563273514931155834e-7,
)  # fmt: skip
_LANCZOS_BASE = 0.99999999999980993227684700473478


@_formula("lgamma")
def _lgamma(x: Any) -> Any:
    """Lanczos' series; below a half by the reflection."""
    reflects = x < 0.5
    z = jnp.where(reflects, -x, x - 1)
    total = jnp.full_like(x, _LANCZOS_BASE)
    for at, each in enumerate(_LANCZOS):
        total = total + each / (z + (at + 1))
    log_t = math.log(7.5) + lax.log1p(z / 7.5)
    log_y = 0.5 * math.log(2 * math.pi) + (z + 0.5 - (z + 7.5) / log_t) * log_t + lax.log(total)
    fraction = jnp.abs(x) - jnp.floor(jnp.abs(x))
    fraction = jnp.where(fraction > 0.5, 1 - fraction, fraction)
    log_sine = lax.log(lax.sin(math.pi * fraction))
    reflected = jnp.where(jnp.isinf(log_sine), -log_sine, math.log(math.pi) - log_sine - log_y)
    return jnp.where(jnp.isinf(x), jnp.inf, jnp.where(reflects, reflected, log_y)).astype(x.dtype)


@_formula("digamma")
def _digamma(x: Any) -> Any:
    """The derivative of the same series."""
    reflects = x < 0.5
    z = jnp.where(reflects, -x, x - 1)
    above, below = jnp.zeros_like(x), jnp.full_like(x, _LANCZOS_BASE)
    for at, each in enumerate(_LANCZOS):
        above = above - each / ((z + (at + 1)) * (z + (at + 1)))
        below = below + each / (z + (at + 1))
    t = z + 7.5
    y = math.log(7.5) + lax.log1p(z / 7.5) + above / below - 7 / t
    reduced = x + jnp.abs(jnp.floor(x + 0.5))
    reflected = y - math.pi * lax.cos(math.pi * reduced) / lax.sin(math.pi * reduced)
    y = jnp.where(reflects, reflected, y)
    pole = (x <= 0) & (x == jnp.floor(x))
    infinite = jnp.where(lax.sign(1 / x) < 0, jnp.inf, -jnp.inf)
    return jnp.where(x == 0, infinite, jnp.where(pole, jnp.nan, y)).astype(x.dtype)


_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


@_formula("zeta")
def _zeta(x: Any, q: Any) -> Any:
    """Euler and Maclaurin's sum: ten terms, and what is left of the others."""
    total = jnp.zeros_like(x)
    for at in range(10):
        total = total + (q + at) ** -x
    a = q + 10
    power = a**-x
    total = total + power * a / (x - 1) + 0.5 * power
    factor, scale = x / a, power
    for at, number in enumerate(_BERNOULLI):
        total = total + scale * factor * (number / math.factorial(2 * at + 2))
        factor = factor * ((x + (2 * at + 1)) / a) * ((x + (2 * at + 2)) / a)
    whole = q == jnp.floor(q)
    total = jnp.where((q <= 0) & whole, jnp.inf, total)
    total = jnp.where((q <= 0) & ~whole & (x != jnp.floor(x)), jnp.nan, total)
    return jnp.where(x == 1, jnp.inf, jnp.where(x < 1, jnp.nan, total)).astype(x.dtype)


@_formula("polygamma")
def _polygamma(order: Any, x: Any) -> Any:
    """By the zeta function."""
    sign = jnp.where(order - 2 * jnp.floor(order / 2) == 0, -1.0, 1.0)
    found = sign * lax.exp(lax.lgamma(order + 1)) * lax.zeta(order + 1, x)
    found = jnp.where(order == 0, lax.digamma(x), found)
    return jnp.where((order < 0) | (order != jnp.floor(order)), jnp.nan, found).astype(x.dtype)


_INVERSE_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_INVERSE_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


@_formula("erf_inv")
def _erf_inv(x: Any) -> Any:
    """Giles' polynomials; in float64 with two steps of Newton's."""
    w = -lax.log1p(-x * x)
    near = _polynomial(_INVERSE_NEAR, w - 2.5)
    far = _polynomial(_INVERSE_FAR, lax.sqrt(w) - 3)
    found = jnp.where(w < 5, near, far) * x
    if x.dtype == np.float64:
        for _ in range(2):
            error = jnp.where(x > 0, (1 - x) - lax.erfc(found), lax.erf(found) - x)
            found = found - error / (2 / math.sqrt(math.pi) * lax.exp(-found * found))
    return jnp.where(jnp.abs(x) == 1, x * jnp.inf, found).astype(x.dtype)


_TAIL_NEAR = (
    2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1, 6.210004621745983e-1,
    -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1,
)  # fmt: skip
_TAIL_FAR = (
    -1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786, -1.0152652792027,
    4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1,
)  # fmt: skip
_WIDE_NEAR = (
    (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1,
     1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
     5.57535335369399327526e2),
    (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
     1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2),
)  # fmt: skip
_WIDE_FAR = (
    (5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053595185,
     7.40974269950448939160, 2.97886665372100240670),
    (1.0, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1, 1.70814450747565897222e1,
     9.60896809063285878198, 3.36907644100081516050),
)  # fmt: skip


@rule("erfc")
def erfc(step: Step, x: ir.Value) -> list[Any]:
    """Its formula; what it is of is noted, for the products that are Gelu."""
    found = step.in_jax(lambda given: _erfc(given.astype(_wider(step.dtype))).astype(step.dtype), x)
    gelu.note(found[0], x, complement=True)
    return found


def _wider(dtype: np.dtype[Any]) -> Any:
    return np.float32 if dtype in _SMALL else dtype


def _erfc(x: Any) -> Any:
    """One minus erf where nothing is lost by that, and the tail times a polynomial elsewhere."""
    size = jnp.abs(x)
    safe = jnp.maximum(size, 0.5)
    if x.dtype == np.float64:
        near, far = (_polynomial(above, safe) / _polynomial(below, safe) for above, below in (_WIDE_NEAR, _WIDE_FAR))
        tail = lax.exp(-x * x) * jnp.where(size < 8, near, far)
    else:
        q = 1 / safe
        share = jnp.where(size < 2, _polynomial(_TAIL_NEAR, q * q), _polynomial(_TAIL_FAR, q * q))
        tail = lax.exp(-x * x) * q * share
    tail = jnp.where(jnp.isinf(x), 0.0, tail)
    return jnp.where(size < 1, 1 - lax.erf(x), jnp.where(x < 0, 2 - tail, tail)).astype(x.dtype)


_I1_NEAR = (
    9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7, -8.56872026469545474066e-7,
    3.47025130813767847674e-6, -1.32731636560394358279e-5, 4.78156510755005422638e-5, -1.61760815825896745588e-4,
    5.12285956168575772895e-4, -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
    2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1, -1.76416518357834055153e-1,
    2.52587186443633654823e-1,
)  # fmt: skip
_I1_FAR = (
    -3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7, -3.88256480887769039346e-6,
    -1.10588938762623716291e-4, -9.76109749136146840777e-3, 7.78576235018280120474e-1,
)  # fmt: skip


@_formula("bessel_i1e")
def _bessel_i1e(x: Any) -> Any:
    """Chebyshev's series of Cephes, of the precision of float32."""
    size = jnp.abs(x)
    near = size * _chebyshev(_I1_NEAR, size / 2 - 2)
    far = _chebyshev(_I1_FAR, 32 / jnp.maximum(size, 8.0) - 2) / lax.sqrt(size)
    return lax.sign(x) * jnp.where(size <= 8, near, far).astype(x.dtype)


def _chebyshev(coefficients: Sequence[float], x: Any) -> Any:
    one, two, three = jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros_like(x)
    for each in coefficients:
        one, two, three = x * one - two + each, one, two
    return 0.5 * (one - three)
