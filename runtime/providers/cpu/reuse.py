"""Results written over operands that are no longer needed: ``add(a, b, a)`` instead of new memory for every step."""

from __future__ import annotations

import numpy as np

from entrepot.runtime.planning.dying import dying_operands
from entrepot.runtime.planning.plan import Block, Step

_TWO_POSITIONS_ONLY = (np.maximum, np.minimum)
"""NumPy deprecates a positional ``out`` here."""


def reuse(block: Block) -> None:
    """Give the ufuncs of a bound block a dying operand to write to, where its shape and type are the result's."""
    for step, dying in dying_operands(block):
        if dying and step.call is not None and isinstance(step.call.function, np.ufunc) and _takes_out(step):
            step.inputs = [*step.inputs, step.inputs[dying[0]]]


def _takes_out(step: Step) -> bool:
    assert step.call is not None
    function = step.call.function
    return function not in _TWO_POSITIONS_ONLY and function.nin == len(step.inputs) and not step.call.attributes
