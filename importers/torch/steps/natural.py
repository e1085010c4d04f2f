"""Which integers are never below 0: what is counted, or where something was found; and which may well be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.runtime.planning.plan import Block, Step, Value

Known = Callable[[int], bool]
"""Whether an operand is known to have nothing below 0."""

_UNSIGNED = (ir.DataType.BOOL, ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32)
"""Types without a sign whose numbers are the same in int64."""

_COUNTS = {
    "ArgMax": (0,),
    "ArgMin": (0,),
    "NonZero": (0,),
    "Shape": (0,),
    "Size": (0,),
    "TopK": (1,),
    "Unique": (1, 2, 3),
}
_OF_ALL = ("Add", "Concat", "Div", "Min", "Mul", "Sum")
_OF_FIRST = """
Cast Compress Expand Flatten Gather GatherElements GatherND Identity Reshape ReverseSequence Slice Split Squeeze Tile
Transpose Trilu Unsqueeze
""".split()  # noqa: SIM905 - a list of words


def natural(block: Block) -> frozenset[Value]:
    """The int64 values that a block makes, and the blocks within it, of which no element is ever below 0.

    Sums and products count: no memory has so many elements that an index of one would overflow.
    """
    found: set[Value] = set()
    _follow(block, found)
    return frozenset(found)


def _follow(block: Block, found: set[Value]) -> None:
    for step in block.steps:
        for inner in step.blocks.values():
            _follow(inner, found)
        if step.domain == "":
            found.update(out for at, out in enumerate(step.outputs) if out is not None and _is_natural(step, at, found))


def _is_natural(step: Step, output: int, found: set[Value]) -> bool:
    def known(at: int) -> bool:
        value = step.inputs[at] if at < len(step.inputs) else None
        return value is not None and (value in found or is_stated(value))

    if step.op_type in _COUNTS:
        return output in _COUNTS[step.op_type]
    made = step.outputs[output]
    if made is None or made.type is None or made.type.dtype != ir.DataType.INT64:
        return False
    everything = range(len(step.inputs))
    if step.op_type in _OF_FIRST:
        return known(0)
    if step.op_type in _OF_ALL:
        return all(map(known, everything))
    rule = _RULES.get(step.op_type)
    return rule is not None and rule(step, known)


def cut(block: Block) -> frozenset[Value]:
    """The integers that a block, or one within it, makes of floats by leaving out what is behind the point."""
    found: set[Value] = set()
    _follow_cut(block, found)
    return frozenset(found)


def _follow_cut(block: Block, found: set[Value]) -> None:
    for step in block.steps:
        for inner in step.blocks.values():
            _follow_cut(inner, found)
        given, made = step.inputs[0] if step.inputs else None, step.outputs[0]
        if step.domain or step.op_type not in _OF_FIRST or made is None or _is_float(made):
            continue
        if given in found or (step.op_type == "Cast" and _is_float(given)):
            found.add(made)


def _is_float(value: Value | None) -> bool:
    return value is not None and value.type is not None and value.type.dtype in FLOATS


def is_stated(value: Value) -> bool:
    """Whether a constant, or a type without a sign, says that nothing is below 0."""
    if isinstance(value.constant, np.ndarray):
        return value.constant.dtype.kind in "biu" and bool((value.constant >= 0).all())
    return value.type is not None and value.type.dtype in _UNSIGNED


def _remainder(step: Step, known: Known) -> bool:
    """It has the divisor's sign, or the dividend's if ``fmod`` is set."""
    return known(0 if step.attributes.get("fmod") else 1)


_RULES: dict[str, Callable[[Step, Known], bool]] = {
    "Clip": lambda step, known: known(1),
    "Max": lambda step, known: any(map(known, range(len(step.inputs)))),
    "Mod": _remainder,
    "Range": lambda step, known: known(0) and known(2),
    "Where": lambda step, known: known(1) and known(2),
}
