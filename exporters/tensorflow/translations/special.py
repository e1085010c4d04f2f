"""Special functions, in float64 and rounded to the type of the result."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.building import Builder
from entrepot.exporters.functions import bessel, gamma, gelu, incomplete_gamma, integrals, normal_distribution
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.table import translates

_OF_ONE = {
    "Erfinv": normal_distribution.erfinv,
    "Ndtri": normal_distribution.ndtri, "Lgamma": gamma.lgamma, "Digamma": gamma.digamma,
    **{f"Bessel{name}": function for name, function in bessel.FUNCTIONS.items()},
}  # fmt: skip
_INTEGRALS = {
    "Dawsn": integrals.dawson, "FresnelCos": integrals.fresnel_cosine, "FresnelSin": integrals.fresnel_sine,
    "Expint": integrals.exponential_integral, "Spence": integrals.dilogarithm, "Betainc": integrals.betainc,
}  # fmt: skip
_OF_TWO = {
    "Igamma": incomplete_gamma.igamma, "Igammac": incomplete_gamma.igammac, "Zeta": gamma.zeta,
    "Polygamma": gamma.polygamma,
}  # fmt: skip


def _add(name: str, function: Any) -> None:
    @translates(name)
    def translate(node: Node, build: Builder, *values: Any) -> Any:
        return function(build, *values)


for _name, _function in {**_OF_ONE, **_OF_TWO, **_INTEGRALS}.items():
    _add(_name, _function)


@translates("Erf", "Erfc")
def error_function(node: Node, build: Builder, x: Any) -> Any:
    """What it is of is noted, for the products that are Gelu."""
    is_complement = node.op == "Erfc"
    function = normal_distribution.erfc if is_complement else normal_distribution.erf
    return gelu.note(function(build, x), x, complement=is_complement)
