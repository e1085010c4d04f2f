"""Images sampled at places that are computed: crops, and projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.terms import Term, choose
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import arange, int64, scalar, vector
from entrepot.exporters.tensorflow.table import translates


@translates("CropAndResize")
def crop_and_resize(node: Node, build: Builder, image: Any, boxes: Any, batch: Any, size: Any) -> Any:
    """Boxes of images in one size; a value of its own beyond the edges."""
    wide = build.cast(image, np.float32)
    corners = [Term(build, each) for each in build.op("Split", boxes, outputs=4, axis=1, num_outputs=4)]
    places, limits = [], []
    for at in (0, 1):
        last = Term(build, build.cast(build.op("Sub", build.size(image, at + 1), 1), np.float32))
        new = scalar(build, vector(build, build.op("Gather", int64(build, size), at)))
        step = Term(build, build.op("Unsqueeze", build.cast(arange(build, new), np.float32), [0]))
        gaps = Term(build, build.cast(build.op("Sub", new, 1), np.float32))
        low, high = corners[at], corners[at + 2]
        spread = low * last + step * ((high - low) * last / gaps.at_least(1.0))
        middle = 0.5 * (low + high) * last + step * 0.0
        places.append(choose(gaps > 0, spread, middle))
        limits.append(last)
    y, x = places[0].op("Unsqueeze", [2]), places[1].op("Unsqueeze", [1])
    inside = (y >= 0) & (y <= limits[0]) & (x >= 0) & (x <= limits[1])
    member = build.op("Unsqueeze", int64(build, batch), [1, 2])
    picture = _Picture(build, wide, member, limits)
    if node["method"] == "nearest":
        value = picture.at(_half_up(y), _half_up(x))
    else:
        value = picture.between(y, x, ceiling=True)
    return choose(inside.op("Unsqueeze", [-1]), value, node["extrapolation_value"]).value


@translates("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective(node: Node, build: Builder, image: Any, transforms: Any, size: Any, fill: Any = None) -> Any:
    """Each element from where eight numbers say."""
    wide = build.cast(image, np.float32)
    numbers = [
        Term(build, build.op("Unsqueeze", each, [2]))
        for each in build.op("Split", transforms, outputs=8, axis=1, num_outputs=8)
    ]
    rows, columns = (
        Term(build, build.cast(arange(build, scalar(build, vector(build, build.op("Gather", size, at)))), np.float32))
        for at in (0, 1)
    )
    y, x = rows.op("Reshape", [1, -1, 1]), columns.op("Reshape", [1, 1, -1])
    below = numbers[6] * x + numbers[7] * y + 1
    safe = choose(below == 0, 1.0, below)
    across = (numbers[0] * x + numbers[1] * y + numbers[2]) / safe
    down = (numbers[3] * x + numbers[4] * y + numbers[5]) / safe
    counts = [Term(build, build.cast(build.size(image, axis), np.float32)) for axis in (1, 2)]
    mode = node.get("fill_mode", "CONSTANT").upper()
    down, across = (_mapped(each, count, mode) for each, count in zip((down, across), counts, strict=True))
    members = build.op("Unsqueeze", arange(build, build.size(image, 0)), [1, 2])
    outside = 0.0 if fill is None else Term(build, build.cast(fill, np.float32))
    picture = _Picture(build, wide, members, [count - 1 for count in counts], outside)
    if node["interpolation"].upper() == "NEAREST":
        value = picture.at(_half_away(down), _half_away(across))
    else:
        value = picture.between(down, across, ceiling=False)
    result = choose((below == 0).op("Unsqueeze", [-1]), outside, value).value
    return build.cast(result, image.dtype)


def _half_up(x: Term) -> Term:
    return (x + 0.5).floor()


def _half_away(x: Term) -> Term:
    return choose(x < 0, -((-x + 0.5).floor()), (x + 0.5).floor())


def _mapped(x: Term, count: Term, mode: str) -> Term:
    """A place outside of an axis as one inside."""
    if mode == "CONSTANT":
        return x
    last = count - 1
    if mode == "REFLECT":
        twice = count * 2
        x = x - twice * (x / twice).floor()
        x = choose(x >= count, twice - x - 1, x)
    elif mode == "WRAP":
        gaps = last.at_least(1.0)
        left = x + count * ((-x / gaps).floor() + 1)
        right = x - count * (x / gaps).floor()
        x = choose(x < 0, left, choose(x > last, right, x))
    return x.at_least(0.0).at_most(last)


class _Picture:
    """Images whose elements are looked up, with a value around them."""

    def __init__(self, build: Builder, image: Any, member: Any, last: list[Term], outside: Any = None) -> None:
        self._build, self._image, self._member, self._last, self._outside = build, image, member, last, outside

    def at(self, y: Term, x: Term) -> Term:
        """The elements at whole numbers."""
        build = self._build
        bounded = [each.at_least(0.0).at_most(last) for each, last in zip((y, x), self._last, strict=True)]
        parts = [self._member, *(build.cast(each.value, np.int64) for each in bounded)]
        shape = build.op("Shape", build.op("Add", build.op("Add", parts[0], parts[1]), parts[2]))
        spots = [build.op("Unsqueeze", build.op("Expand", each, shape), [-1]) for each in parts]
        found = Term(build, build.op("GatherND", self._image, build.op("Concat", *spots, axis=-1)))
        if self._outside is None:
            return found
        inside = (y >= 0) & (y <= self._last[0]) & (x >= 0) & (x <= self._last[1])
        return choose(inside.op("Unsqueeze", [-1]), found, self._outside)

    def between(self, y: Term, x: Term, *, ceiling: bool) -> Term:
        """Values between four elements."""
        top, left = y.floor(), x.floor()
        down, right = (y - top).op("Unsqueeze", [-1]), (x - left).op("Unsqueeze", [-1])
        bottom, beside = (y.op("Ceil"), x.op("Ceil")) if ceiling else (top + 1, left + 1)
        upper = self.at(top, left), self.at(top, beside)
        lower = self.at(bottom, left), self.at(bottom, beside)
        if ceiling:
            one, two = (pair[0] + (pair[1] - pair[0]) * right for pair in (upper, lower))
            return one + (two - one) * down
        one, two = ((1 - right) * pair[0] + right * pair[1] for pair in (upper, lower))
        return (1 - down) * one + down * two
