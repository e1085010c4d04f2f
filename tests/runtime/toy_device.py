"""A provider on a device that is not there: arrays that nobody may look into, with every crossing counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from entrepot.ir.table import OpTable
from entrepot.ir.traits import runs_on_host
from entrepot.runtime import providers
from entrepot.runtime.binding import Kernels
from entrepot.runtime.compilation import Target, compile_part
from entrepot.runtime.device import Placed
from entrepot.runtime.dividing.coverage import reason_against
from entrepot.runtime.dividing.islands import Islands
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu.table import KERNELS as HOST_KERNELS
from entrepot.runtime.providers.cpu.table import native as numpy_native
from entrepot.runtime.support import backend_support
from tests.runtime.opaque import OPAQUE, Opaque, bare, wrapped

native: OpTable[Any] = OpTable("toy native")
"""Kernels of the toy: NumPy's own behind the wall, for what has no shared meaning."""

KERNELS = Kernels(lambda: OPAQUE, native)


def fill_natives() -> None:
    """Operators without a shared meaning; host operands reach them as NumPy arrays, like any kernel."""
    from entrepot.runtime.kernels.table import shared

    for key in set(numpy_native) - set(shared) - set(native):
        if runs_on_host(key):
            continue
        native(key.op_type, key.since, domain=key.domain)(_walled(numpy_native.get(*key).function))


def _walled(function: Any) -> Any:
    from functools import wraps

    @wraps(function)
    def kernel(*inputs: Any, **attributes: Any) -> Any:
        return wrapped(function(*map(bare, inputs), **attributes))

    return kernel


class ToyDevice:
    """Counts what crosses, and its bytes."""

    name, stream, shares_host = "toy:0", 7, False

    def __init__(self) -> None:
        self.crossings: Counter[str] = Counter()
        self.bytes = 0

    def adopted(self, value: Any) -> Any:
        return value

    def holds(self, value: Any) -> bool:
        return isinstance(value, Opaque)

    def dtype(self, array: Any) -> Any:
        return OPAQUE.dtype(array)

    def shape(self, array: Any) -> tuple[int, ...]:
        return OPAQUE.shape(array)

    def to_device(self, value: Any) -> Any:
        self.crossings["to device"] += 1
        value = value if isinstance(value, np.ndarray) else np.from_dlpack(value)
        assert value.dtype.kind != "O"
        self.bytes += value.nbytes
        return Opaque(np.array(value))

    def to_host(self, array: Any) -> np.ndarray:
        self.crossings["to host"] += 1
        self.bytes += bare(array).nbytes
        return np.array(bare(array))

    def own(self, arrays: Sequence[Any], fed: Sequence[Any]) -> list[Any]:
        others = [bare(each) for each in fed if isinstance(each, Opaque)]
        return [
            Opaque(np.array(bare(each)))
            if isinstance(each, Opaque) and any(np.may_share_memory(bare(each), other) for other in others)
            else each
            for each in arrays
        ]

    def synchronize(self) -> None:
        self.crossings["waits"] += 1


DEVICE = ToyDevice()


class ToyProvider:
    """Refuses the nodes whose names or operators are in ``refused``."""

    name, device, missing = "toy", DEVICE, ""
    refused: frozenset[str] = frozenset()

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.place = Placed(DEVICE)
        support = backend_support(OPAQUE, setting.limits)
        self._target = Target(KERNELS, support, HOST_KERNELS, device=DEVICE, place=self.place)

    @classmethod
    def available(cls) -> str:
        return cls.missing

    def supports(self, node: ir.Node) -> str:
        if not self.refused.isdisjoint([node.name, node.op_type]):
            return "not among the toys"
        return reason_against(node, self._setting.hub.ir, self._target.is_known)

    def compile(self, part: ir.GraphView) -> Compiled:
        return compile_part(part, self._setting, self._target)


@contextmanager
def installed(refused: Iterable[str] = (), islands: bool = True) -> Iterator[Counter[str]]:
    """The provider ``toy`` as one among the others; gives its counts of what crosses.

    Args:
        refused: Names of nodes and operators that it does not run.
        islands: Whether nodes may be given up that cost more to reach than they save.
    """
    fill_natives()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(providers._HOMES, "toy", (__name__, "ToyProvider"))
        patch.setattr(ToyProvider, "refused", frozenset(refused))
        if not islands:
            patch.setattr(Islands, "give_up", lambda self, others: {})
        DEVICE.crossings.clear()
        yield DEVICE.crossings
