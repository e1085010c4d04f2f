"""Integers in a sample that tell sizes: a model that sums them up takes another size only with other integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from entrepot.exporters.arrays import Array, Arrays
from entrepot.parity.totals import TELLING


class Telling:
    """What is known of the integers of a sample.

    Args:
        arrays: The kind of its arrays.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._needed: list[str] = []

    def fitted(self, base: Sequence[Array], tensors: list[Array]) -> list[Array]:
        """Tensors of other sizes, with integers that tell them as far as the model is known to need that."""
        for name in self._needed:
            tensors = self._fitted(name, base, tensors) or tensors
        return tensors

    def is_needed(self, base: Sequence[Array], tensors: list[Array], accepts: Callable[[list[Array]], bool]) -> bool:
        """Whether a model that refuses some tensors takes them with integers that tell their sizes.

        Args:
            base: Tensors that the model takes.
            tensors: The same at other sizes.
            accepts: Runs the model.
        """
        for name in TELLING:
            found = None if name in self._needed else self._fitted(name, base, tensors)
            if found is not None and accepts(found):
                self._needed.append(name)
                return True
        return False

    def _fitted(self, name: str, base: Sequence[Array], tensors: list[Array]) -> list[Array] | None:
        kinds = [self._arrays.kind(tensor) for tensor in base]
        if "integer" not in kinds:
            return None
        before, after = (dict(enumerate(map(self._arrays.to_numpy, each))) for each in (base, tensors))
        found = TELLING[name](before, after)
        if found is None:
            return None
        changed = {at for at in found if found[at] is not after[at]}
        return [self._arrays.from_numpy(found[at]) if at in changed else each for at, each in enumerate(tensors)]
