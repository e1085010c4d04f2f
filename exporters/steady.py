"""Whether a model is a function: two calls with the same arrays give the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from entrepot.exporters.exporter import Refusal
from entrepot.exporters.structure import Flat, same_structure
from entrepot.ir.errors import ConversionError, InputError
from entrepot.parity.compare import Tolerance, compare
from entrepot.parity.tolerance import classify

if TYPE_CHECKING:
    from entrepot.exporters.exporter import Source

_ROUNDINGS = 32  # numbers drawn at random differ by millions


def settled(source: Source) -> Flat:
    """The result for the sample; see ``Source.settled``."""
    try:
        first, second = source(source.call.tensors), source(source.call.tensors)
    except Refusal as refusal:
        at = f", at {refusal.source}" if refusal.source else ""
        raise InputError(f"the {source.noun} does not take the sample: {refusal}{at}") from refusal
    if not _alike(source, first, second):
        raise ConversionError(
            "two calls with the same inputs differ: the results depend on random numbers or on state",
            hint="take what varies as an input, and return it as an output",
        )
    return first


def check_rest(rest: Source, result: Flat) -> None:
    """Hold what a cut leaves of a source to the result of the source for the sample.

    Raises:
        ConversionError: It returns something else.
    """
    try:
        found = rest(rest.call.tensors)
    except Refusal as refusal:
        raise ConversionError(
            f"what follows the operations on text does not take their results: {refusal}"
        ) from refusal
    if not _alike(rest, found, result):
        raise ConversionError("what follows the operations on text computes something else when it is called by itself")


def _alike(source: Source, first: Flat, second: Flat) -> bool:
    """Whether two results of a source are the same but for rounding."""
    if not same_structure(first.tree, second.tree):
        return False
    pairs = zip(first.tensors, second.tensors, strict=True)
    return all(_equal(*(source.arrays.to_numpy(array) for array in pair)) for pair in pairs)


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether results differ by rounding at most: threads do not always share a sum in the same way."""
    exact = classify(first.dtype) not in {"float", "complex"}
    step = 0.0 if exact else _ROUNDINGS * float(ml_dtypes.finfo(first.dtype).eps)  # type: ignore[no-untyped-call]
    return compare(first, second, Tolerance(atol=step, rtol=step, scaled=True)).ok
