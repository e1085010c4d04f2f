"""Gradients of pooling."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole


def _largest(image, out, kernel, stride, padding):
    """What pooling makes of an image, which the second gradient compares with it."""
    (high, wide), found = kernel, np.empty((2, *out, 3), np.float32)
    missing = [max((count - 1) * stride + width - size, 0) // 2 if padding == "SAME" else 0
               for count, width, size in zip(out, kernel, image.shape[1:3], strict=True)]  # fmt: skip
    for row, column in itertools.product(range(out[0]), range(out[1])):
        top, left = row * stride - missing[0], column * stride - missing[1]
        window = image[:, max(top, 0) : top + high, max(left, 0) : left + wide]
        found[:, row, column] = window.max((1, 2))
    return found


def _places(sizes, kernel, stride, padding):
    counts = (
        math.ceil(size / stride) if padding == "SAME" else (size - width) // stride + 1
        for size, width in zip(sizes, kernel, strict=True)
    )
    return list(counts)


for padding, stride, kernel in itertools.product(("SAME", "VALID"), (1, 2, 3), ((2, 3), (3, 3))):
    sizes = (7, 8)
    out = _places(sizes, kernel, stride, padding)
    how = {"ksize": [1, *kernel, 1], "strides": [1, stride, stride, 1], "padding": padding}
    for known in ("", "orig_input_shape"):
        add("AvgPoolGrad", how, known, tolerance=1e-5, orig_input_shape=ints(2, *sizes, 3), grad=normal(2, *out, 3))
    image = whole(-4, 5, (2, *sizes, 3)).astype(np.float32)
    dense = {"closed": "orig_input grad"} if padding == "SAME" and stride == 3 and kernel == (2, 3) else {}
    given = {"orig_input": image, "orig_output": _largest(image, out, kernel, stride, padding)}
    add("MaxPoolGrad", how, tolerance=1e-5, **dense, **given, grad=normal(2, *out, 3))
    add("MaxPoolGradGrad", how, tolerance=1e-5, **dense, **given, grad=normal(2, *sizes, 3))
    widths = {"ksize": ints(1, *kernel, 1), "strides": ints(1, stride, stride, 1)}
    add(
        "MaxPoolGradV2",
        {"padding": padding},
        "ksize strides",
        tolerance=1e-5,
        **dense,
        **given,
        grad=normal(2, *out, 3),
        **widths,
    )
    add(
        "MaxPoolGradGradV2", {"padding": padding}, "ksize strides", tolerance=1e-5, **dense, **given,
        grad=normal(2, *sizes, 3), **widths,
    )  # fmt: skip
    for batch in (True, False):
        add(
            "MaxPoolGradWithArgmax", {**how, "include_batch_in_index": batch}, tolerance=1e-5, input=image,
            grad=normal(2, *out, 3), argmax=whole(0, 336 if batch else 168, (2, *out, 3), np.int64),
        )  # fmt: skip
for padding, stride in itertools.product(("SAME", "VALID"), (1, 2)):
    out = _places((5, 6, 7), (2, 3, 2), stride, padding)
    add(
        "AvgPool3DGrad",
        {"ksize": [1, 2, 3, 2, 1], "strides": [1, stride, stride, stride, 1], "padding": padding},
        "orig_input_shape", tolerance=1e-5, orig_input_shape=ints(2, 5, 6, 7, 3), grad=normal(2, *out, 3),
    )  # fmt: skip
    volume = normal(2, 5, 6, 7, 3)
    missing = [max((count - 1) * stride + width - size, 0) // 2 if padding == "SAME" else 0
               for count, width, size in zip(out, (2, 3, 2), (5, 6, 7), strict=True)]  # fmt: skip
    largest = np.empty((2, *out, 3), np.float32)
    for place in itertools.product(*map(range, out)):
        corner = [at * stride - before for at, before in zip(place, missing, strict=True)]
        cut = [slice(max(at, 0), at + width) for at, width in zip(corner, (2, 3, 2), strict=True)]
        largest[:, *place] = volume[:, *cut].max((1, 2, 3))
    how = {"ksize": [1, 2, 3, 2, 1], "strides": [1, stride, stride, stride, 1], "padding": padding}
    given = {"orig_input": volume, "orig_output": largest}
    add("MaxPool3DGrad", how, tolerance=1e-5, **given, grad=normal(2, *out, 3))
    add("MaxPool3DGradGrad", how, tolerance=1e-5, **given, grad=normal(2, 5, 6, 7, 3))
    for rate in (1, 2):
        sizes = [(size - (width - 1) * rate - 1) // stride + 1 for size, width in ((7, 3), (8, 2))]
        sizes = [math.ceil(7 / stride), math.ceil(8 / stride)] if padding == "SAME" else sizes
        how = {"strides": [1, stride, stride, 1], "rates": [1, rate, rate, 1], "padding": padding}
        given = {"input": normal(2, 7, 8, 3), "filter": normal(3, 2, 3), "out_backprop": normal(2, *sizes, 3)}
        add("Dilation2DBackpropInput", how, tolerance=1e-5, closed="filter", **given)
        add("Dilation2DBackpropFilter", how, tolerance=1e-5, closed="filter", **given)
for overlapping in (False, True):
    edges = {
        "row_pooling_sequence": np.array([0, 2, 3, 5], np.int64),
        "col_pooling_sequence": np.array([0, 1, 3, 4, 6], np.int64),
    }
    how = {"overlapping": overlapping}
    image = normal(2, 6, 7, 3) if overlapping else normal(2, 5, 6, 3)
    add(
        "FractionalAvgPoolGrad", how, tolerance=1e-5, **edges,
        orig_input_tensor_shape=np.array(image.shape, np.int64), out_backprop=normal(2, 3, 4, 3),
    )  # fmt: skip
    rows, columns = (each.tolist() for each in edges.values())
    more = int(overlapping)
    largest = np.empty((2, 3, 4, 3), np.float32)
    for (row, (top, end)), (column, (left, right)) in itertools.product(
        enumerate(itertools.pairwise(rows)), enumerate(itertools.pairwise(columns))
    ):
        largest[:, row, column] = image[:, top : end + more, left : right + more].max((1, 2))
    add(
        "FractionalMaxPoolGrad", how, tolerance=1e-5, **edges, orig_input=image, orig_output=largest,
        out_backprop=normal(2, 3, 4, 3),
    )  # fmt: skip
