"""Results written over operands that are no longer needed: ``add_(a, b)`` instead of new memory for every step."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime.planning.dying import dying_operands
from entrepot.runtime.planning.plan import Block
from entrepot.runtime.providers.torch.convolutions.convolution import Convolution

_IN_PLACE = {
    torch.add: Tensor.add_, torch.sub: Tensor.sub_, torch.mul: Tensor.mul_, torch.div: Tensor.div_,
    torch.exp: torch.exp_, torch.sqrt: torch.sqrt_, torch.abs: torch.abs_, torch.neg: torch.neg_,
    torch.tanh: torch.tanh_, torch.sigmoid: torch.sigmoid_, torch.relu: torch.relu_, torch.erf: torch.erf_,
    torch.reciprocal: torch.reciprocal_, torch.log: torch.log_, torch.sin: torch.sin_, torch.cos: torch.cos_,
    torch.floor: torch.floor_, torch.ceil: torch.ceil_, functional.gelu: torch.ops.aten.gelu_.default,
    functional.silu: torch.ops.aten.silu_.default, functional.hardswish: torch.ops.aten.hardswish_.default,
}  # fmt: skip
_COMMUTATIVE = (torch.add, torch.mul)
_RESIDUAL = 3
"""The position of what a convolution adds to its result."""


def reuse(block: Block) -> None:
    """Let elementwise steps of a bound block work in place on a dying operand of the result's shape and type."""
    for step, dying in dying_operands(block):
        call = step.call
        if call is None or not dying or call.leading or step.on_host:
            continue
        if isinstance(call.function, Convolution):
            if _RESIDUAL in dying:
                step.call = replace(call, function=call.function.over_last())
            continue
        function = _IN_PLACE.get(call.function)
        if function is None or (dying[0] != 0 and call.function not in _COMMUTATIVE):
            continue
        if dying[0] != 0:
            step.inputs = step.inputs[::-1]
        step.call = replace(call, function=function)
