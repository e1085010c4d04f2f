"""Which kernel runs a step: prepared, then native, then the shared meaning over the provider's backend."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from entrepot.ir.errors import ConversionError, EntrepotError
from entrepot.ir.operators import defined
from entrepot.ir.table import Entry, OpKey, OpTable
from entrepot.runtime.kernels.backend import Backend
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.planning.fold import KERNEL_ERRORS, MAX_BYTES
from entrepot.runtime.planning.growth import with_room
from entrepot.runtime.planning.plan import Block, Call, Step, Value
from entrepot.runtime.room import run_within

Kernel = Callable[..., Any]

_UNPACKED = 4
"""Numbers of two bits in a byte, which are apart at first in bytes of their own."""


@dataclass(frozen=True)
class Kernels:
    """Where a provider finds the kernels of its operators, after which come the schemas' function bodies.

    Attributes:
        backend: Gives the array functions that shared meanings run on; called at the first need of one.
        native: Kernels on the provider's own arrays.
        prepared: Rules that see one node with its constants, and may bind a kernel made for it.
    """

    backend: Callable[[], Backend]
    native: OpTable[Kernel]
    prepared: OpTable[Kernel] | None = None

    def is_known(self, key: OpKey) -> bool:
        """Whether there is a kernel for an operator."""
        known = self.native.find(*key) is not None or shared.find(*key) is not None
        return known or defined(key) is not None

    def bind(self, step: Step) -> Call:
        """The best kernel for one step, with what is known of its node bound to it."""
        entry = None if self.prepared is None else self.prepared.find(*step.key)
        function = None if entry is None else _prepare(entry.function, step)
        return self.bind_plain(step) if function is None else Call(function, "prepared")

    def bind_plain(self, step: Step) -> Call:
        """The kernel without preparation: what folding and the reference provider run.

        Raises:
            UnsupportedOpError: There is none.
            ConversionError: The only one needs to know an input that is computed in each run.
        """
        entry = self.native.find(*step.key)
        if entry is not None and not _unknown(entry, step):
            return with_room(step, Call(entry.function, "native", (), attributes_of(step, entry.function)))
        if entry is not None and shared.find(*step.key) is None:
            raise ConversionError(
                f"{', '.join(_unknown(entry, step))} must be known when the model is compiled",
                node=step.where,
                hint="make it an initializer, or fix the sizes that it is computed from",
            )
        theirs = defined(step.key)
        if theirs is not None:
            return with_room(step, Call(theirs.run, "python", (), step.attributes))
        entry = shared.get(*step.key)
        return with_room(step, Call(entry.function, "shared", (self.backend(),), attributes_of(step, entry.function)))

    def evaluate(self, step: Step) -> Any:
        """Run a step whose inputs are all constant; what it makes may not be much larger than they are."""
        constants = [None if value is None else value.constant for value in step.inputs]
        given = sum(constant.nbytes for constant in constants if constant is not None)
        with np.errstate(all="ignore"):
            return run_within(MAX_BYTES + _UNPACKED * given, self.bind_plain(step), *constants)


def _prepare(rule: Kernel, step: Step) -> Kernel | None:
    try:
        function: Kernel | None = rule(view(step))
    except EntrepotError:
        raise
    except KERNEL_ERRORS:
        return None  # constants that do not fit are reported when the step runs
    return function


def _unknown(entry: Entry[Kernel], step: Step) -> list[str]:
    """The inputs that a kernel must know when it is bound, and cannot."""
    if not entry.constants or step.schema is None:
        return []
    given = zip(step.schema.inputs, step.inputs, strict=False)
    return [
        formal.name
        for formal, value in given
        if formal.name in entry.constants and value is not None and value.constant is None
    ]


def bind_all(block: Block, binder: Callable[[Step], Call]) -> None:
    """Give every step of a block, and of the blocks within it, its kernel."""
    for step in block.steps:
        for inner in step.blocks.values():
            bind_all(inner, binder)
        if not step.blocks and step.call is None:
            step.call = binder(step)


def view(step: Step, single_use: tuple[bool, ...] = ()) -> NodeView:
    """The node as a prepared kernel sees it."""
    return NodeView(
        op_type=step.op_type,
        inputs=tuple(None if value is None else _input(value) for value in step.inputs),
        domain=step.domain,
        since=step.key.since,
        name=step.name,
        attributes={key: list(item) if isinstance(item, tuple) else item for key, item in step.attributes.items()},
        n_outputs=len(step.outputs),
        single_use=single_use or (False,) * len(step.inputs),
    )


def _input(value: Value) -> InputView:
    known = value.type
    if known is None or known.kind != "tensor":
        return InputView(value.name, value.constant)
    return InputView(value.name, value.constant, known.numpy, known.shape)


def attributes_of(step: Step, function: Callable[..., Any]) -> dict[str, Any]:
    """What a kernel is told beside its operands."""
    if _takes_n_outputs(function):
        return {**step.attributes, "n_outputs": len(step.outputs)}
    return step.attributes


@cache
def _takes_n_outputs(function: Callable[..., Any]) -> bool:
    if isinstance(function, np.ufunc | BuiltinFunctionType):  # a framework's own, whose arguments are all inputs
        return False
    return "n_outputs" in inspect.signature(function).parameters
