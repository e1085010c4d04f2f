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
    if not alike(source, first, second):
        raise ConversionError(
            "two calls with the same inputs differ: the results depend on random numbers or on state",
            hint="take what varies as an input, and return it as an output",
        )
    return first


def alike(source: Source, first: Flat, second: Flat) -> bool:
    """Whether two results of a source are the same but for rounding."""
    if not same_structure(first.tree, second.tree):
        return False
    pairs = zip(first.tensors, second.tensors, strict=True)
    return all(_alike(*(source.arrays.to_numpy(array) for array in pair)) for pair in pairs)


def _alike(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether results differ by rounding at most: threads do not always share a sum in the same way."""
    exact = classify(first.dtype) not in {"float", "complex"}
    step = 0.0 if exact else _ROUNDINGS * float(ml_dtypes.finfo(first.dtype).eps)  # type: ignore[no-untyped-call]
    return compare(first, second, Tolerance(atol=step, rtol=step, scaled=True)).ok
