"""What variants of operator cases showed: each was wrong, refused or crashed once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.io.read import load
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import run
from tests.judges.verdict import judge, opinion, with_constants
from tests.op_cases.case import Case, f32, floats, i8, i16, ints, strings, u16
from tests.op_cases.ml import column, ml


def _down(case: Case, opset: int) -> tuple[str, str]:
    sample = opinion(case)
    assert sample is not None
    return judge(sample, load(sample.model), opset)


@pytest.mark.parametrize("value", [0.1, 1e300, math.pi])
def test_a_double_to_pad_with_keeps_its_digits_below_opset_11(value: float) -> None:
    case = Case("Pad", floats(1, 2, dtype=np.float64), ints(1, 1), np.array(value))
    sample = opinion(case)
    assert sample is not None
    twin = with_constants(sample)
    assert twin is not None
    (padded,) = run(convert_opset(load(twin.model), 10), floats(1, 2, dtype=np.float64))
    assert padded.tolist() == [value, 1, 2, value]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_pad_takes_what_no_float_holds_below_opset_11(dtype: type) -> None:
    assert _down(Case("Pad", ints(1, 2, dtype=dtype), ints(1, 1), np.array(3, dtype)), 10)[0] == "right"


def test_pad_and_trilu_fill_strings_with_empty_ones() -> None:
    model = load(Case("Trilu", strings([["a", "b"], ["c", "d"]])).model())
    assert run(convert_opset(model, 13), strings([["a", "b"], ["c", "d"]]))[0].tolist() == [["a", "b"], ["", "d"]]


@pytest.mark.parametrize(
    "case", [Case("Max", i8(), i8()), Case("Min", u16(), u16()), Case("Max", i8(2), i8())], ids=str
)
def test_the_larger_of_scalars_is_a_scalar_below_opset_9(case: Case) -> None:
    assert _down(case, 8) == ("right", "")


@pytest.mark.parametrize("case", [Case("Shrink", i16(4, 5), bias=0.3, lambd=1.1), Case("Shrink", u16(9), bias=2.0)])
def test_shrink_of_integers_counts_with_fractions(case: Case) -> None:
    assert _down(case, 8) == ("right", "")


@pytest.mark.parametrize("axis", [-1, -2])
def test_scatter_counts_its_axis_from_the_end(axis: int) -> None:
    case = Case("Scatter", f32(3, 4), ints(0, 2, 1, 0).reshape(2, 2), f32(2, 2), axis=axis)
    assert _down(case, 8) == ("right", "")


def test_a_key_that_is_not_a_number_is_not_taken_to_where_it_matches_nothing() -> None:
    case = ml("LabelEncoder", floats(np.nan), keys_floats=[0.5, np.nan], values_strings=["a", "b"])
    with pytest.raises(ConversionError, match="NaN"):
        convert_opset(load(case.model()), {"ai.onnx.ml": 2})
    up = convert_opset(load(case.model(2)), {"ai.onnx.ml": 4})
    assert run(up, floats(np.nan))[0].tolist() == ["_Unused"]


def test_tensors_of_strings_become_lists() -> None:
    words = strings(["b", "z"])
    case = ml(
        "LabelEncoder",
        words,
        keys_tensor=column("a", "b", dtype=str),
        values_tensor=column(0, 1, dtype=np.int64),
        default_tensor=column(9, dtype=np.int64),
    )
    assert run(convert_opset(load(case.model()), {"ai.onnx.ml": 2}), words)[0].tolist() == [1, 9]
