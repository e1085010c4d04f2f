"""The torch provider: torch's kernels under generated Python source, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import MissingDependencyError
from entrepot.runtime import heap
from entrepot.runtime.compilation import Target, compile_part
from entrepot.runtime.device import Array, Placed
from entrepot.runtime.dividing.coverage import reason_against
from entrepot.runtime.planning import fuse
from entrepot.runtime.planning.plan import Block, Step
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu.provider import CpuProvider
from entrepot.runtime.providers.cpu.table import KERNELS as HOST_KERNELS
from entrepot.runtime.providers.torch import missing
from entrepot.runtime.providers.torch.small import is_small
from entrepot.runtime.providers.torch.table import KERNELS
from entrepot.runtime.support import backend_support

if TYPE_CHECKING:
    from entrepot.runtime.providers.torch.accelerator import Accelerator
    from entrepot.runtime.providers.torch.graphs import Graphs

LEFT_TO_HOST = frozenset(
    ("MaxRoiPool", "NonMaxSuppression", "RandomNormal", "RandomUniform", "RoiAlign", "TfIdfVectorizer")
)
"""Operators that go step by step as their data says, or that no input says the device of."""


class TorchProvider:
    """Runs whole graphs, or parts of them, with torch on the host."""

    name = "torch"
    where = "cpu"
    leaves_small_parts = True
    """Whether NumPy runs what takes less time than calling torch."""

    def __init__(self, setting: Setting) -> None:
        from entrepot.runtime.providers.torch.backend import TorchBackend
        from entrepot.runtime.providers.torch.device import TorchDevice

        self._setting = setting
        self._accelerator = self.accelerator()
        self._graphs: list[Graphs] = []
        self.device = TorchDevice(self.where, self._accelerator)
        self._placed = Placed(self.device)
        backend = TorchBackend(self.where)
        self._target = Target(
            replace(KERNELS, backend=lambda: backend),
            backend_support(backend, setting.limits),
            HOST_KERNELS,
            self.rules(),
            device=self.device,
            place=self.place,
            finish=self.finish,
            left_to_host=LEFT_TO_HOST,
        )

    @staticmethod
    def available() -> str:
        """Empty, or what is missing."""
        return missing.for_torch()

    def accelerator(self) -> Accelerator | None:
        """What the device has beyond torch's tensors; nothing on the host, whose memory is kept for the next run."""
        heap.keep()
        return None

    def rules(self) -> fuse.Rules:
        """What is run in one kernel: on the host, weights are packed for its libraries."""
        from entrepot.runtime.providers.torch.fuse import rules

        return rules()

    def finish(self, block: Block) -> None:
        """The last change to a bound block: elementwise steps work piece by piece, and in place."""
        from entrepot.runtime.providers.torch.pieces import join
        from entrepot.runtime.providers.torch.reuse import reuse

        join(block)
        reuse(block)

    def place(self, constant: np.ndarray[Any, Any]) -> Array:
        """A constant on the device; the same memory each time."""
        return self.device.keep(self._placed(constant))

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""
        return reason_against(node, self._setting.hub.ir, self._target.is_known)

    def compile(self, part: ir.GraphView) -> Compiled:
        """Generated source for one part: its inputs in order to its outputs in order.

        Raises:
            UnsupportedOpError: Nodes have neither kernel nor function body; all of them are named.
        """
        if self.leaves_small_parts and is_small(part, self._setting.type_of):
            return self._compiled_for_numpy(part)
        compiled = self.made_faster(compile_part(part, self._setting, self._target))
        if self._accelerator is None:
            return replace(compiled, run=without_gradients(compiled.run))
        graphs = self._captured(compiled, exact(compiled.run, self._accelerator))
        return replace(compiled, run=without_gradients(graphs), remark=both(compiled.remark, graphs.remark))

    def _compiled_for_numpy(self, part: ir.GraphView) -> Compiled:
        compiled = CpuProvider(self._setting).compile(part)
        return replace(
            compiled,
            how={node: f"{how}, NumPy's" for node, how in compiled.how.items()},
            on_host=frozenset(range(len(part.inputs))),
            made_on_host=frozenset(range(len(part.outputs))),
        )

    def made_faster(self, compiled: Compiled) -> Compiled:
        """The part as it will be called: as it is."""
        return compiled

    def _captured(self, compiled: Compiled, run: Callable[..., tuple[Any, ...]]) -> Graphs:
        from entrepot.runtime.providers.torch import graphs

        assert self._accelerator is not None
        self._graphs.append(graphs.Graphs(run, self._accelerator, graphs.reason_against(steps_of(compiled))))
        return self._graphs[-1]

    def memory(self) -> int:
        """Bytes in use on the device, those of other sessions included; of constants alone on the host."""
        return self.device.constant_bytes if self._accelerator is None else self._accelerator.in_use()

    def trim(self) -> None:
        """Give back what only makes the next run faster: captured work, and memory that torch keeps."""
        for each in self._graphs:
            each.trim()
        if self._accelerator is None:
            heap.trim()
        else:
            self._accelerator.trim()


