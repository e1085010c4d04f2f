"""What If, Loop and Scan need of arrays, over the backend protocol: conditions and counts come from the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.ir.limits import Limits
from entrepot.ir.typing.plain import Type
from entrepot.runtime.emitting.writer import Support
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.providers.cpu.support import number, numpy_support, truth


def backend_support(xp: Backend, limits: Limits) -> Support:
    """Control flow over the arrays of a backend, with loops bounded by ``limits``."""

    def length(*pairs: Any) -> int:
        sizes = {xp.shape(array)[axis] for array, axis in zip(pairs[::2], pairs[1::2], strict=True)}
        if len(sizes) != 1:
            raise ValueError(f"scanned inputs have different lengths: {sorted(sizes)}")
        return sizes.pop()

    def pick(array: Array, index: int, axis: int) -> Array:
        return array[(slice(None),) * (axis % len(xp.shape(array))) + (index,)]

    def stack(items: list[Any], axis: int, kind: Type | None) -> Array:
        return xp.stack(items, axis) if items else xp.asarray(near.stack(items, axis, kind))

    near = numpy_support(limits)
    return Support(np.array(True), truth, number, near.trips, length, pick, stack)
