"""Gradients of what is linear in an image: resizing, mirrored borders."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node

_raw = tf.raw_ops
_RESIZING = {
    "ResizeBilinearGrad": tf.raw_ops.ResizeBilinear,
    "ResizeBicubicGrad": tf.raw_ops.ResizeBicubic,
    "ResizeNearestNeighborGrad": tf.raw_ops.ResizeNearestNeighbor,
}


@composed(*_RESIZING)
def of_resizing(node: Node, dy: Any, image: Any) -> tf.Tensor:
    """The transposed of how much of each row, and of each column, is in those of the result."""
    sizes = image if node.op == "ResizeNearestNeighborGrad" else tf.shape(image)[1:3]
    rows, columns = (_shares(node, dy, axis, sizes[axis - 1]) for axis in (1, 2))
    return tf.einsum("nyxc,yh,xw->nhwc", dy, rows, columns)


def _shares(node: Node, dy: Any, axis: int, size: Any) -> tf.Tensor:
    """[resized, size]: what an identity matrix becomes when its rows are resized."""
    whole = tf.eye(size, dtype=dy.dtype)[None, :, :, None]
    how = {name: node[name] for name in ("align_corners", "half_pixel_centers")}
    return _RESIZING[node.op](images=whole, size=tf.stack([tf.shape(dy)[axis], size]), **how)[0, :, :, 0]


@composed("MirrorPadGrad")
def of_mirrors(node: Node, dy: Any, paddings: Any) -> tf.Tensor:
    """What is around the image is added to where it came from."""
    for axis in range(len(dy.shape)):
        size = tf.shape(dy)[axis] - tf.cast(tf.reduce_sum(paddings[axis]), tf.int32)
        origin = tf.raw_ops.MirrorPad(input=tf.range(size), paddings=paddings[axis][None], mode=node["mode"])
        front = _swapped(dy, axis)
        dy = _swapped(tf.math.unsorted_segment_sum(front, origin, size), axis)
    return dy


def _swapped(x: Any, axis: int) -> tf.Tensor:
    order = list(range(len(x.shape)))
    order[0], order[axis] = axis, 0
    return tf.transpose(x, order)


@composed("LRNGrad")
def of_local_response(node: Node, dy: Any, x: Any, y: Any) -> tf.Tensor:
    """Of a channel divided by what is around it, and of those around it."""
    radius, alpha, beta = node["depth_radius"], node["alpha"], node["beta"]
    band = tf.linalg.band_part(tf.ones([tf.shape(x)[3]] * 2, x.dtype), radius, radius)
    norm = node["bias"] + alpha * tf.einsum("nhwc,cd->nhwd", x * x, band)
    around = tf.einsum("nhwc,cd->nhwd", dy * y / norm, band)
    return dy * norm**-beta - 2 * alpha * beta * x * around


@composed("CropAndResizeGradImage")
def of_crops(node: Node, dy: Any, boxes: Any, places: Any, size: Any) -> tf.Tensor:
    """Each element of a crop belongs to the four around the point that it was read at, or to the nearest one."""
    height, width = size[1], size[2]
    rows, in_rows = _shares_of_crops(node, boxes[:, 0], boxes[:, 2], tf.shape(dy)[1], height)
    columns, in_columns = _shares_of_crops(node, boxes[:, 1], boxes[:, 3], tf.shape(dy)[2], width)
    inside = tf.cast(in_rows[:, :, None] & in_columns[:, None, :], tf.float32)[..., None]
    whole = tf.einsum("byxc,byh,bxw->bhwc", dy * inside, rows, columns)
    return tf.cast(tf.math.unsorted_segment_sum(whole, places, size[0]), node["T"])


def _shares_of_crops(node: Node, low: Any, high: Any, count: Any, size: Any) -> tuple[tf.Tensor, tf.Tensor]:
    last, steps = tf.cast(size - 1, tf.float32), tf.cast(tf.range(count), tf.float32)
    apart = (high - low) * last / tf.cast(tf.maximum(count - 1, 1), tf.float32)
    spread = low[:, None] * last + steps * apart[:, None]
    point = tf.where(count > 1, spread, (0.5 * (low + high) * last)[:, None])
    inside = (point >= 0) & (point <= last)
    own = tf.cast(tf.range(size), tf.float32)
    if node["method"] == "nearest":
        return tf.cast(tf.equal(tf.floor(point + 0.5)[..., None], own), tf.float32), inside
    return tf.maximum(0.0, 1.0 - tf.abs(point[..., None] - own)), inside


@composed("ScaleAndTranslateGrad")
def of_scaling(node: Node, dy: Any, image: Any, scale: Any, translation: Any) -> tf.Tensor:
    """The transposed of the shares that each row and column has."""
    rows, columns = (
        _raw.ScaleAndTranslate(
            images=tf.eye(tf.shape(image)[at + 1])[None, :, :, None],
            size=tf.stack([tf.shape(dy)[at + 1], tf.shape(image)[at + 1]]),
            scale=tf.stack([scale[at], 1.0]), translation=tf.stack([translation[at], 0.0]),
            kernel_type=node["kernel_type"], antialias=node["antialias"],
        )[0, :, :, 0]
        for at in (0, 1)
    )  # fmt: skip
    return tf.einsum("nyxc,yh,xw->nhwc", dy, rows, columns)


@composed("CropAndResizeGradBoxes")
def of_boxes(node: Node, dy: Any, image: Any, boxes: Any, places: Any) -> tf.Tensor:
    """How a crop changes with the edges of its box: by what differs around each point that it was read at."""
    sizes = [tf.shape(image)[at] for at in (1, 2)]
    counts = [tf.shape(dy)[at] for at in (1, 2)]
    edges = ((boxes[:, 0], boxes[:, 2]), (boxes[:, 1], boxes[:, 3]))
    rows, columns = (_around(*each) for each in zip(edges, counts, sizes, strict=True))
    whole = tf.gather(image, places)
    (high, steep), (wide, across) = rows[:2], columns[:2]
    inside = tf.cast(rows[2][:, :, None] & columns[2][:, None, :], tf.float32)
    by_row = tf.einsum("bhwc,byh,bxw,byxc->byx", whole, steep, wide, dy) * inside
    by_column = tf.einsum("bhwc,byh,bxw,byxc->byx", whole, high, across, dy) * inside
    first, last = (tf.einsum("byx,y->b", by_row, share) for share in rows[3])
    left, right = (tf.einsum("byx,x->b", by_column, share) for share in columns[3])
    return tf.stack([first, left, last, right], 1)


def _around(edges: Any, count: Any, size: Any) -> tuple[Any, ...]:
    """Shares of elements at each point, what moving it changes, whether it is inside, and how far edges move it."""
    low, high = edges
    last, steps = tf.cast(size - 1, tf.float32), tf.cast(tf.range(count), tf.float32)
    whole = tf.cast(tf.maximum(count - 1, 1), tf.float32)
    spread = low[:, None] * last + steps * ((high - low) * last / whole)[:, None]
    point = tf.where(count > 1, spread, (0.5 * (low + high) * last)[:, None])
    own = tf.cast(tf.range(size), tf.float32)
    top, bottom = (tf.cast(tf.equal(edge(point)[..., None], own), tf.float32) for edge in (tf.floor, tf.math.ceil))
    share = (point - tf.floor(point))[..., None]
    by_last = tf.where(count > 1, steps * last / whole, 0.5 * last)
    by_first = tf.where(count > 1, last - steps * last / whole, 0.5 * last)
    return top * (1 - share) + bottom * share, bottom - top, (point >= 0) & (point <= last), (by_first, by_last)
