"""Which kernel runs a step: prepared, then native, then the shared meaning over the NumPy backend."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.runtime.fold import MAX_BYTES
from entrepot.runtime.growth import with_room
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.plan import Call, Step, Value
from entrepot.runtime.providers.cpu.table import native, prepared
from entrepot.runtime.room import run_within


def is_known(key: OpKey) -> bool:
    """Whether a kernel of this provider computes the operator."""
    return native.find(*key) is not None or shared.find(*key) is not None


def bind(step: Step, single_use: tuple[bool, ...] = ()) -> Call:
    """The best kernel for one step, with what is known of its node bound to it."""
    entry = prepared.find(*step.key)
    if entry is not None:
        function = entry.function(view(step, single_use))
        if function is not None:
            return Call(function, "prepared")
    return bind_plain(step)


def bind_plain(step: Step) -> Call:
    """The kernel without preparation: what folding and the reference provider run.

    Raises:
        UnsupportedOpError: No kernel computes it.
    """
    entry = native.find(*step.key)
    if entry is not None:
        return with_room(step, Call(entry.function, "native", (), _attributes(step, entry.function)))
    entry = shared.get(*step.key)
    from entrepot.runtime.providers.cpu.backend import NUMPY

    return with_room(step, Call(entry.function, "shared", (NUMPY,), _attributes(step, entry.function)))


def evaluate(step: Step) -> Any:
    """Run a step whose inputs are all constant; what it makes may not be much larger than they are."""
    constants = [None if value is None else value.constant for value in step.inputs]
    given = sum(constant.nbytes for constant in constants if constant is not None)
    with np.errstate(all="ignore"):
        return run_within(MAX_BYTES + 2 * given, bind_plain(step), *constants)


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


def _attributes(step: Step, function: Callable[..., Any]) -> dict[str, Any]:
    if _takes_n_outputs(function):
        return {**step.attributes, "n_outputs": len(step.outputs)}
    return step.attributes


@cache
def _takes_n_outputs(function: Callable[..., Any]) -> bool:
    return not isinstance(function, np.ufunc) and "n_outputs" in inspect.signature(function).parameters
