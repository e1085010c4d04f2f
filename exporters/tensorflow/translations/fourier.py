"""Fourier transforms of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.fourier import transformed
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import number
from entrepot.exporters.tensorflow.sizes import joined, part, rank_of
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.translations.complex_numbers import pair_of, parts_of

_AXES = {"": 1, "1D": 1, "2D": 2, "3D": 3}


def _count(node: Node) -> int:
    return _AXES[node.op.partition("FFT")[2]]


@translates(*(f"{way}FFT{axes}" for way in ("", "I") for axes in ("", "2D", "3D")), pairs=True)
def fourier(node: Node, build: Builder, x: Any) -> Any:
    """Along the last axes."""
    rank = rank_of(node)
    for axis in range(rank - _count(node), rank):
        x = transformed(build, x, axis, inverse=node.op.startswith("I"))
    return x


@translates("RFFT", "RFFT2D", "RFFT3D", pairs=True)
def spectrum(node: Node, build: Builder, x: Any, lengths: Any) -> Any:
    """Of real numbers, as much as is not its own mirror image."""
    rank, count = rank_of(node), _count(node)
    for at in range(count):
        x = _of_length(node, build, x, rank - count + at, rank, lengths, at)
    found = transformed(build, pair_of(build, x, build.op("Sub", x, x)), rank - 1)
    whole = build.op("Gather", lengths, build.constant(np.array(count - 1)))
    kept = build.cast(build.op("Add", build.op("Div", whole, 2), 1), np.int64)
    found = part(build, found, 0, build.op("Reshape", kept, [1]), rank - 1)
    for axis in range(rank - count, rank - 1):
        found = transformed(build, found, axis)
    return found


@translates("IRFFT", "IRFFT2D", "IRFFT3D", pairs=True)
def signal(node: Node, build: Builder, x: Any, lengths: Any) -> Any:
    """The inverse: the other half is the mirror image of the one that is given."""
    rank, count = rank_of(node), _count(node)
    for at in range(count - 1):
        axis = rank - count + at
        x = _of_length(node, build, x, axis, rank + 1, lengths, at)
        x = transformed(build, x, axis, inverse=True)
    whole = build.cast(build.op("Gather", lengths, build.constant(np.array(count - 1))), np.int64)
    kept = build.op("Reshape", build.op("Add", build.op("Div", whole, 2), 1), [1])
    axis = rank - 1
    x = _resized(build, x, axis, rank + 1, kept)
    last = build.op("Reshape", build.op("Div", build.op("Sub", whole, 1), 2), [1])
    mirror = build.op("Slice", x, last, [0], [axis], [-1])
    real, imaginary = parts_of(build, mirror)
    every = build.op("Concat", x, pair_of(build, real, -imaginary), axis=axis)
    return parts_of(build, transformed(build, every, axis, inverse=True))[0].value


def _of_length(node: Node, build: Builder, x: Any, axis: int, rank: int, lengths: Any, at: int) -> Any:
    """Cut off, or filled up with zeros, to a length that is asked for."""
    known, shape = node.constant(1), node.shape(0)
    if known is not None and shape is not None and shape[axis] == int(known[at]):
        return x
    wanted = build.op("Slice", build.cast(lengths, np.int64), [at], [at + 1])
    return _resized(build, x, axis, rank, wanted)


def _resized(build: Builder, x: Any, axis: int, rank: int, wanted: Any) -> Any:
    own = build.op("Shape", x, start=axis, end=axis + 1)
    missing = build.op("Max", build.op("Sub", wanted, own), [0])
    pads = joined(build, [0] * (rank + axis), missing, [0] * (rank - axis - 1))
    return part(build, build.op("Pad", x, pads, number(build, 0, x), mode="constant"), 0, wanted, axis)