class MeasuredTorchProvider(TorchProvider):
    """On the host, each product, convolution and attention by the kernel that is measured to be fastest."""

    name = "torch:autotune"

    def rules(self) -> fuse.Rules:
        """The same as by sizes, which are measured here and known to the sessions that follow."""
        from entrepot.runtime.providers.torch.fuse import rules
        from entrepot.runtime.providers.torch.measuring.chooser import Chooser

        self._chooser = Chooser.of_this_machine(self._setting.threads)
        return rules(self._chooser)

    def made_faster(self, compiled: Compiled) -> Compiled:
        """The part as it is, with a remark of what was chosen."""
        return replace(compiled, remark=both(compiled.remark, self._chooser.remark))


class CudaProvider(TorchProvider):
    """Runs whole graphs, or parts of them, with torch on a device of CUDA or ROCm."""

    name = "torch:cuda"
    where = "cuda"
    leaves_small_parts = False

    @staticmethod
    def available() -> str:
        """Empty, or what is missing."""
        return missing.for_cuda()

    def accelerator(self) -> Accelerator:
        """Streams and graphs of CUDA."""
        import torch

        from entrepot.runtime.providers.torch.accelerator import Cuda

        if not torch.cuda.is_available():
            raise MissingDependencyError(
                f"provider '{self.name}' needs a device that torch {torch.__version__} can use, and it finds none"
            )
        return Cuda(torch.device("cuda", torch.cuda.current_device()))

    def rules(self) -> fuse.Rules:
        """What the device's libraries do at once."""
        from entrepot.runtime.providers.torch.fuse_on_device import RULES

        return RULES

    def finish(self, block: Block) -> None:
        """Elementwise steps work in place."""
        in_place(block)


class MpsProvider(TorchProvider):
    """Runs whole graphs, or parts of them, with torch on a device of Apple's."""

    name = "torch:mps"
    where = "mps"
    leaves_small_parts = False

    @staticmethod
    def available() -> str:
        """Empty, or what is missing."""
        return missing.for_mps()

    def accelerator(self) -> Accelerator:
        """Memory of Metal."""
        import torch

        from entrepot.runtime.providers.torch.accelerator import Metal

        if not torch.backends.mps.is_available():
            raise MissingDependencyError(
                f"provider '{self.name}' needs a device that torch {torch.__version__} can use, and it finds none"
            )
        return Metal(torch.device("mps", 0))

    def rules(self) -> fuse.Rules:
        """What is an operator of ONNX by itself."""
        return fuse.RULES

    def finish(self, block: Block) -> None:
        """Elementwise steps work in place."""
        in_place(block)


class _Compiled(TorchProvider):
    """With the operators of a part compiled by torch once more, into kernels of its own."""

    backend = "inductor"
    leaves_small_parts = False

    def finish(self, block: Block) -> None:
        """Steps stay apart: the compiler joins them, and finds memory for them."""

    def made_faster(self, compiled: Compiled) -> Compiled:
        """The part by ``torch.compile``, anew for shapes that it did not see."""
        from entrepot.runtime.providers.torch.compiled import CompiledByShapes
        from entrepot.runtime.providers.torch.graphs import reason_against

        made = CompiledByShapes(compiled.run, self.backend, reason_against(steps_of(compiled)))
        return replace(compiled, run=made, remark=made.remark)


class CompiledTorchProvider(_Compiled):
    """On the host; it needs a C++ compiler, and half a minute for a model."""

    name = "torch:compile"

    def rules(self) -> fuse.Rules:
        """What is an operator of ONNX by itself; weights are not packed, which the compiler does not see through."""
        return fuse.RULES


class CompiledCudaProvider(_Compiled, CudaProvider):
    """On a device of CUDA or ROCm."""

    name = "torch:cuda:compile"


def steps_of(compiled: Compiled) -> Iterable[Step]:
    """The steps of a part that was emitted."""
    return {} if compiled.emitted is None else dict.fromkeys(compiled.emitted.lines.values())


def both(one: Callable[[], str], other: Callable[[], str]) -> Callable[[], str]:
    """Two remarks as one."""
    return lambda: "; ".join(filter(None, (one(), other())))


def in_place(block: Block) -> None:
    """Let elementwise steps write over operands that nothing reads again."""
    from entrepot.runtime.providers.torch.reuse import reuse

    reuse(block)


def without_gradients(run: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """The same function, which notes nothing for a backward pass."""
    import torch

    def quiet(*inputs: Any) -> tuple[Any, ...]:
        with torch.inference_mode():
            return run(*inputs)

    return quiet


def exact(run: Callable[..., tuple[Any, ...]], accelerator: Accelerator) -> Callable[..., tuple[Any, ...]]:
    """The same function, whose products are as exact as their element type."""

    def run_exactly(*inputs: Any) -> tuple[Any, ...]:
        with accelerator.exactly():
            return run(*inputs)

    return run_exactly
