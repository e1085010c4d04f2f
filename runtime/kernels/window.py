"""The sliding window that convolutions and pools share: pads, strides, dilations and the sizes they lead to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from entrepot.ir.errors import InputError
from entrepot.runtime.room import claim


@dataclass(frozen=True)
class Window:
    """A window of ``kernel`` points that slides over ``source`` in every spatial axis.

    Attributes:
        source: Spatial sizes of the input.
        kernel: Points of the window.
        strides: Steps of the window.
        dilations: Distance of the window's points.
        begin: Padding before each axis.
        end: Padding after each axis.
        target: Spatial sizes of the output.
    """

    source: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def points(self) -> int:
        """Points of the window."""
        return math.prod(self.kernel)

    @property
    def extents(self) -> tuple[int, ...]:
        """What the window spans in each axis, dilation included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    @property
    def padded(self) -> tuple[int, ...]:
        """What the windows reach: the padded sizes, or more where the last window was rounded up."""
        return tuple(
            max(size + b + e, (out - 1) * stride + extent)
            for size, b, e, out, stride, extent in zip(
                self.source, self.begin, self.end, self.target, self.strides, self.extents, strict=True
            )
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether every output point reads the one input point at its place."""
        return self.points == 1 and not any(self.begin) and not any(self.end) and set(self.strides) <= {1}


def window(
    source: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """The window over spatial sizes ``source``, with ONNX's defaults and automatic padding.

    Raises:
        InputError: An attribute does not fit the rank, is negative, or the window exceeds the padded input.
    """
    rank = len(source)
    strides = fitted("strides", strides, rank)
    dilations = fitted("dilations", dilations, rank)
    if len(kernel) != rank:
        raise InputError(f"a window of {len(kernel)} axes cannot slide over {rank} spatial axes")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        begin, end = _same(source, extents, strides, upper=auto_pad == "SAME_UPPER")
    elif auto_pad in ("NOTSET", "VALID"):
        pads = (0,) * (2 * rank) if pads is None or auto_pad == "VALID" else tuple(pads)
        if len(pads) != 2 * rank or any(pad < 0 for pad in pads):
            raise InputError(f"pads must be {2 * rank} numbers, none negative, not {list(pads)}")
        begin, end = pads[:rank], pads[rank:]
    else:
        raise InputError(f"there is no auto_pad {auto_pad!r}")
    sizes = zip(source, extents, strides, begin, end, strict=True)
    target = tuple(_positions(*axis, ceil_mode) for axis in sizes)
    return _within(Window(tuple(source), tuple(kernel), strides, dilations, begin, end, target))


def transposed_window(
    source: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> Window:
    """The window of the convolution that this one transposes: it slides over the output and ends at the input.

    Raises:
        InputError: The attributes contradict each other.
    """
    rank = len(source)
    strides = fitted("strides", strides, rank)
    dilations = fitted("dilations", dilations, rank)
    extra = tuple(output_padding or (0,) * rank)
    given = tuple(pads) if pads and auto_pad == "NOTSET" else (0,) * (2 * rank)
    if not len(extra) == len(kernel) == rank == len(given) // 2 or len(output_shape or given[:rank]) != rank:
        raise InputError(f"an attribute of ConvTranspose does not fit {rank} spatial axes")
    reach = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(source, strides, kernel, dilations, extra, strict=True)
    ]
    begin, end = given[:rank], given[rank:]
    target = [full - b - e for full, b, e in zip(reach, begin, end, strict=True)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") or output_shape:
        same = [n * s for n, s in zip(source, strides, strict=True)]
        target = list(output_shape) if output_shape else same
        totals = [full - size for full, size in zip(reach, target, strict=True)]
        begin, end = _halved(totals, upper=auto_pad == "SAME_UPPER")
    if min(target, default=1) < 1:
        raise InputError(f"ConvTranspose of spatial sizes {list(source)} would have output sizes {target}")
    return _within(Window(tuple(target), tuple(kernel), strides, dilations, begin, end, tuple(source)))


def _within(win: Window) -> Window:
    for sizes in (win.kernel, win.target, win.padded):
        claim(sizes)
    return win


def fitted(name: str, values: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """An attribute with one number for each spatial axis, 1 where it is left out.

    Raises:
        InputError: It does not fit the rank, or is not positive.
    """
    if not values:
        return (1,) * rank
    if len(values) != rank or min(values) < 1:
        raise InputError(f"{name} must be {rank} positive numbers, not {list(values)}")
    return tuple(values)


def _same(
    source: Sequence[int], extents: Sequence[int], strides: Sequence[int], *, upper: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding that gives ceil(size / stride) outputs."""
    totals = [
        max((-(-size // stride) - 1) * stride + extent - size, 0)
        for size, extent, stride in zip(source, extents, strides, strict=True)
    ]
    return _halved(totals, upper=upper)


def _halved(totals: Sequence[int], *, upper: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What goes before and after each axis; the odd point goes to the end when ``upper``."""
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    return (less, more) if upper else (more, less)


def _positions(size: int, extent: int, stride: int, begin: int, end: int, ceil_mode: int) -> int:
    free = size + begin + end - extent
    if free < 0 and not (ceil_mode and free > -stride):
        raise InputError(f"a window of extent {extent} exceeds an axis of {size} padded by {begin} and {end}")
    if not ceil_mode:
        return free // stride + 1
    count = -(-free // stride) + 1
    # a window that would start in the end padding is dropped
    return count - 1 if (count - 1) * stride >= size + begin else count
