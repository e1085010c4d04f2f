from __future__ import annotations

import io
import math
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrepot.ir.errors import InputError
from entrepot.parity.compare import Tolerance, agree, compare, scales_of

X = np.random.default_rng(0).standard_normal((7, 10)).astype(np.float32)


def only(expected, actual, tolerance=None):
    (output,) = compare({"y": expected}, {"y": actual}, tolerance).outputs
    assert agree({"y": expected}, {"y": actual}, Tolerance.of(tolerance)) == output.ok
    return output


# --- the rule


def test_the_rule_is_absolute_plus_relative_to_expected():
    rule = Tolerance(atol=0.5, rtol=0.25)
    expected = np.array([2.0, 2.0, -2.0])
    assert only(expected, np.array([3.0, 1.0, -3.0]), rule).ok
    output = only(expected, np.array([3.0, 0.999, -3.0]), rule)
    assert output.metrics.mismatched == 1
    assert output.metrics.worst.index == (1,)


def test_relative_to_expected_is_not_symmetric():
    rule = Tolerance(atol=0.0, rtol=0.5)
    assert only(np.array([2.0]), np.array([1.0]), rule).ok
    assert not only(np.array([1.0]), np.array([2.0]), rule).ok


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_equal_non_finite_values_agree_and_others_do_not(value, dtype):
    bad = np.array([1.0, value]).astype(dtype)
    assert only(bad, bad).ok
    for expected, actual in ((bad, np.array([1.0, 2.0]).astype(dtype)), (np.array([1.0, 2.0]).astype(dtype), bad)):
        output = only(expected, actual)
        assert not output.ok
        assert output.metrics.max_abs == math.inf


def test_opposite_infinities_differ_under_any_tolerance():
    assert not only(np.array([np.inf]), np.array([-np.inf]), Tolerance(1e30, 1.0)).ok


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_the_default_follows_the_size_of_the_values(scale):
    assert only(scale * X, np.float32(1 + 1e-6) * (scale * X)).ok
    assert not only(scale * X, scale * (X + np.float32(1e-3))).ok


def test_a_fill_value_does_not_excuse_errors_elsewhere():
    masked = X.copy()
    masked[:, 5:] = np.finfo(np.float32).min
    wrong = masked.copy()
    wrong[0, 0] += 0.01
    assert only(masked, masked).ok
    assert not only(masked, wrong).ok


def test_zeros_may_be_off_by_rounding_of_ordinary_activations():
    zeros = np.zeros(4, np.float32)
    assert only(zeros, zeros + np.float32(1e-6)).ok
    assert not only(zeros, zeros + np.float32(1e-3)).ok


def test_other_runs_of_the_source_say_how_exact_a_small_result_can_be():
    small, ordinary = np.array([1e-4], np.float32), np.array([3.0, -2.0, 1.0], np.float32)
    actual = small + np.float32(1e-6)
    scales = scales_of([{"y": small}, {"y": ordinary}])
    assert not compare({"y": small}, {"y": actual}).ok
    assert compare({"y": small}, {"y": actual}, scales=scales).ok
    assert agree({"y": small}, {"y": actual}, scales=scales)
    assert not agree({"y": small}, {"y": actual})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, ml_dtypes.int4, ml_dtypes.uint4])
def test_integers_agree_exactly_whatever_the_float_tolerance(dtype):
    expected = np.array([3, 5]).astype(dtype)
    actual = np.array([3, 6]).astype(dtype)
    assert only(expected, expected, Tolerance(10.0, 10.0)).ok
    assert not only(expected, actual, Tolerance(10.0, 10.0)).ok
    assert only(expected, actual, Tolerance(0.0, 0.0, steps=1)).ok


def test_large_integers_are_not_compared_as_floats():
    output = only(np.array([2**60]), np.array([2**60 + 1]))
    assert not output.ok
    assert output.metrics.worst.actual == 2**60 + 1


def test_the_difference_of_extreme_integers_does_not_wrap():
    ends = np.iinfo(np.int64)
    assert only(np.array([ends.min]), np.array([ends.max])).metrics.max_abs == 2.0**64
    assert only(np.array([5], np.uint8), np.array([6], np.uint8)).metrics.max_abs == 1.0


def test_booleans_and_strings_agree_exactly():
    assert only(np.array([True, False]), np.array([True, False])).ok
    assert not only(np.array([True, False]), np.array([True, True]), Tolerance(5, 5, steps=5)).ok
    assert only(np.array(["a", "b"], object), np.array(["a", "b"])).ok
    assert not only(np.array(["a", "b"], object), np.array(["a", "c"], object)).ok


def test_an_eight_bit_float_may_be_the_neighbouring_value_but_not_the_next():
    one, two, three = (np.array([value]).astype(ml_dtypes.float8_e4m3fn) for value in (1.0, 1.125, 1.25))
    assert only(one, two).ok
    assert not only(one, three).ok


# --- shapes, dtypes, structure


def test_dtype_must_match():
    assert only(X, X.astype(np.float64)).problem == "is float64, expected float32"


