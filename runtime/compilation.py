"""A part of a graph becomes generated source over a provider's kernels: the steps in order, whatever the framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from entrepot.ir.table import OpKey
from entrepot.ir.traits import runs_on_host
from entrepot.runtime.binding import Kernels, bind_all
from entrepot.runtime.device import HOST, Device, Place
from entrepot.runtime.dividing.copies import copies_in
from entrepot.runtime.emitting.emit import emit
from entrepot.runtime.emitting.writer import Support
from entrepot.runtime.planning import fuse
from entrepot.runtime.planning.absorb import absorbed
from entrepot.runtime.planning.became import became
from entrepot.runtime.planning.lanes import Sides, place_constants, split_lanes
from entrepot.runtime.planning.lower import Lowering
from entrepot.runtime.planning.merge import merged
from entrepot.runtime.planning.plan import Block, Call, Step, pruned
from entrepot.runtime.providers import Compiled, Setting


@dataclass(frozen=True)
class Target:
    """What a provider brings to compile for its arrays.

    Attributes:
        kernels: Where its kernels are found.
        support: What control flow needs of its arrays.
        host: Kernels on NumPy arrays, for what is known when compiling and for what runs on the host.
        rules: Patterns that it runs in one kernel.
        device: Where its arrays are.
        place: Takes a constant there.
        finish: The last change to a bound block: which memory results are written to.
        left_to_host: Operators of ai.onnx that run on the host wherever the others do.
    """

    kernels: Kernels
    support: Support
    host: Kernels
    rules: fuse.Rules = field(default_factory=lambda: fuse.RULES)
    device: Device = HOST
    place: Place = lambda constant: constant
    finish: Callable[[Block], None] = lambda block: None
    left_to_host: frozenset[str] = frozenset()

    def is_known(self, key: OpKey) -> bool:
        """Whether a kernel runs an operator, on the device, or on the host if it has no business elsewhere.

        Where both share their memory, the host runs whatever the device has no kernel for, as nothing is copied.
        """
        left = not key.domain and key.op_type in self.left_to_host
        near = left or self.device.shares_host or runs_on_host(key)
        return self.kernels.is_known(key) or (near and self.host.is_known(key))

    def bind(self, step: Step) -> Call:
        """The kernel of a step, on the lane that it runs on; shape arithmetic there needs no preparation."""
        if not step.on_host:
            return self.kernels.bind(step)
        arithmetic = self.kernels.is_known(step.key)
        return replace(self.host.bind_plain(step) if arithmetic else self.host.bind(step), kind="host")


def compile_part(part: ir.GraphView, setting: Setting, target: Target) -> Compiled:
    """Generated source for one part: its inputs in order to its outputs in order.

    Raises:
        UnsupportedOpError: Nodes have neither kernel nor function body; all of them are named.
        ConversionError: A kernel needs to know an input that is computed in each run.
    """
    model, kernels = setting.hub.ir, target.kernels
    lowering = Lowering(model.functions, target.is_known, evaluate=target.host.evaluate, limits=setting.limits)
    given = [None if value.producer() is None else setting.type_of(value) for value in part.inputs]
    block = merged(pruned(lowering.lower(part, model.graph.opset_imports, given)))
    block = fuse.fused(absorbed(block), target.rules)
    far = target.device is not HOST
    sides = split_lanes(block, target.device, target.host.is_known, kernels.is_known) if far else Sides()
    bind_all(block, target.bind)
    if far:
        place_constants(block, target.place)
    target.finish(block)
    emitted = emit(block, target.support)
    how = became(part, block, lowering.settled)
    copies = () if target.device.shares_host else tuple(copies_in(block, target.device.name))
    return Compiled(emitted.function, emitted, how, emitted.locate, copies=copies, **vars(sides))
