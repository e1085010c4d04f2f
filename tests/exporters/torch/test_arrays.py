"""Tensors as the pipeline sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.lowering.translate import check_constants
from entrepot.exporters.torch.upstream import FakeTensorMode
from entrepot.ir.errors import ConversionError


@pytest.mark.parametrize("kind", [torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.bfloat16], ids=str)
def test_tensors_of_any_type_are_resized(kind: torch.dtype) -> None:
    resized = TORCH.resized(torch.tensor([[1, 200]]).to(kind), 1, 4)
    assert resized.dtype == kind
    assert torch.equal(resized.long(), torch.tensor([[1, 1, 200, 200]]).to(kind).long())


@pytest.mark.parametrize("table", ["constants", "state_dict"])
def test_constants_without_values_are_refused(table: str) -> None:
    with FakeTensorMode() as mode:
        hollow = torch.ones(2)
    assert mode is not None
    program: Any = SimpleNamespace(constants={"real": torch.ones(2)}, state_dict={"module.real": torch.ones(2)})
    check_constants(program)
    getattr(program, table)["module.hollow"] = hollow
    with pytest.raises(ConversionError, match="no values for the constant 'hollow'"):
        check_constants(program)
