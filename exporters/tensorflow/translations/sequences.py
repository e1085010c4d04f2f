"""What is read off sequences of class scores, and off boxes of many classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import number
from entrepot.exporters.tensorflow.sizes import int64, part
from entrepot.exporters.tensorflow.table import translates


@translates("CTCGreedyDecoder")
def greedy(node: Node, build: Builder, scores: Any, lengths: Any) -> Any:
    """The best class of each step, without blanks and repetitions, as a sparse tensor."""
    steps, batch, classes = (build.size(scores, axis) for axis in range(3))
    best = build.op("ArgMax", scores, axis=2, keepdims=0)
    blank = node["blank_index"]
    none = build.op("Add", classes, blank) if blank < 0 else build.constant(np.array(blank))
    place = build.op("Unsqueeze", build.op("Range", 0, steps, 1), [1])
    inside = build.op("Less", place, build.op("Unsqueeze", int64(build, lengths), [0]))
    kept = build.op("And", inside, build.op("Not", build.op("Equal", best, none)))
    if node["merge_repeated"]:
        before = build.op("Pad", part(build, best, 0, -1, 0), [1, 0, 0, 0], -1, mode="constant")
        kept = build.op("And", kept, build.op("Not", build.op("Equal", best, before)))
    turned = build.op("Transpose", kept, perm=[1, 0])
    rank = build.op("CumSum", build.cast(turned, np.int64), build.constant(np.array(1)))
    found = build.op("Transpose", build.op("NonZero", turned), perm=[1, 0])
    values = build.op("GatherND", build.op("Transpose", best, perm=[1, 0]), found)
    columns = build.op("Sub", build.op("GatherND", rank, found), 1)
    rows = part(build, found, 0, 1, 1)
    indices = build.op("Concat", rows, build.op("Unsqueeze", columns, [1]), axis=1)
    counts = build.op("ReduceMax", build.op("Concat", [0], build.op("Reshape", rank, [-1]), axis=0), keepdims=1)
    shape = build.op("Concat", build.op("Reshape", batch, [1]), counts, axis=0)
    most = build.op("ReduceMax", scores, [2], keepdims=0)
    total = build.op("ReduceSum", build.op("Where", inside, most, number(build, 0, scores)), [0], keepdims=0)
    return indices, values, shape, build.op("Unsqueeze", build.op("Neg", total), [1])
