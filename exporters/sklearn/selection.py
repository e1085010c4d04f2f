"""``y[y < 0] *= -1``: elements in a mask are computed wherever they are, and put back where the mask holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from entrepot.ir.errors import ConversionError

if TYPE_CHECKING:
    from entrepot.exporters.sklearn.array import Array


class Chosen(np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of an array where a mask holds; how many they are, no graph knows.

    Args:
        array: All elements.
        mask: Where those are.
    """

    __array_priority__ = 3000
    __hash__ = object.__hash__

    def __init__(self, array: Array, mask: Array) -> None:
        self.array, self.mask = array, mask

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Chosen:
        """Elementwise, with numbers and with what the same mask chooses."""
        options.pop("out", None)
        same = all(each.mask is self.mask if isinstance(each, Chosen) else not np.ndim(each) for each in operands)
        if method != "__call__" or not same:
            raise _refusal()
        plain = [each.array if isinstance(each, Chosen) else each for each in operands]
        return Chosen(ufunc(*plain, **options), self.mask)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise _refusal()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise _refusal()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refusal()


def _refusal() -> ConversionError:
    return ConversionError(
        "elements that are chosen by a mask can be computed and put back where they were, and no more",
        hint="np.where keeps the shape as it is",
    )
