"""Whole numbers divided: exact for all of them, also where a floating-point number would round."""

import numpy as np
import pytest
import torch

import entrepot as ep
from tests.op_cases.torch_functions import Module

QUOTIENTS = {
    "rounded down": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "rounded to zero": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "by a number": lambda x, y: x // 3 - y,
    "by a number below zero": lambda x, y: x // -7 - y,
    "by a number to zero": lambda x, y: torch.div(x, 7, rounding_mode="trunc") - y,
    "a number by them": lambda x, y: -7 // (2 * y - 8) + x,
    "a size by them": lambda x, y: y.shape[0] // (y - 4) + x,
    "by a size": lambda x, y: torch.div(x, y.shape[0], rounding_mode="floor"),
    "what is left": torch.fmod,
    "what is left by a number": lambda x, y: torch.fmod(x, -3) + y,
}


def extremes(dtype: torch.dtype) -> torch.Tensor:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    near = [low, low + 1, low + 2, high, high - 1, high - 2, high // 2 + 1, 0, 1, 2, 6, 7]
    return torch.tensor([*near, *((-1, -2, -6, -7) if low else ())], dtype=dtype)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in QUOTIENTS for dtype in (torch.int64, torch.int32, torch.int8)]
    + [(name, torch.uint8) for name in ("rounded down", "rounded to zero", "by a number", "by a size", "what is left")],
)
def test_whole_numbers_are_divided_exactly(name, dtype):
    x = extremes(dtype)
    y = torch.full_like(x, 3)
    y[1::3] = 5
    model = ep.export(Module(QUOTIENTS[name]), (x, y), progress=False)
    feeds = {value.name: each.numpy() for value, each in zip(model.inputs, (x, y), strict=True)}
    for provider in ("cpu", "onnxruntime"):
        (found,) = ep.Session(model, providers=[provider]).run(feeds).values()
        np.testing.assert_array_equal(found, QUOTIENTS[name](x, y).numpy())


def test_a_quotient_towards_zero_is_one_node():
    sample = torch.tensor([7, -7]), torch.tensor([2, 3])
    model = ep.export(Module(QUOTIENTS["rounded to zero"]), sample, progress=False)
    assert [node.op_type for node in model.ir.graph] == ["Div"]
