"""Operators that move elements, or look at sizes."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word
from entrepot.importers.torch.text.sizes import is_number
from entrepot.runtime.kernels.axes import counted


@word("Reshape")
def reshape(op: Op) -> str | None:
    """``x.reshape(b, -1)``; ONNX writes 0 for "as it was"."""
    shape = op.sizes(1)
    if shape is None:
        return None
    if shape.items is None:  # a 0 is looked for, which a graph that is captured cannot do but in an operator
        return f"{op[0]}.reshape({shape})" if op.attribute("allowzero") else None
    if op.attribute("allowzero") or "0" not in shape.items:
        risky = [item for item in shape.items if not is_number(item)]
        return f"{op[0]}.reshape({shape.arguments or '()'})" if shape.items or risky else f"{op[0]}.reshape(())"
    items = [op.writer.dimensions.size(op.value(0), at) if item == "0" else item for at, item in enumerate(shape.items)]
    return f"{op[0]}.reshape({', '.join(items)})"


@word("Transpose")
def transpose(op: Op) -> str | None:
    """``x.transpose(1, 2)`` for two axes, ``permute`` for more."""
    perm = op.attribute("perm")
    if perm is None:
        rank = op.rank(0)
        if rank is None:
            return f"{op[0]}.permute(*range({op[0]}.ndim)[::-1])"
        perm = range(rank)[::-1]
    perm = list(perm)
    if sorted(perm) != list(range(len(perm))):
        return None
    moved = [at for at, axis in enumerate(perm) if at != axis]
    if len(moved) == 2:
        rank = len(perm)
        first, second = moved
        if second == rank - 1 and rank > 2:
            first, second = first - rank if first == rank - 2 else first, -1
        return f"{op[0]}.transpose({first}, {second})"
    return f"{op[0]}.permute({', '.join(map(str, perm)) or '()'})" if moved else op[0]


@word("Squeeze")
def squeeze(op: Op) -> str | None:
    """Without axes of size 1."""
    if not op.has(1):
        return f"{op[0]}.squeeze()"
    axes = op.ints(1)
    if axes is None:
        return None
    axes = [op.axis(axis, op.rank(0)) for axis in axes]
    return f"{op[0]}.squeeze({axes[0] if len(axes) == 1 else tuple(axes)})" if axes else op[0]


@word("Unsqueeze")
def unsqueeze(op: Op) -> str | None:
    """With axes of size 1."""
    axes = op.ints(1)
    if axes is None:
        return None
    if len(axes) > 1 and min(axes) < 0:
        rank = op.rank(0)
        if rank is None:
            return None
        axes = [axis % (rank + len(axes)) for axis in axes]
    return op[0] + "".join(f".unsqueeze({axis})" for axis in sorted(axes))


@word("Flatten")
def flatten(op: Op) -> str | None:
    """To a matrix."""
    axis, rank = op.attribute("axis"), op.rank(0)
    if rank is None or (axis == 0 and rank == 0):
        return None
    axis = axis + rank if axis < 0 else axis
    if axis == 1 and rank > 1:
        return f"{op[0]}.flatten(1)"
    if axis == 0:
        return f"{op[0]}.reshape(1, -1)"
    sizes = " * ".join(f"{op[0]}.shape[{at}]" for at in range(axis)) or "1"
    return f"{op[0]}.reshape({sizes}, -1)" if axis < rank else f"{op[0]}.reshape(-1, 1)"


@word("Concat")
def concat(op: Op) -> str | None:
    """Along an axis."""
    axis = op.axis(op.attribute("axis"), op.rank(0))
    return op[0] if len(op) == 1 else f"torch.cat([{', '.join(op.operands())}], dim={axis})"


@word("Split")
def split(op: Op) -> str | None:
    """In parts of given sizes, or of one size."""
    axis = op.axis(op.attribute("axis"), op.rank(0))
    count = len(op.step.outputs)
    if op.has(1):
        sizes = op.sizes(1)
        if count == 1:
            return f"{op[0]}.split({sizes}, dim={axis})[0]"
        known = op.ints(1)
        if known is not None and len(set(known)) == 1 and known[0] > 0 and len(known) == count:
            return f"{op[0]}.split({known[0]}, dim={axis})"
        return f"{op[0]}.split({sizes}, dim={axis})"
    shape = op.shape(0)
    size = None if shape is None else shape[op.attribute("axis")]
    parts = op.attribute("num_outputs") or count
    if not isinstance(size, int) or size == 0 or parts != count:
        return None
    chunk = -(-size // parts)
    if size % parts and chunk * (parts - 1) >= size:
        return None
    return op[0] if count == 1 else f"{op[0]}.split({chunk}, dim={axis})"


@word("Expand")
def expand(op: Op) -> str | None:
    """Both shapes broadcast."""
    shape = op.sizes(1)
    known, rank = op.shape(0), op.rank(0)
    if shape is None:
        return None
    number = op.number(0)
    if number is not None and op.made is not None and rank is not None and len(shape.items or ()) >= rank:
        dtype, device = op.dtype_text(op.made), op.writer.device()
        return f"torch.full({shape}, {number}, dtype={dtype}{f', device={device}' if device else ''})"
    if shape.items is None:
        return None
    if known is None or rank is None or len(shape.items) < rank:
        return f"{op[0]}.expand(torch.broadcast_shapes({op[0]}.shape, {shape}))"
    items, ahead = [], len(shape.items) - rank
    for at, item in enumerate(shape.items):
        own = 1 if at < ahead else known[at - ahead]
        if at >= ahead and item == "1":
            items.append("-1")
        elif own == 1 or str(own) == item:
            items.append(item)
        else:
            return f"{op[0]}.expand(torch.broadcast_shapes({op[0]}.shape, {shape}))"
    return f"{op[0]}.expand({', '.join(items)})" if items else op[0]


@word("Tile")
def tile(op: Op) -> str | None:
    """Repeated along every axis."""
    repeats = op.sizes(1)
    return None if repeats is None or not op.rank(0) else f"{op[0]}.repeat({repeats.arguments})"


@word("Trilu")
def trilu(op: Op) -> str | None:
    """The upper or lower triangle."""
    diagonal = op.sizes(1)
    if diagonal is not None and (diagonal.items is None or len(diagonal.items) != 1):
        return None
    given = "" if diagonal is None or diagonal.items == ("0",) else f", {diagonal.arguments}"
    return f"torch.{'triu' if op.attribute('upper') else 'tril'}({op[0]}{given})"


@word("Pad")
def pad(op: Op) -> str | None:
    """Around the last axes."""
    pads, axes, rank = op.sizes(1), op.ints(3), op.rank(0)
    if pads is None or pads.items is None or (op.has(3) and axes is None) or not rank:
        return None
    axes = list(range(rank)) if axes is None else [counted(axis, rank) for axis in axes]
    widths = {axis: (pads.items[at], pads.items[at + len(axes)]) for at, axis in enumerate(axes)}
    first = min((axis for axis, pair in widths.items() if pair != ("0", "0")), default=rank)
    if first == rank:
        return op[0]
    flat = [size for axis in range(rank - 1, first - 1, -1) for size in widths.get(axis, ("0", "0"))]
    if op.attribute("mode") == "constant":
        return _padded_by_a_value(op, flat)
    known = pads.known
    if known is None or min(known) < 0 or rank - first > min(3, rank - 1) or rank > rank - first + 2:
        return None
    flat += ["0"] * (2 * (rank - 2) - len(flat)) if rank > 2 else []
    kinds = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}
    mode = kinds[op.attribute("mode")]
    return f'F.pad({op[0]}, ({", ".join(flat)}), mode="{mode}")' if op.made in _PADDED else None


def _padded_by_a_value(op: Op, widths: list[str]) -> str | None:
    value = op.number(2) if op.has(2) else "0.0"
    if value is None or op.made == ir.DataType.BOOL or not (_plain(value) or value in _INFINITE):
        return None
    is_zero = value not in _INFINITE and float(value) == 0
    return f"F.pad({op[0]}, ({', '.join(widths)}){'' if is_zero else f', value={value}'})"


_INFINITE = ('float("inf")', 'float("-inf")', 'float("nan")')
_PADDED = {ir.DataType.FLOAT, ir.DataType.DOUBLE}


def _plain(value: str) -> bool:
    return value.lstrip("-")[:1].isdigit()


@word("Col2Im")
def col2im(op: Op) -> str | None:
    """``F.fold``, which knows images of two axes."""
    image, block = op.sizes(1), op.ints(2)
    if image is None or image.items is None or block is None or len(block) != 2 or op.rank(0) != 3:
        return None
    pads = op.attribute("pads") or [0] * 4
    if pads[:2] != pads[2:]:
        return None
    given = {"dilation": op.attribute("dilations"), "padding": pads[:2], "stride": op.attribute("strides")}
    usual = {"dilation": 1, "padding": 0, "stride": 1}
    said = [f", {name}={tuple(each)}" for name, each in given.items() if each and {*each} != {usual[name]}]
    return f"F.fold({op[0]}, ({', '.join(image.items)}), {tuple(block)}{''.join(said)})"


@word("DepthToSpace")
def depth_to_space(op: Op) -> str | None:
    """``nn.PixelShuffle`` is ONNX's CRD."""
    return f"F.pixel_shuffle({op[0]}, {op.attribute('blocksize')})" if op.attribute("mode") == "CRD" else None


@word("SpaceToDepth")
def space_to_depth(op: Op) -> str | None:
    """Left to the shared meaning: ``F.pixel_unshuffle`` orders channels another way."""
    return None
