"""Scans of which the order does not matter to Keras: step by step, since a graph takes lengths that vary."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from keras import tree

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("AssociativeScan")
def associative_scan(step: Step, f: Any, elems: Any) -> Any:
    """A Scan that carries what its function made last; the first element comes out as it is.

    TensorFlow's halves the elements instead, and where their number varies has a branch for each of 48 halvings inside
    the one before: more than a file can hold.
    """
    backward = int(step.operation.reverse)
    values = [step.value(each) for each in tree.flatten(elems)]
    axes = [step.operation.axis % len(shape_of(each)) for each in values]
    first = [_first(step, value, axis, backward) for value, axis in zip(values, axes, strict=True)]
    body, count = step.build.body("combine"), len(values)
    begun = body.input("begun", np.bool_, [])
    held = [body.input(f"before_{at}", each.dtype, shape_of(each)) for at, each in enumerate(first)]
    items = [
        body.input(f"item_{at}", each.dtype, [size for place, size in enumerate(shape_of(each)) if place != axis])
        for at, (each, axis) in enumerate(zip(first, axes, strict=True))
    ]
    with step.reader.inside(body):
        slices = [
            typed(step.op("Unsqueeze", item, [axis]), item.dtype, shape_of(one))
            for item, axis, one in zip(items, axes, held, strict=True)
        ]
        found = step.follow(f, tree.pack_sequence_as(elems, held), tree.pack_sequence_as(elems, slices))
        pairs = zip(tree.flatten(found), slices, strict=True)
        results = [
            typed(step.op("Where", begun, step.value(each, item.dtype), item), item.dtype, shape_of(item))
            for each, item in pairs
        ]
        made = [
            typed(step.op("Squeeze", each, [axis]), item.dtype, shape_of(item))
            for each, axis, item in zip(results, axes, items, strict=True)
        ]
        going = step.value(True)
    done = step.build.op(
        "Scan", step.value(False), *first, *values, outputs=1 + 2 * count, num_scan_inputs=count,
        body=body.graph([going, *results, *made]), scan_input_axes=axes, scan_output_axes=axes,
        scan_input_directions=[backward] * count, scan_output_directions=[backward] * count,
    )  # fmt: skip
    for one, value in zip(done, [going, *first], strict=False):
        typed(one, value.dtype, shape_of(value))
    whole = [typed(one, value.dtype, shape_of(value)) for one, value in zip(done[1 + count :], values, strict=True)]
    return tree.pack_sequence_as(elems, whole)


def _first(step: Step, value: ir.Value, axis: int, backward: int) -> ir.Value:
    """The element at one end of an axis, which it keeps."""
    start, end = (-1, np.iinfo(np.int64).max) if backward else (0, 1)
    shape = shape_of(value)
    shape[axis] = 1
    return typed(step.op("Slice", value, [start], [end], [axis]), value.dtype, shape)
