"""Operators that make tensors of sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from entrepot.importers.torch.dtypes import FLOATS, NAMES
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word


def _made(op: Op, dtype: object) -> str:
    """The type and the device of what is made."""
    name = op.dtype_text(dtype)  # type: ignore[arg-type]
    return "".join(f", {key}={text}" for key, text in (("dtype", name), ("device", op.writer.device())) if text)


@word("Range")
def range_(op: Op) -> str | None:
    """``torch.arange``."""
    if op.made is None:
        return None
    given = [_whole(op.one(at)) for at in (0, 1, 2)]
    if not _is_forward(op, given):
        return f"{op.writer.helper('spaced')}({', '.join(given)}{_made(op, op.made)})"
    if given[2] in ("1", "1.0"):
        given.pop()
        if _is_literal(given[0]) and float(given[0]) == 0:
            given.pop(0)
    return f"torch.arange({', '.join(given)}{_made(op, op.made)})"


def _is_forward(op: Op, given: Sequence[str]) -> bool:
    """Whether it is plain that the end is not before the start, which torch refuses and ONNX does not."""
    start, end, step = given
    if not (_is_literal(start) and _is_literal(step) and float(step) != 0):
        return False
    if _is_literal(end):
        return (float(end) - float(start)) * float(step) >= 0
    sizes = op.sizes(1)
    natural = op.is_natural(1) or (sizes is not None and sizes.natural)
    return float(start) == 0 and float(step) > 0 and natural


def _whole(text: str) -> str:
    """A size that was made a float, as it was, which captures follow better."""
    found = re.fullmatch(r"float\((\w+)\)", text)
    return text if found is None else found[1]


def _is_literal(text: str) -> bool:
    return text.replace(".", "", 1).lstrip("-").isdigit()


@word("ConstantOfShape")
def constant_of_shape(op: Op) -> str | None:
    """``torch.full``."""
    shape = op.sizes(0)
    value = op.attribute("value")
    if shape is None or op.made is None or op.made not in NAMES:
        return None
    number = "0.0" if value is None else op.literal(np.asarray(value))
    if number is None:
        return None
    if number in ("0.0", "0"):
        return f"torch.zeros({shape}{_made(op, op.made)})"
    return f"torch.full({shape}, {number}{_made(op, op.made)})"


@word("Shape")
def shape(op: Op) -> str | None:
    """Where the sizes are wanted as a tensor."""
    start, end = op.attribute("start") or 0, op.attribute("end")
    text = f"{op[0]}.shape" + (f"[{start or ''}:{'' if end is None else end}]" if start or end is not None else "")
    counted = len(range(op.rank(0) or 0)[start:end])  # torch makes floats of no numbers
    told = _made(op, op.made or 7)
    return f"torch.tensor({text}{told.removeprefix(', dtype=torch.int64') if counted else told})"


@word("Size")
def size(op: Op) -> str | None:
    """How many elements there are, as a tensor."""
    return f"torch.tensor({op[0]}.numel(){_made(op, op.made or 7)})"


@word("OneHot")
def one_hot(op: Op) -> str | None:
    """1 at an index, 0 elsewhere."""
    depth, axis, values = op.sizes(1), op.attribute("axis"), op.value(2)
    known = None if values is None or values.constant is None else values.constant.reshape(-1).tolist()
    if depth is None or depth.items is None or axis != -1 or known is None or op.made is None:
        return None
    if known != [0, 1] or op.made not in FLOATS:
        return None
    places = f"{op[0]}.unsqueeze(-1) == torch.arange({depth.items[0]}, device={op[0]}.device)"
    return f"({places}).to({op.dtype_text(op.made)})" if op.writer.is_natural(op.value(0)) else None


@word("EyeLike")
def eye_like(op: Op) -> str | None:
    """Ones on the diagonal."""
    if op.attribute("k") or op.made is None:
        return None
    return f"torch.eye(*{op[0]}.shape{_made(op, op.made)})"
