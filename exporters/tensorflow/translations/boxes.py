"""Boxes in images."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.composed import in_place
from entrepot.exporters.tensorflow.compositions.boxes import softly
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import joined, part, transposed, vector
from entrepot.exporters.tensorflow.table import translates


@translates("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def suppressed(node: Node, build: Builder, boxes: Any, scores: Any, most: Any, *thresholds: Any) -> Any:
    """The boxes that overlap no better one."""
    overlap = thresholds[0] if thresholds else build.constant(np.float32(node["iou_threshold"]))
    chosen = _chosen(build, boxes, scores, most, overlap, thresholds[1] if len(thresholds) > 1 else None)
    if not node.op.endswith("V4"):
        return build.cast(chosen, np.int32)
    count = build.size(chosen, 0)
    if node["pad_to_max_output_size"]:
        chosen = _padded(build, chosen, most)
    return build.cast(chosen, np.int32), build.cast(count, np.int32)


@translates("NonMaxSuppressionV5")
def suppressed_softly(
    node: Node, build: Builder, boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any
) -> Any:
    """The same with scores, which boxes that overlap better ones have less of, unless sigma is 0."""
    given = node.constant(5)
    if given is None or float(given) != 0:
        return in_place(node, build, softly, (boxes, scores, most, overlap, least, sigma))
    chosen = _chosen(build, boxes, scores, most, overlap, least)
    kept = build.op("Gather", scores, chosen)
    count = build.size(chosen, 0)
    if node["pad_to_max_output_size"]:
        chosen, kept = _padded(build, chosen, most), _padded(build, kept, most)
    return build.cast(chosen, np.int32), kept, build.cast(count, np.int32)


def _chosen(build: Builder, boxes: Any, scores: Any, most: Any, overlap: Any, least: Any) -> Any:
    wide = [build.cast(each, np.float32) for each in (boxes, scores)]
    found = build.op(
        "NonMaxSuppression", build.op("Unsqueeze", wide[0], [0]), build.op("Unsqueeze", wide[1], [0, 1]),
        vector(build, most), build.op("Reshape", build.cast(overlap, np.float32), [1]),
        None if least is None else build.op("Reshape", build.cast(least, np.float32), [1]),
    )  # fmt: skip
    return build.op("Squeeze", part(build, found, 2, 3, 1), [1])


@translates("CombinedNonMaxSuppression")
def suppressed_by_class(
    node: Node, build: Builder, boxes: Any, scores: Any, per_class: Any, total: Any, overlap: Any, least: Any
) -> Any:
    """The best boxes of each class, of which the best of all classes are left, filled up with zeros."""
    batch, classes = build.size(scores, 0), build.size(scores, 2)
    by_class = transposed(build, scores, [0, 2, 1])  # [batch, classes, boxes]
    shared = (node.shape(0) or (None,) * 4)[2]
    if shared is None:
        node.refuse("has boxes of which it is not known whether each class has its own")
    every = transposed(build, boxes, [0, 2, 1, 3])  # [batch, classes or 1, boxes, 4]
    flat = build.op("Reshape", every, joined(build, [-1], build.shape(boxes, 1, 2), [4]))
    rows = build.op(
        "Reshape", by_class, joined(build, build.op("Shape", flat, start=0, end=1), [-1], build.shape(boxes, 1, 2))
    )
    limits = [build.op("Reshape", each, [1]) for each in (overlap, least)]
    chosen = build.op("NonMaxSuppression", flat, rows, vector(build, per_class), *limits)
    marks = build.op("Expand", build.constant(np.float32(0)), build.op("Shape", rows))
    ones = build.op("Expand", build.constant(np.float32(1)), build.op("Shape", chosen, start=0, end=1))
    kept = build.op("Greater", build.op("ScatterND", marks, chosen, ones), 0.0)
    best = build.op("Where", build.op("Reshape", kept, build.op("Shape", by_class)), by_class, -np.inf)
    line = build.op("Reshape", best, joined(build, vector(build, batch), [-1]))
    return _best_of_all(node, build, every, line, vector(build, classes), per_class, total)


def _best_of_all(node: Node, build: Builder, every: Any, line: Any, classes: Any, per_class: Any, total: Any) -> Any:
    """The first of all boxes of an image by their scores, which are -inf for those that are left out."""
    width = vector(build, total)
    if node["pad_per_class"]:
        width = build.op("Min", width, build.op("Mul", vector(build, per_class), classes))
    there = build.op("Shape", line, start=1)
    found, places = build.op("TopK", line, build.op("Min", width, there), outputs=2, axis=1)
    room = joined(build, [0, 0, 0], build.op("Sub", width, build.op("Shape", found, start=1)))
    found = build.op("Pad", found, room, -np.inf, mode="constant")
    places = build.op("Pad", places, room, 0, mode="constant")
    valid = build.op("Not", build.op("IsInf", found))
    count = build.op("Shape", every, start=2, end=3)
    owner, place = build.op("Div", places, count), build.op("Mod", places, count)
    index = place if every.shape[1] == 1 else places
    lines = build.op("Reshape", every, joined(build, build.op("Shape", every, start=0, end=1), [-1], [4]))
    picked = build.op("GatherND", lines, build.op("Unsqueeze", index, [2]), batch_dims=1)
    if node["clip_boxes"]:
        picked = build.op("Clip", picked, 0.0, 1.0)
    boxes = build.op("Where", build.op("Unsqueeze", valid, [2]), picked, 0.0)
    kinds = build.op("Where", valid, build.cast(owner, np.float32), 0.0)
    number_of = build.op("ReduceSum", build.cast(valid, np.int32), [1], keepdims=0)
    return boxes, build.op("Where", valid, found, 0.0), kinds, number_of


def _padded(build: Builder, x: Any, most: Any) -> Any:
    missing = build.op("Sub", vector(build, most), build.op("Shape", x))
    pads = build.op("Concat", build.constant(np.array([0])), missing, axis=0)
    return build.op("Pad", x, pads, 0, mode="constant")


@translates("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def drawn(node: Node, build: Builder, images: Any, boxes: Any, colours: Any = None) -> Any:
    """Outlines of one element's width, of which the last box drawn counts."""
    wide = build.cast(images, np.float32)
    height, width, depth = (build.size(images, axis) for axis in (1, 2, 3))
    edges = []
    for at, size in enumerate((height, width, height, width)):
        corner = build.op("Squeeze", part(build, boxes, at, at + 1, 2), [2])
        last = build.cast(build.op("Sub", size, 1), np.float32)
        edges.append(build.cast(build.op("Mul", corner, last), np.int64))
    rows, columns = (build.op("Range", 0, each, 1) for each in (height, width))
    y, x = build.op("Reshape", rows, [1, 1, -1, 1]), build.op("Reshape", columns, [1, 1, 1, -1])
    top, left, bottom, right = (build.op("Unsqueeze", each, [2, 3]) for each in edges)
    beside = build.op("And", _within(build, y, top, bottom), _either(build, x, left, right))
    above = build.op("And", _within(build, x, left, right), _either(build, y, top, bottom))
    fits = build.op("And", build.op("LessOrEqual", top, bottom), build.op("LessOrEqual", left, right))
    here = build.op("And", build.op("Or", beside, above), fits)
    count = build.size(boxes, 1)
    number = build.op("Reshape", build.op("Range", 1, build.op("Add", count, 1), 1), [1, -1, 1, 1])
    none = build.constant(np.zeros((1, 1, 1, 1), np.int64))
    marks = build.op("Where", here, number, none)
    last = build.op("ReduceMax", build.op("Max", marks, none), [1], keepdims=0)
    table = _colours(build, node, colours)
    index = build.op("Mod", build.op("Max", build.op("Sub", last, 1), 0), build.size(table, 0))
    shown = part(build, build.op("Gather", table, index, axis=0), 0, vector(build, depth), 3)
    drawn_on = build.op("Unsqueeze", build.op("Greater", last, 0), [3])
    return build.cast(build.op("Where", drawn_on, shown, wide), images.dtype)


def _within(build: Builder, place: Any, low: Any, high: Any) -> Any:
    return build.op("And", build.op("GreaterOrEqual", place, low), build.op("LessOrEqual", place, high))


def _either(build: Builder, place: Any, one: Any, other: Any) -> Any:
    return build.op("Or", build.op("Equal", place, one), build.op("Equal", place, other))


def _colours(build: Builder, node: Node, given: Any) -> Any:
    table = [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1], [0.5, 0, 0, 1],
        [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ]  # fmt: skip
    shape = node.shape(2) if given is not None else (0,)
    return build.constant(np.array(table, np.float32)) if not shape or shape[0] == 0 else given