def test_shape_must_match_and_is_not_broadcast():
    assert only(X, X[:1]).problem == "has shape (1, 10), expected (7, 10)"
    assert not only(np.zeros(()), np.zeros(1)).ok


def test_missing_and_extra_outputs_are_failures():
    verdict = compare({"a": X, "b": X}, {"a": X, "c": X})
    assert not verdict.ok
    assert verdict.problems == ("output 'b': missing", "output 'c': not expected")


def test_sequences_are_compared_element_by_element_and_by_length():
    assert compare({"s": [X, X]}, {"s": [X, X]}).ok
    assert len(compare({"s": [X, X]}, {"s": (X, X)}).outputs) == 2
    assert not compare({"s": [X, X]}, {"s": [X]}).ok
    assert not compare({"s": []}, {"s": [X]}).ok
    assert not compare({"s": []}, {}).ok
    assert compare({"s": [X, X]}, {"s": [X, X + 1]}).worst.name == "s[1]"


def test_optionals_agree_only_with_optionals():
    assert compare({"o": None}, {"o": None}).ok
    assert not compare({"o": None}, {"o": X}).ok
    assert not compare({"o": X}, {"o": None}).ok


def test_maps_are_compared_key_by_key():
    assert compare({"p": [{"cat": 0.5}]}, {"p": [{"cat": 0.5}]}).ok
    assert not compare({"p": [{"cat": 0.5}]}, {"p": [{"dog": 0.5}]}).ok


def test_an_empty_tensor_agrees_with_an_empty_tensor_of_its_shape():
    output = only(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    assert output.ok
    assert output.metrics.worst is None
    assert not only(np.zeros((0, 3)), np.zeros((0, 4))).ok


def test_values_of_an_unknown_kind_are_refused():
    with pytest.raises(InputError):
        only(np.array(["2020"], "datetime64[Y]"), np.array(["2020"], "datetime64[Y]"))


def test_the_truth_of_a_verdict_is_whether_it_agrees():
    assert compare({"y": X}, {"y": X})
    assert not compare({"y": X}, {"y": X + 1})
    assert only(X, X)
    assert not only(X, X + 1)


@pytest.mark.parametrize("nothing", [{}, [], ()])
def test_nothing_is_no_agreement(nothing):
    verdict = compare(nothing, nothing)
    assert not verdict
    assert verdict.problems == ("nothing was compared: there are no outputs",)
    assert "nothing was compared" in str(verdict)
    assert verdict.worst is None


def test_an_empty_sequence_agrees_with_an_empty_sequence():
    assert compare({"s": []}, {"s": []})
    assert not compare({"s": []}, {"s": [X]})


# --- forms


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (X, X),
        (X.tolist(), X.tolist()),
        (2.5, 2.5),
        ("a", "a"),
        ([X, X], (X, X)),
        ({"y": X}, X),
        ({"y": X}, [X]),
        (X, {"y": X}),
        ({"y": X, "z": X + 1}, (X, X + 1)),
        ([X, X + 1], {"y": X, "z": X + 1}),
        ({"s": [X, X]}, [X, X]),
    ],
)
def test_outputs_without_names_are_matched_where_that_is_clear(expected, actual):
    assert compare(expected, actual)


@pytest.mark.parametrize("other", [(X + 1, X), [X, X + 1, X], X])
def test_outputs_without_names_are_not_matched_at_will(other):
    if isinstance(other, tuple):
        assert not compare({"y": X, "z": X + 1}, other)
    else:
        with pytest.raises(InputError, match=r"2 outputs by name.*\['y', 'z'\]"):
            compare({"y": X, "z": X + 1}, other)


@pytest.mark.parametrize(
    "bad", [None, object(), {"y": object()}, {"y": np.array([object()])}, {1, 2}, {"y": iter([1])}]
)
def test_what_is_no_output_is_refused(bad):
    with pytest.raises(InputError):
        compare(bad, bad)


def test_tensors_of_torch_are_read_whatever_hangs_on_them():
    import torch

    values = torch.from_numpy(X)
    conjugate = torch.complex(values, values).conj()
    for tensor in (
        values.clone().requires_grad_(),
        values.to(torch.bfloat16),
        values.T,
        values[0, 0],
        conjugate,
        -conjugate.imag,
    ):
        assert compare(tensor, tensor.detach().clone())
    assert compare(values.to(torch.bfloat16), X.astype(ml_dtypes.bfloat16))
    assert not compare(values.to(torch.float8_e5m2), (values + 1).to(torch.float8_e5m2))


def test_a_tensor_that_is_not_here_is_refused_with_what_helps():
    import torch

    with pytest.raises(InputError, match=r"value 'y': a Tensor cannot be read as an array.*tensor\.cpu\(\)"):
        compare({"y": torch.zeros(2, device="meta")}, {"y": X})
    with pytest.raises(InputError, match=r"to_dense"):
        compare({"y": torch.eye(2).to_sparse()}, {"y": X})


