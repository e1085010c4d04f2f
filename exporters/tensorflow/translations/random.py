"""Random numbers of a generator of TensorFlow's own: of use where no result depends on them.

A function whose results do is refused before it is traced, since two calls of it differ. What is left is dropout at a
rate of 0, as graphs of TensorFlow 1 have it whose rate is fed while they are trained, and branches for training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import int64
from entrepot.exporters.tensorflow.table import translates


@translates("RandomUniform", "RandomStandardNormal")
def random_numbers(node: Node, build: Builder, shape: Any) -> Any:
    """Between 0 and 1, or of a normal distribution around 0."""
    drawn = _drawn(build, shape, "RandomUniformLike" if node.op == "RandomUniform" else "RandomNormalLike")
    return build.cast(drawn, node["dtype"])


@translates("RandomUniformInt")
def whole_numbers(node: Node, build: Builder, shape: Any, least: Any, most: Any) -> Any:
    """From the least to below the greatest."""
    low, high = (build.cast(each, np.float64) for each in (least, most))
    place = build.op(
        "Mul", build.cast(_drawn(build, shape, "RandomUniformLike"), np.float64), build.op("Sub", high, low)
    )
    return build.cast(build.op("Floor", build.op("Add", place, low)), node["Tout"])


@translates("RandomShuffle")
def shuffled(node: Node, build: Builder, x: Any) -> Any:
    """In the order of uniform numbers."""
    count = build.shape(x, 0, 1)
    _, order = build.op("TopK", _drawn(build, count, "RandomUniformLike"), count, outputs=2)
    return build.op("Gather", x, order, axis=0)


def _drawn(build: Builder, shape: Any, operator: str) -> Any:
    zero = build.constant(np.array(0, np.float32))
    return build.op(operator, build.op("Expand", zero, int64(build, shape)))
