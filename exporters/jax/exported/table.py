"""What each operation of StableHLO is in ``jax.lax``."""

from __future__ import annotations

from entrepot.exporters.jax.registry import Registry

_HOME = "entrepot.exporters.jax.exported.operations"
_MEANINGS, _NUMBERS = Registry(_HOME), Registry(_HOME)

means = _MEANINGS.register
"""Register what operations with some names compute, of the operation and its operands."""
on_numbers = _NUMBERS.register
"""Register the same for operands that are numbers known while it is traced, or sizes."""
meanings = _MEANINGS.functions
"""Those of all operations, by name."""
meanings_on_numbers = _NUMBERS.functions
"""Those of operations on sizes, by name."""
