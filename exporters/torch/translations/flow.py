"""The operator that stands for a branch or a loop: one node, which ``lowering/flows.py`` expands later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from onnxscript import opset20

import entrepot.exporters.torch.rewriting.flows
from entrepot.exporters.torch.lowering.flows import DOMAIN, OPERATOR
from entrepot.exporters.torch.upstream import call_op

op: Any = opset20


def translate_flow(tensors: Sequence[Any], ints: Sequence[Any], sizes: Sequence[Any], key: str) -> Sequence[Any]:
    """A node with tensors, then numbers, then sizes of results."""
    numbers = [op.Constant(value_int=each) if isinstance(each, int) else each for each in (*ints, *sizes)]
    count = len(entrepot.exporters.torch.rewriting.flows.FLOWS[key].outputs)
    return call_op(
        OPERATOR, *tensors, *numbers, _num_outputs=count, _domain=DOMAIN, key=key, tensors=len(tensors), ints=len(ints)
    )


TRANSLATIONS = {torch.ops.entrepot.flow.default: translate_flow}
