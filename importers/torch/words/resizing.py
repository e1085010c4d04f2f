"""Resize, where it is what ``F.interpolate`` does."""

from __future__ import annotations

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word
from entrepot.importers.torch.text.sizes import Sizes
from entrepot.runtime.kernels.axes import counted

_MODES = {3: {"linear": "linear"}, 4: {"linear": "bilinear", "cubic": "bicubic"}, 5: {"linear": "trilinear"}}


@word("Resize")
def resize(op: Op) -> str | None:
    """``F.interpolate`` of the axes after the first two."""
    rank = op.rank(0)
    sampling = None if rank not in _MODES else _sampling(op, rank or 0)
    extent = None if sampling is None else _extent(op, rank or 0)
    if extent is None or op.made not in FLOATS or op.attribute("keep_aspect_ratio_policy") != "stretch":
        return None
    return f"F.interpolate({op[0]}, {extent}, {sampling})"


def _sampling(op: Op, rank: int) -> str | None:
    """Mode and alignment; ``None`` for one that torch lacks."""
    mode, where = op.attribute("mode"), op.attribute("coordinate_transformation_mode")
    nearest, cubic = op.attribute("nearest_mode"), op.attribute("cubic_coeff_a")  # each matters to one mode alone
    if op.attribute("antialias") or op.attribute("exclude_outside") or (op.has(1) and where == "tf_crop_and_resize"):
        return None
    if mode == "nearest":
        return 'mode="nearest"' if where == "asymmetric" and nearest == "floor" else None
    if mode not in _MODES[rank] or (mode == "cubic" and cubic != -0.75):
        return None
    if where == "align_corners":
        return f'mode="{_MODES[rank][mode]}", align_corners=True'
    return f'mode="{_MODES[rank][mode]}"' if where == "half_pixel" or _never_one(op, rank) else None


def _never_one(op: Op, rank: int) -> bool:
    """Whether ONNX's torch-like half pixels, which differ from torch's where one pixel is left, are the same."""
    if op.attribute("coordinate_transformation_mode") != "pytorch_half_pixel":
        return False
    known = (op.out_shape or ())[2:]
    if len(known) == rank - 2 and all(isinstance(size, int) and size > 1 for size in known):
        return True
    scales = None if op.value(2) is None else op.value(2).constant  # type: ignore[union-attr]
    return scales is not None and scales.size == rank and bool((scales[2:] >= 2).all())


def _extent(op: Op, rank: int) -> str | None:
    """The sizes or the factors of the axes after the first two."""
    op.see(1)
    axes = op.attribute("axes")
    places = list(range(rank)) if axes is None else [counted(axis, rank) for axis in axes]
    given = op.sizes(3) if op.has(3) else op.sizes(2)
    if given is None or given.items is None or len(given.items) != len(places):
        return None
    found = dict(zip(places, given.items, strict=True))
    if not set(range(2, rank)) <= set(places) or not all(_is_kept(op, at, found, given) for at in (0, 1)):
        return None
    sizes = ", ".join(found[at] for at in range(2, rank))
    text = f"({sizes},)" if rank == 3 else f"({sizes})"
    return f"size={text}" if op.has(3) else f"scale_factor={text}"


def _is_kept(op: Op, axis: int, found: dict[int, str], given: Sizes) -> bool:
    if axis not in found:
        return True
    if not op.has(3):
        return found[axis] in ("1.0", "1")
    return found[axis] == op.writer.dimensions.size(op.value(0), axis)
