"""Whether a model is a function: two calls with the same arrays give the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.exporters.exporter import Refusal
from entrepot.exporters.structure import Flat, same_structure
from entrepot.ir.errors import ConversionError, InputError
from entrepot.parity.compare import Tolerance, compare

if TYPE_CHECKING:
    from entrepot.exporters.exporter import Source


def settled(source: Source) -> Flat:
    """The result for the sample; see ``Source.settled``."""
    try:
        first, second = source(source.call.tensors), source(source.call.tensors)
    except Refusal as refusal:
        at = f", at {refusal.source}" if refusal.source else ""
        raise InputError(f"the {source.noun} does not take the sample: {refusal}{at}") from refusal
    if not (same_structure(first.tree, second.tree) and _equal(source, first, second)):
        raise ConversionError(
            "two calls with the same inputs differ: the results depend on random numbers or on state",
            hint="take what varies as an input, and return it as an output",
        )
    return first


def _equal(source: Source, first: Flat, second: Flat) -> bool:
    expected, actual = ([source.arrays.to_numpy(array) for array in flat.tensors] for flat in (first, second))
    return not expected or compare(expected, actual, Tolerance(0.0, 0.0)).ok