# --- forms of it


def test_a_verdict_prints_as_a_table():
    lines = str(compare({"a": X, "b": X}, {"a": X, "b": X + 1})).splitlines()
    assert lines[0] == "1 of 2 outputs differs"
    assert lines[2].split() == ["output", "type", "verdict", "max", "abs", "max", "rel", "cosine", "of", "tolerance"]
    assert lines[3].split()[:4] == ["a", "float32[7,", "10]", "agrees"]
    assert lines[-1].startswith("output 'b': 70 of 70 elements differ")
    assert repr(compare(X, X)) == "<Comparison: 1 output agrees>"
    assert repr(compare(X, X + 1)) == "<Comparison: 1 output differs>"


def test_a_verdict_prints_with_colours_and_without_markup_of_its_own():
    import rich.console

    console = rich.console.Console(file=io.StringIO(), width=120)
    console.print(compare({"[bold]y": X}, {"[bold]y": X + 1}))
    assert "[bold]y" in console.file.getvalue()


# --- metrics


def test_the_metrics_are_what_they_say():
    metrics = only(np.array([1.0, 2.0, 0.0, 4.0]), np.array([1.0, 1.0, 0.5, 6.0]), Tolerance(0.5, 0.0)).metrics
    assert metrics.max_abs == 2.0
    assert metrics.max_rel == 0.5
    assert metrics.mean_abs == pytest.approx(3.5 / 4)
    assert metrics.rms == pytest.approx(math.sqrt((1 + 0.25 + 4) / 4))
    assert metrics.cosine == pytest.approx((1 + 2 + 24) / math.sqrt(21) / math.sqrt(1 + 1 + 0.25 + 36))
    assert metrics.fraction_mismatched == 0.5
    assert metrics.excess == 4.0
    assert (metrics.worst.index, metrics.worst.expected, metrics.worst.actual) == ((3,), 4.0, 6.0)
    assert sum(metrics.histogram) == 4
    assert metrics.histogram[0] == 1


def test_non_finite_values_are_counted_on_each_side():
    metrics = only(np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.nan, np.nan])).metrics
    assert metrics.nans == (1, 3)
    assert metrics.infs == (1, 0)
    assert metrics.mismatched == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_what_was_never_finite_is_not_called_an_error_of_zero(value, dtype):
    nothing = np.full((2, 3), value).astype(dtype)
    output = only(nothing, nothing)
    figures = output.metrics
    assert output.ok
    assert output.hollow
    assert (figures.size, figures.finite, figures.mismatched) == (6, 0, 0)
    told = (figures.max_abs, figures.max_rel, figures.mean_abs, figures.rms, figures.cosine, figures.excess)
    assert all(math.isnan(each) for each in told)
    verdict = compare({"y": nothing, "z": X}, {"y": nothing, "z": X})
    assert verdict.hollow == ("y",)
    assert verdict.worst.name == "z"
    assert "no finite element in y" in str(verdict)
    assert "n/a" in str(verdict)


def test_a_finite_element_among_nans_is_measured():
    metrics = only(np.array([np.nan, 1.0]), np.array([np.nan, 1.5]), Tolerance(1.0, 0.0)).metrics
    assert (metrics.finite, metrics.max_abs, metrics.excess) == (1, 0.5, 0.5)
    assert not only(np.array([np.nan]), np.array([1.0])).hollow
    assert only(np.array([np.nan]), np.array([1.0])).metrics.max_abs == math.inf


def test_half_precision_is_measured_in_float64():
    expected = np.full(3, 65504, np.float16)
    assert only(expected, -expected).metrics.max_abs == 131008.0


def test_the_worst_element_is_found_in_a_later_block_of_a_strided_array():
    wide = np.zeros((600, 1000))
    actual = wide.copy()
    actual[597, 998] = 1.0
    output = only(wide[:, ::2], actual[:, ::2])
    assert output.metrics.worst.index == (597, 499)
    assert output.metrics.mismatched == 1


def test_a_large_comparison_needs_little_memory():
    expected = np.zeros(8_000_000, np.float32)
    actual = expected.copy()
    tracemalloc.start()
    try:
        assert only(expected, actual).ok
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < expected.nbytes


def test_the_worst_output_is_the_one_furthest_off_for_what_is_allowed():
    verdict = compare({"a": X, "b": X, "c": X}, {"a": X, "b": X + 1, "c": X + np.float32(1e-6)})
    assert verdict.worst.name == "b"
    assert compare({}, {}).worst is None


@settings(derandomize=True, max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20),
    st.floats(0, 1, width=32),
    st.floats(0, 1, width=32),
    st.integers(0, 1000),
)
def test_the_verdict_is_numpys_allclose(values, atol, rtol, seed):
    expected = np.array(values)
    actual = expected * (1 + np.random.default_rng(seed).normal(0, 0.5, expected.size))
    assert only(expected, actual, Tolerance(atol, rtol)).ok == np.allclose(actual, expected, rtol=rtol, atol=atol)
