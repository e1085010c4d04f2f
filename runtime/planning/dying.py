"""Operands that nothing reads after a step, and whose memory its result may take."""

from __future__ import annotations

from collections.abc import Iterator

from entrepot.runtime.planning.plan import FUSED, Block, Step, Value


def dying_operands(block: Block) -> Iterator[tuple[Step, list[int]]]:
    """Per bound step, positions of its inputs that die there, are memory of their own, and are like its one result.

    Those of the blocks within come first.
    """
    readers: dict[Value, list[Step]] = {}
    for step in block.steps:
        for value in step.uses():
            readers.setdefault(value, []).append(step)
    fresh = {step.outputs[0] for step in block.steps if len(step.outputs) == 1 and _is_fresh(step)}
    mortal = fresh.difference(block.outputs)
    for step in block.steps:
        for inner in step.blocks.values():
            yield from dying_operands(inner)
        if step.call is not None and len(step.outputs) == 1:
            yield (
                step,
                [
                    position
                    for position, value in enumerate(step.inputs)
                    if value is not None
                    and value in mortal
                    and _is_last(step, readers[value])
                    and _alike(value, step.outputs[0])
                ],
            )


def _is_fresh(step: Step) -> bool:
    return step.domain == FUSED or step.traits.fresh


def _is_last(step: Step, readers: list[Step]) -> bool:
    """Whether a step is the last to read a value, once, and those before it kept no view of it."""
    return readers[-1] is step and all(other is not step and _is_fresh(other) for other in readers[:-1])


def _alike(value: Value | None, result: Value | None) -> bool:
    """Whether an operand certainly has the result's type and shape, and is not 0-d, which NumPy turns into a scalar."""
    known, wanted = (None if each is None else each.type for each in (value, result))
    if known is None or wanted is None or known.shape is None or known.numpy is None or known.numpy.kind != "f":
        return False
    return bool(known.shape) and None not in known.shape and (known.dtype, known.shape) == (wanted.dtype, wanted.shape)
