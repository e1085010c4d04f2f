"""Where caches are kept between steps: with the provider that runs the decoder, so that none of them crosses."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.runtime.device import HOST, Device
from entrepot.runtime.providers import Providers
from entrepot.runtime.session import Session

Array: TypeAlias = np.ndarray[Any, Any]


class Kept:
    """Arrays on a device.

    Args:
        device: Where they are kept.
        providers: Who computes there.
        threads: Threads that may be used for it.
    """

    def __init__(self, device: Device = HOST, providers: Providers = ("cpu",), threads: int | None = None) -> None:
        self._device, self._providers, self._threads = device, providers, threads
        self._gathers: dict[tuple[str, int], Session] = {}

    def put(self, value: Any) -> Any:
        """An array as it is kept: there already, or brought there."""
        return value if self._is_near(value) else self._device.to_device(value)

    def fetch(self, value: Any) -> Array:
        """An array on the host."""
        return np.asarray(value if self._is_near(value, HOST) else self._device.to_host(value))

    def take(self, value: Any, rows: Array, axis: int) -> Any:
        """Some rows of an array, where it is."""
        if self._is_near(value, HOST):
            return np.take(np.asarray(value), rows, axis)
        kind = self._device.dtype(value).name, axis
        if kind not in self._gathers:
            model = _gather(ir.DataType.from_numpy(self._device.dtype(value)), axis)
            self._gathers[kind] = Session(model, providers=self._providers, threads=self._threads)
        return self._gathers[kind].run({"data": value, "rows": rows})["taken"]

    def _is_near(self, value: Any, device: Device | None = None) -> bool:
        """Whether a value is on a device, by default where arrays are kept; what that does not hold is on the host."""
        here = self._device is not HOST and self._device.holds(value)
        return here if (device or self._device) is not HOST else not here


def _gather(dtype: ir.DataType, axis: int) -> Model:
    """Rows of an array of any rank."""
    data = ir.Value(name="data", type=ir.TensorType(dtype))
    rows = ir.Value(name="rows", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(["rows"]))
    node = ir.node("Gather", [data, rows], {"axis": axis})
    taken = node.outputs[0]
    taken.name, taken.type = "taken", ir.TensorType(dtype)
    graph = ir.Graph([data, rows], [taken], nodes=[node], opset_imports={"": OPSET}, name="rows")
    return Model(ir.Model(graph, ir_version=10))
