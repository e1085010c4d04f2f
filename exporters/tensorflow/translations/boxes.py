"""Boxes in images."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import part, vector
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
    """The same with scores, for a sigma of 0."""
    given = node.constant(5)
    if given is None or float(given) != 0:
        node.refuse("lowers the scores of boxes that overlap (its sigma is not 0)")
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
