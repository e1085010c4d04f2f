"""Sequences of tensors, which are lists that no step changes in place."""

from __future__ import annotations

from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word


@word("SequenceConstruct")
def construct(op: Op) -> str:
    """``[a, b]``."""
    return f"[{', '.join(op.operands())}]"


@word("SequenceEmpty")
def empty(op: Op) -> str:
    """``[]``, of whatever type."""
    op.attribute("dtype")
    return "[]"


@word("SequenceAt")
def at(op: Op) -> str | None:
    """``parts[2]``; below 0 from the end."""
    position = _position(op, 1)
    return None if position is None else f"{op[0]}[{position}]"


@word("SequenceInsert")
def insert(op: Op) -> str | None:
    """``[*parts, x]``."""
    if not op.has(2):
        return f"[*{op[0]}, {op[1]}]"
    position = _position(op, 2)
    return None if position is None else f"[*{op[0]}[:{position}], {op[1]}, *{op[0]}[{position}:]]"


@word("SequenceErase")
def erase(op: Op) -> str | None:
    """All but one of them, which is the last unless it is said."""
    if not op.has(1):
        return f"{op[0]}[:-1]"
    position = _position(op, 1)
    if position is None or not position.lstrip("-").isdecimal():
        return None
    behind = f", *{op[0]}[{int(position) + 1}:]" if position != "-1" else ""
    return f"[*{op[0]}[:{position}]{behind}]"


@word("SplitToSequence")
def split(op: Op) -> str | None:
    """In parts of one size, or of given sizes."""
    axis = op.axis(op.attribute("axis"), op.rank(0))
    if not op.has(1):
        parts = f"{op[0]}.split(1, dim={axis})" if op.attribute("keepdims") else f"{op[0]}.unbind({axis})"
        return f"list({parts})"
    op.attribute("keepdims")
    sizes, shape = op.sizes(1), op.shape(0)
    if sizes is None or (sizes.rank == 0 and (shape is None or shape[op.attribute("axis")] == 0)):
        return None
    return f"list({op[0]}.split({sizes}, dim={axis}))"


@word("ConcatFromSequence")
def concat(op: Op) -> str:
    """Along an axis, or a new one."""
    joined = "stack" if op.attribute("new_axis") else "cat"
    return f"torch.{joined}({op[0]}, dim={op.attribute('axis')})"


def _position(op: Op, operand: int) -> str | None:
    sizes = op.sizes(operand)
    return sizes.items[0] if sizes is not None and sizes.items is not None and len(sizes.items) == 1 else None


@word("OptionalHasElement")
def has_element(op: Op) -> str | None:
    """Whether it is not ``None``."""
    device = op.writer.device()
    return f"torch.tensor({op[0] if op.has(0) else None} is not None{f', device={device}' if device else ''})"


@word("Optional")
def optional(op: Op) -> str | None:
    """What it holds, or ``None``."""
    op.attribute("type")
    return op[0] if op.has(0) else "None"
