"""Images in other sizes: which rows and columns a new one is made of, and in what proportion."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.kernels import KERNELS
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import arange, int64, scalar, transposed, vector
from entrepot.exporters.tensorflow.table import translates


@translates("ResizeNearestNeighbor")
def nearest(node: Node, build: Builder, x: Any, size: Any) -> Any:
    """The row and the column that are closest."""
    for at, axis in enumerate((1, 2)):
        grid = _Grid(node, build, x, size, at)
        if node["half_pixel_centers"]:
            place = build.op("Floor", grid.centres())
        elif node["align_corners"]:
            place = build.op("Floor", build.op("Add", grid.plain(), 0.5))
        else:
            place = build.op("Floor", grid.plain())
        x = build.op("Gather", x, grid.bounded(build.cast(place, np.int64)), axis=axis)
    return x


@translates("ResizeBilinear")
def bilinear(node: Node, build: Builder, x: Any, size: Any) -> Any:
    """The two nearest of each, columns first, as TensorFlow rounds them."""
    image = build.cast(x, np.float32)
    for at, axis in ((1, 2), (0, 1)):
        grid = _Grid(node, build, x, size, at)
        place = grid.places()
        below = build.op("Floor", place)
        share = grid.across(build.op("Sub", place, below))
        low, high = (
            build.op("Gather", image, grid.bounded(build.cast(each, np.int64)), axis=axis)
            for each in (below, build.op("Ceil", place))
        )
        image = build.op("Add", low, build.op("Mul", build.op("Sub", high, low), share))
    return image


@translates("ResizeBicubic")
def bicubic(node: Node, build: Builder, x: Any, size: Any) -> Any:
    """Four of each, with weights that TensorFlow reads from a table of 1024 steps."""
    image = build.cast(x, np.float32)
    keys = node["half_pixel_centers"]
    for at, axis in ((1, 2), (0, 1)):
        grid = _Grid(node, build, x, size, at)
        place = grid.places()
        below = build.op("Floor", place)
        share = build.op("Div", build.op("Round", build.op("Mul", build.op("Sub", place, below), 1024.0)), 1024.0)
        whole, index = _cubic(build, share, -0.5 if keys else -0.75), build.cast(below, np.int64)
        spots = [build.op("Add", index, offset) for offset in (-1, 0, 1, 2)]
        if keys:
            inside = [build.op("Equal", spot, grid.bounded(spot)) for spot in spots]
            whole = [build.op("Where", here, weight, 0.0) for here, weight in zip(inside, whole, strict=True)]
            total = build.op("Sum", *whole)
            whole = [build.op("Div", weight, total) for weight in whole]
        terms = [
            build.op("Mul", build.op("Gather", image, grid.bounded(spot), axis=axis), grid.across(weight))
            for spot, weight in zip(spots, whole, strict=True)
        ]
        image = build.op("Sum", *terms)
    return image


def _cubic(build: Builder, share: Any, a: float) -> list[Any]:
    """The weights of the four neighbours of a place between the second and the third."""

    def near(x: Any) -> Any:
        inner = build.op("Sub", build.op("Mul", x, a + 2), a + 3)
        return build.op("Add", build.op("Mul", build.op("Mul", inner, x), x), 1.0)

    def far(x: Any) -> Any:
        x = build.op("Add", x, 1.0)
        inner = build.op("Mul", build.op("Sub", build.op("Mul", x, a), 5 * a), x)
        return build.op("Sub", build.op("Mul", build.op("Add", inner, 8 * a), x), 4 * a)

    rest = build.op("Sub", 1.0, share)
    return [far(share), near(share), near(rest), far(rest)]


@translates("ResizeArea")
def area(node: Node, build: Builder, x: Any, size: Any) -> Any:
    """The mean of what a new element covers."""
    weights = []
    for at in (0, 1):
        grid = _Grid(node, build, x, size, at)
        start = build.op("Unsqueeze", grid.plain(), [1])
        end = build.op("Mul", build.op("Add", build.op("Unsqueeze", grid.steps, [1]), 1.0), grid.scale)
        index = arange(build, grid.old)
        own = build.cast(index, np.float32)
        last = build.op("Equal", index, build.op("Sub", grid.old, 1))
        top = build.op("Where", last, float(np.inf), build.op("Add", own, 1.0))
        share = build.op("Sub", build.op("Min", end, top), build.op("Max", start, own))
        weights.append(build.op("Div", build.op("Max", share, 0.0), build.op("Sub", end, start)))
    return _weighted(build, build.cast(x, np.float32), *weights)


@translates("ScaleAndTranslate")
def scale_and_translate(node: Node, build: Builder, x: Any, size: Any, scale: Any, translation: Any) -> Any:
    """Any kernel, with or without smoothing, as a matrix for each axis."""
    kernel, radius = KERNELS[node["kernel_type"]]
    weights = []
    for at in (0, 1):
        old = build.size(x, at + 1)
        new = scalar(build, vector(build, build.op("Gather", size, at)))
        factor, moved = (build.op("Gather", each, at) for each in (scale, translation))
        inverse = build.op("Reciprocal", factor)
        width = build.op("Max", inverse, 1.0) if node["antialias"] else build.constant(np.float32(1))
        centre = build.op("Add", build.cast(arange(build, new), np.float32), 0.5)
        place = build.op("Sub", build.op("Mul", centre, inverse), build.op("Mul", moved, inverse))
        place = build.op("Unsqueeze", place, [1])
        own = build.op("Add", build.cast(arange(build, old), np.float32), 0.5)
        distance = build.op("Abs", build.op("Div", build.op("Sub", own, place), width))
        inside = build.op("LessOrEqual", distance, radius)
        weight = build.op("Where", inside, kernel(build, distance), 0.0)
        total = build.op("ReduceSum", weight, [1])
        weight = build.op("Div", weight, build.op("Where", build.op("Equal", total, 0.0), 1.0, total))
        room = build.cast(old, np.float32)
        within = build.op("And", build.op("GreaterOrEqual", place, 0.0), build.op("LessOrEqual", place, room))
        weights.append(build.op("Where", within, weight, 0.0))
    return _weighted(build, build.cast(x, np.float32), *weights)


def _weighted(build: Builder, x: Any, rows: Any, columns: Any) -> Any:
    """Rows and columns combined, by two products of matrices."""
    image = build.op("MatMul", rows, build.op("Transpose", x, perm=[0, 3, 1, 2]))
    result = build.op("MatMul", image, build.op("Transpose", columns, perm=[1, 0]))
    return transposed(build, result, [0, 2, 3, 1])


class _Grid:
    """Where the elements of a resized axis are in the old one, in float32 as TensorFlow computes it."""

    def __init__(self, node: Node, build: Builder, x: Any, size: Any, at: int) -> None:
        self._build, self._half, self._rank, self._axis = build, node.get("half_pixel_centers", False), 4, at + 1
        self.old = build.size(x, at + 1)
        new = scalar(build, vector(build, build.op("Gather", int64(build, size), at)))
        self.steps = build.cast(arange(build, new), np.float32)
        old, wide = build.cast(self.old, np.float32), build.cast(new, np.float32)
        self.scale = build.op("Div", old, wide)
        if node["align_corners"]:
            gaps = build.op("Div", build.op("Sub", old, 1.0), build.op("Max", build.op("Sub", wide, 1.0), 1.0))
            self.scale = build.op("Where", build.op("Greater", new, 1), gaps, self.scale)

    def plain(self) -> Any:
        """Corners on corners."""
        return self._build.op("Mul", self.steps, self.scale)

    def centres(self) -> Any:
        """The middle of each element, counted from the edge."""
        return self._build.op("Mul", self._build.op("Add", self.steps, 0.5), self.scale)

    def places(self) -> Any:
        """Where values are taken from."""
        return self._build.op("Sub", self.centres(), 0.5) if self._half else self.plain()

    def bounded(self, index: Any) -> Any:
        """An index, inside the axis."""
        last = self._build.op("Sub", self.old, 1)
        return self._build.op("Max", self._build.op("Min", index, last), 0)

    def across(self, weights: Any) -> Any:
        """Weights along the axis of an image."""
        shape = [1] * self._rank
        shape[self._axis] = -1
        return self._build.op("Reshape", weights, shape)
