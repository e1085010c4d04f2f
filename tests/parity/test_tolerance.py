from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from entrepot.ir.errors import InputError
from entrepot.parity.tolerance import Tolerance, classify, default_tolerance, dtype_name


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (np.float32, "float"),
        (ml_dtypes.bfloat16, "float"),
        (ml_dtypes.float8_e5m2, "float"),
        (ml_dtypes.float4_e2m1fn, "float"),
        (ml_dtypes.int4, "integer"),
        (ml_dtypes.uint2, "integer"),
        (np.uint64, "integer"),
        (np.bool_, "bool"),
        (np.complex64, "complex"),
        (object, "string"),
        ("<U3", "string"),
    ],
)
def test_every_dtype_a_model_can_produce_has_a_class(dtype, kind):
    assert classify(np.dtype(dtype)) == kind


def test_a_dtype_no_model_produces_is_refused():
    with pytest.raises(InputError, match="datetime64"):
        classify(np.dtype("datetime64[s]"))


def test_text_is_one_dtype_however_numpy_stores_it():
    assert dtype_name(np.dtype("<U3")) == dtype_name(np.dtype(object)) == "string"


@pytest.mark.parametrize("bad", [-1e-3, math.nan, math.inf])
@pytest.mark.parametrize("field", ["atol", "rtol"])
def test_a_tolerance_that_lets_all_or_nothing_pass_is_refused(field, bad):
    with pytest.raises(InputError, match=field):
        Tolerance(**{"atol": 0.0, "rtol": 0.0, field: bad})


def test_the_default_grows_with_the_rounding_of_the_format():
    formats = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
    relative = [default_tolerance(np.dtype(dtype)).rtol for dtype in formats]
    assert relative == sorted(relative)
    assert default_tolerance(np.dtype(np.int64)) == Tolerance(0.0, 0.0)


def test_the_scale_is_applied_once():
    rule = default_tolerance(np.dtype(np.float32)).at_scale(1000.0)
    assert rule.atol == pytest.approx(0.02)
    assert rule.at_scale(1000.0) == rule


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        (1e-3, Tolerance(1e-3, 1e-3)),
        (0, Tolerance()),
        ("1e-3", Tolerance(1e-3, 1e-3)),
        (np.float32(0.5), Tolerance(0.5, 0.5)),
        ((1e-5, 1e-3), Tolerance(atol=1e-5, rtol=1e-3)),
        ([0, 1], Tolerance(0.0, 1.0)),
        ({"rtol": 1e-3}, Tolerance(0.0, 1e-3)),
        ({"atol": 1, "rtol": 2, "steps": 3}, Tolerance(1.0, 2.0, steps=3)),
        (Tolerance(1.0, 2.0), Tolerance(1.0, 2.0)),
    ],
)
def test_a_tolerance_is_read_as_it_is_meant(given, meant):
    assert Tolerance.of(given) == meant


@pytest.mark.parametrize(
    "bad",
    [
        True,
        "loose",
        -1,
        math.nan,
        {},
        {"abs": 1},
        (1,),
        (1, 2, 3),
        object(),
        b"1",
        np.ones(1),
        [None, 1],
        {"steps": 1.5},
    ],
)
def test_what_is_no_tolerance_is_refused(bad):
    with pytest.raises(InputError, match="tolerance"):
        Tolerance.of(bad)
