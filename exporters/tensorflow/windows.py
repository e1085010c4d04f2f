"""What convolutions and pooling have in common: layouts, strides, and what lies around an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed
from entrepot.exporters.tensorflow.sizes import along, joined, transposed, vector


@dataclass(frozen=True)
class Layout:
    """Where the axes of images are.

    Attributes:
        rank: How many axes there are.
        last: Whether channels are the last one.
    """

    rank: int
    last: bool

    @classmethod
    def of(cls, node: Node, rank: int) -> Layout:
        """That of a node; refuses channels in fours."""
        name = node.get("data_format", "NHWC")
        if "VECT" in name:
            node.refuse("keeps channels in fours")
        return cls(rank, name.endswith("C"))

    @property
    def channel(self) -> int:
        """The axis of channels."""
        return self.rank - 1 if self.last else 1

    @property
    def spatial(self) -> list[int]:
        """The axes of space."""
        return list(range(1, self.rank - 1)) if self.last else list(range(2, self.rank))

    def first(self, build: Builder, x: Any) -> Any:
        """With channels as the second axis."""
        return transposed(build, x, [0, self.rank - 1, *range(1, self.rank - 1)]) if self.last else x

    def back(self, build: Builder, x: Any) -> Any:
        """As it was given."""
        return transposed(build, x, [0, *range(2, self.rank), 1]) if self.last else x


@dataclass(frozen=True)
class Windows:
    """Windows that move over images.

    Attributes:
        kernel: Their sizes.
        strides: How far they move.
        dilations: How far their elements are apart.
        padding: ``SAME``, ``VALID`` or ``EXPLICIT``.
        explicit: Before and after each axis of space.
        sizes: Of the images, where they are known.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str
    explicit: tuple[tuple[int, int], ...]
    sizes: tuple[int | None, ...]

    @classmethod
    def of(cls, node: Node, layout: Layout, kernel: Sequence[int], image: Sequence[int | None]) -> Windows:
        """Those of a node, whose attributes have an entry for each axis."""
        pick = layout.spatial
        strides, rates = (list(node.get(name) or [1] * layout.rank) for name in ("strides", "dilations"))
        if any(each[axis] != 1 for each in (strides, rates) for axis in (0, layout.channel)):
            node.refuse("moves along the batch or the channels")
        flat = list(node.get("explicit_paddings") or [0] * 2 * layout.rank)
        pairs = tuple((flat[2 * axis], flat[2 * axis + 1]) for axis in pick)
        moved, apart = (tuple(int(each[axis]) for axis in pick) for each in (strides, rates))
        return cls(tuple(kernel), moved, apart, node["padding"], pairs, tuple(image[axis] for axis in pick))

    @property
    def spans(self) -> list[int]:
        """How much of an image each window covers."""
        return [(size - 1) * rate + 1 for size, rate in zip(self.kernel, self.dilations, strict=True)]

    def fixed(self) -> list[tuple[int, int]] | None:
        """What is around the image before and after, for each axis; ``None`` where it depends on an unknown size."""
        if self.padding == "VALID":
            return [(0, 0)] * len(self.kernel)
        if self.padding == "EXPLICIT":
            return list(self.explicit)
        pairs = []
        for size, span, stride in zip(self.sizes, self.spans, self.strides, strict=True):
            if stride == 1:
                total = span - 1
            elif size is None:
                return None
            else:
                total = max((-(-size // stride) - 1) * stride + span - size, 0)
            pairs.append((total // 2, total - total // 2))
        return pairs

    def attributes(self) -> dict[str, Any]:
        """The attributes of an operator of ONNX; without padding where it is not known."""
        pairs = self.fixed()
        given: dict[str, Any] = {"kernel_shape": list(self.kernel), "strides": list(self.strides)}
        if any(rate != 1 for rate in self.dilations):
            given["dilations"] = list(self.dilations)
        if pairs is None and self._plain():
            given["auto_pad"] = "SAME_UPPER"
        elif pairs is not None and any(before or after for before, after in pairs):
            given["pads"] = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
        return given

    def _plain(self) -> bool:
        """Whether onnxruntime (1.31) can tell itself what is around the image."""
        near = all(stride <= span for stride, span in zip(self.strides, self.spans, strict=True))
        return near and all(rate == 1 for rate in self.dilations)

    def open(self) -> bool:
        """Whether what is around the image has to be computed when it runs."""
        return self.fixed() is None and not self._plain()

    def padded(self, build: Builder, x: Any, first: int, value: Any) -> Any:
        """The image with what is around it.

        Args:
            build: Where nodes are written.
            x: The image.
            first: Its first axis of space.
            value: What is around it.
        """
        pairs, count = self.fixed(), len(self.kernel)
        if pairs is not None and not any(before or after for before, after in pairs):
            return x
        sides: list[list[Any]] = [[[0] * first], [[0] * first]]
        for at in range(count):
            for side, each in zip(sides, self._around(build, x, first + at, at, pairs), strict=True):
                side.append(each)
        rest = [0] * (2 - first)
        return computed(build, "Pad", x, joined(build, *sides[0], rest, *sides[1], rest), value, mode="constant")

    def _around(self, build: Builder, x: Any, axis: int, at: int, pairs: Any) -> list[Any]:
        if pairs is not None:
            return [[pairs[at][0]], [pairs[at][1]]]
        size, stride = build.size(x, axis), self.strides[at]
        steps = build.op("Div", build.op("Sub", size, 1), stride)
        total = build.op("Sub", build.op("Add", build.op("Mul", steps, stride), self.spans[at]), size)
        total = build.op("Max", total, 0)
        before = build.op("Div", total, 2)
        return [vector(build, before), vector(build, build.op("Sub", total, before))]

    def patches(self, build: Builder, x: Any, value: Any) -> Any:
        """[batch, places ..., window ..., channels] of images with channels last."""
        count = len(self.kernel)
        whole = self.padded(build, x, 1, value)
        for at in range(count):
            axis = 1 + 2 * at
            room = build.op("Sub", _size(build, whole, axis), self.spans[at])
            places = build.op("Add", build.op("Div", room, self.strides[at]), 1)
            start = build.op("Mul", along(build, places, 0, 2), self.strides[at])
            own = build.constant(np.arange(self.kernel[at]).reshape(1, -1) * self.dilations[at])
            whole = build.op("Gather", whole, build.op("Add", start, own), axis=axis)
        order = [0, *range(1, 2 * count + 1, 2), *range(2, 2 * count + 1, 2), 2 * count + 1]
        return build.op("Transpose", whole, perm=order)


def _size(build: Builder, x: ir.Value, axis: int) -> ir.Value:
    if x.shape is not None:
        return build.size(x, axis)
    result: ir.Value = build.op("Squeeze", build.op("Shape", x, start=axis, end=axis + 1))
    return result
