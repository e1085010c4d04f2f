"""The rules: what each primitive of JAX is in ONNX.

A rule is called with the step (its equation and the graph that is being written) and a value for each operand, and
returns a value, or a list of several. A complex value is a ``Pair``, which only rules that say so ever see.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import onnx_ir as ir

from entrepot.exporters.jax.registry import Registry


class Pair(NamedTuple):
    """A complex value as two real ones."""

    re: ir.Value
    im: ir.Value


Operand: TypeAlias = "ir.Value | Pair"
_HOME = "entrepot.exporters.jax.primitives"
_RULES, _COMPLEX = Registry(_HOME), Registry(_HOME)

rule = _RULES.register
"""Register a rule for primitives with some names, on real values."""
complex_rule = _COMPLEX.register
"""Register a rule for primitives where an operand or a result is complex."""
rules = _RULES.functions
"""Every rule on real values, by primitive."""
complex_rules = _COMPLEX.functions
"""Every rule on complex values, by primitive."""
