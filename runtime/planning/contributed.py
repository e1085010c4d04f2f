"""A step of an operator that another runtime adds to the standard, as a graph of standard ones."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.contributed.spell import Given, Use, spell
from entrepot.ir.typing.plain import Type, to_ir
from entrepot.ir.typing.spec import Spec
from entrepot.runtime.planning.plan import Step, Value


def spelled_out(step: Step) -> ir.Graph | None:
    """The graph; ``None`` if nobody has said how the operator is spelled out.

    Raises:
        ConversionError: This use of it cannot be.
    """
    inputs = [None if value is None else _given(value) for value in step.inputs]
    named = [value is not None for value in step.outputs]
    return spell(Use(step.domain, step.op_type, inputs, named, step.attributes))


def _given(value: Value) -> Given:
    constant = value.constant if isinstance(value.constant, np.ndarray) and value.constant.dtype != object else None
    return Given(Spec(*to_ir(value.type or Type())), constant)
