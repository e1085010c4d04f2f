"""Results written over operands that are no longer needed: ``add(a, b, a)`` instead of new memory for every step."""

from __future__ import annotations

from collections import Counter

import numpy as np

from entrepot.runtime.plan import FUSED, Block, Step, Value

_TWO_POSITIONS_ONLY = (np.maximum, np.minimum)
"""NumPy deprecates a positional ``out`` here."""


def reuse(block: Block) -> None:
    """Give the ufuncs of a bound block a dying operand to write to, where its shape and type are the result's."""
    reads = Counter(value for step in block.steps for value in step.uses())
    reads.update(value for value in block.outputs if value is not None)
    fresh = {step.outputs[0] for step in block.steps if len(step.outputs) == 1 and _is_fresh(step)}
    for step in block.steps:
        for inner in step.blocks.values():
            reuse(inner)
        if step.call is not None and isinstance(step.call.function, np.ufunc) and _takes_out(step):
            operands = (value for value in step.inputs if value is not None and value in fresh and reads[value] == 1)
            target = next((value for value in operands if _alike(value, step.outputs[0])), None)
            if target is not None:
                step.inputs = [*step.inputs, target]


def _is_fresh(step: Step) -> bool:
    return step.domain == FUSED or step.traits.fresh


def _takes_out(step: Step) -> bool:
    assert step.call is not None
    function = step.call.function
    return function not in _TWO_POSITIONS_ONLY and function.nin == len(step.inputs) and not step.call.attributes


def _alike(value: Value | None, result: Value | None) -> bool:
    """Whether an operand certainly has the result's type and shape, and is not 0-d, which NumPy turns into a scalar."""
    known, wanted = (None if each is None else each.type for each in (value, result))
    if known is None or wanted is None or known.shape is None or known.numpy is None or known.numpy.kind != "f":
        return False
    return bool(known.shape) and None not in known.shape and (known.dtype, known.shape) == (wanted.dtype, wanted.shape)
