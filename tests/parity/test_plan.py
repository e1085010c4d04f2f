from __future__ import annotations

import json

import numpy as np
import onnx_ir
import pytest

from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.parity.plan import plan_cases


def model_of(inputs):
    return Model(onnx_ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 20]> net ({inputs}) => () {{ }}'))


def shapes(case):
    return {name: np.shape(value) for name, value in case.feeds.items()}


def test_the_sample_comes_first_and_unchanged():
    sample = {"x": np.ones((2, 3), np.float32)}
    cases = plan_cases(model_of("float[2,3] x"), sample)
    assert [case.label for case in cases] == ["sample", "other values"]
    assert cases[0].feeds["x"] is sample["x"]
    assert not np.array_equal(cases[1].feeds["x"], sample["x"])


def test_every_symbol_is_tried_at_more_at_twice_at_one_and_at_nothing():
    cases = plan_cases(model_of("float[batch, 3] x"), {"x": np.zeros((4, 3), np.float32)})
    assert {case.label: shapes(case)["x"] for case in cases if case.symbol} == {
        "batch=5": (5, 3),
        "batch=8": (8, 3),
        "batch=1": (1, 3),
        "batch=0": (0, 3),
    }


def test_the_size_of_the_sample_is_not_repeated():
    cases = plan_cases(model_of("float[batch] x"), {"x": np.zeros(1, np.float32)})
    assert [case.label for case in cases if case.symbol] == ["batch=2", "batch=0"]


def stepped(inputs, *conditions):
    model = model_of(inputs)
    model.ir.metadata_props["entrepot.conditions"] = json.dumps(conditions)
    return model


def test_nothing_is_tried_beyond_a_stated_largest_size():
    cases = plan_cases(stepped("float[h, w] x", "h <= 5"), {"x": np.zeros((4, 6), np.float32)})
    assert {case.label for case in cases if case.symbol} == {"h=5", "h=1", "h=0", "w=7", "w=12", "w=1", "w=0"}
    assert shapes(cases[-1])["x"] == (5, 8)
    cases = plan_cases(stepped("float[h, w] x", "h <= 4", "h % 4 == 0"), {"x": np.zeros((4, 6), np.float32)})
    assert {case.label for case in cases if case.symbol == "h"} == {"h=0"}


def test_a_symbol_with_a_step_is_tried_at_whole_steps_only():
    model = stepped("float[h, w] x", "h % 4 == 0", "w % 3 == 1")
    cases = plan_cases(model, {"x": np.zeros((8, 7), np.float32)})
    alone = {case.label for case in cases if case.symbol}
    assert alone == {"h=12", "h=16", "h=4", "h=0", "w=10", "w=16", "w=1", "w=0"}
    assert shapes(cases[-1])["x"] == (12, 10)


def test_axes_that_share_a_symbol_change_together():
    sample = {"x": np.zeros((2, 5), np.float32), "m": np.zeros((2, 5, 5), bool)}
    cases = plan_cases(model_of("float[b, s] x, bool[b, s, s] m"), sample)
    assert cases
    for case in cases:
        (b, s) = shapes(case)["x"]
        assert shapes(case)["m"] == (b, s, s)


def test_all_symbols_change_at_once_too_to_different_sizes():
    sample = {"x": np.zeros((4, 4), np.float32)}
    last = plan_cases(model_of("float[a, b] x"), sample)[-1]
    assert shapes(last)["x"] == (5, 6)
    assert last.symbol == ""


def test_an_unnamed_axis_is_tried_as_well():
    cases = plan_cases(model_of("float[?, 2] x"), {"x": np.zeros((3, 2), np.float32)})
    assert "x.0=4" in [case.label for case in cases]


def test_a_sequence_is_varied_item_by_item():
    sample = {"s": [np.ones(2, np.float32), np.ones(3, np.float32)]}
    cases = plan_cases(model_of("seq(float[n]) s"), sample)
    assert [np.shape(item) for item in cases[1].feeds["s"]] == [(2,), (3,)]


def test_a_sample_that_contradicts_itself_is_refused():
    with pytest.raises(InputError, match="'n'"):
        plan_cases(model_of("float[n] x, float[n] y"), {"x": np.zeros(2), "y": np.zeros(3)})


def test_axes_that_follow_from_others_change_with_them_and_never_alone():
    model = model_of('float["past + n"] mask, float[n] x, float[past] cache, float["n//2"] half')
    sample = {name: np.zeros(size, np.float32) for name, size in {"mask": 9, "x": 4, "cache": 5, "half": 2}.items()}
    cases = plan_cases(model, sample)
    assert {case.symbol for case in cases} == {"", "n", "past"}
    for case in cases:
        sizes = {name: size for name, (size,) in shapes(case).items()}
        assert sizes["mask"] == sizes["x"] + sizes["cache"]
        assert sizes["half"] == sizes["x"] // 2
    assert len({shapes(case)["x"] for case in cases}) > 4


def test_a_formula_that_does_not_hold_in_the_sample_is_the_name_of_an_axis_like_any_other():
    model = model_of('float["n + 1"] mask, float[n] x')
    cases = plan_cases(model, {"mask": np.zeros(9, np.float32), "x": np.zeros(4, np.float32)})
    assert {case.symbol for case in cases} == {"", "n", "n + 1"}


def test_sizes_that_a_formula_does_not_allow_are_not_tried():
    cases = plan_cases(
        model_of('float["n - 3"] rest, float[n] x'), {"rest": np.zeros(2, np.float32), "x": np.zeros(5, np.float32)}
    )
    assert [case.label for case in cases if case.symbol] == ["n=6", "n=10"]
