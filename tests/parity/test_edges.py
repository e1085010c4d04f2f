import numpy as np
import onnx_ir
import pytest

from entrepot.ir.model import Model
from entrepot.parity.edges import beside, edge_cases, moved, without_doubt
from entrepot.parity.judge import Judge
from entrepot.parity.plan import Case


def feeds_of(cases, name, edge):
    return np.concatenate([case.feeds[name].reshape(-1) for case in cases if case.edge == edge])


@pytest.mark.parametrize("size", [7, 30, 1000])
def test_every_edge_value_is_fed_whatever_the_size(size):
    fed = feeds_of(edge_cases({"x": np.linspace(-1, 1, size, dtype=np.float32)}), "x", "finite")
    for value in (0.0, 1e-30, 0.5, -2.5, 100.0, -1e4):
        assert np.float32(value) in fed
    assert np.signbit(fed[fed == 0]).any()
    assert not np.signbit(fed[fed == 0]).all()


def test_large_inputs_keep_half_of_their_own_values():
    own = np.linspace(-1, 1, 1000, dtype=np.float32)
    (case,) = [case for case in edge_cases({"x": own}) if case.edge == "finite"]
    assert np.isclose((case.feeds["x"] == own).mean(), 0.5, atol=0.01)


def test_values_that_are_not_finite_come_in_a_run_of_their_own():
    cases = list(edge_cases({"x": np.ones((2, 3), np.float32)}))
    special = feeds_of(cases, "x", "special")
    assert np.isnan(special).any()
    assert np.isinf(special).sum() == 2
    assert np.isfinite(feeds_of(cases, "x", "finite")).all()


def test_two_inputs_are_tried_together_and_alone_and_many_together_only():
    one = np.ones(100, np.float32)
    labels = [case.label for case in edge_cases({"x": one, "y": one}) if case.edge == "finite"]
    assert labels == ["edge values of 'x' and 'y'", "edge values of 'x'", "edge values of 'y'"]
    many = {f"x{at}": one for at in range(9)}
    assert [case.label for case in edge_cases(many) if case.edge == "finite"] == ["edge values of 9 inputs"]


def test_integers_and_sequences_are_left_alone():
    sample = {"ids": np.arange(3), "items": [np.ones(3, np.float32)], "empty": np.ones((0, 2), np.float32)}
    assert not list(edge_cases(sample))


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16", "float8_e4m3fn"])
def test_every_float_type_gets_what_it_can_hold(dtype):
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for case in edge_cases({"x": np.ones(200).astype(kind)}):
        assert case.feeds["x"].dtype == kind
        assert case.edge == "special" or np.isfinite(case.feeds["x"].astype(np.float64)).all()


def settled(expected, actual, *others):
    tables = [{"y": np.float32(other)} for other in others]
    return without_doubt({"y": np.float32(expected)}, {"y": np.float32(actual)}, tables)["y"].tolist()


def test_an_element_that_the_source_is_sure_of_stays_as_it_is():
    assert settled([1, 2], [1.5, np.nan], [1, 2]) == pytest.approx([1.5, np.nan], nan_ok=True)


def test_what_the_source_itself_answers_in_two_ways_is_taken_from_it():
    assert settled([np.inf, 1, np.nan, 5], [7, 7, 7, 7], [1e30, np.nan, 3, 1e-9]) == pytest.approx(
        [np.inf, 1, np.nan, 5], nan_ok=True
    )


def test_digits_that_change_with_the_precision_are_taken_from_it_and_no_others():
    assert settled([1.0], [1.01], [1.001]) == [1.0]
    assert settled([1.0], [1.1], [1.001]) == pytest.approx([1.1])


def test_sums_of_infinities_may_be_nan_where_that_is_asked_for():
    expected, actual = np.float32([np.inf, -np.inf, np.nan, np.inf, 1]), np.float32([np.nan, np.inf, 1, 7, np.nan])
    for overflows, result in ((True, [np.inf, -np.inf, 1, 7, np.nan]), (False, actual.tolist())):
        found = without_doubt({"y": expected}, {"y": actual}, [{"y": expected}], overflows=overflows)["y"]
        assert found.tolist() == pytest.approx(result, nan_ok=True)


def test_ties_are_broken_where_that_is_asked_for():
    seen = []
    for ties in (False, True):
        seen.clear()
        moved(lambda feeds: seen.append(feeds["x"]) or {}, {"x": np.zeros(50, np.float32)}, ties=ties)
        assert bool(np.any(seen)) is ties


def spread(function, x):
    """How far off a function of float32 is near some numbers, in units in the last place of its results."""
    here = {"y": function(x)}
    found = beside(lambda feeds: {"y": function(feeds["x"])}, lambda feeds: {"y": exactly(function, feeds)}, {"x": x})
    return np.max([np.abs(each["y"] - here["y"]) for each in found], axis=0) / np.spacing(np.abs(here["y"]))


def exactly(function, feeds):
    return function(feeds["x"].astype(np.float64))


def test_a_formula_that_cancels_is_as_uncertain_at_a_number_where_it_happens_to_be_exact():
    x = np.linspace(-6, -3, 200, dtype=np.float32)
    far = spread(lambda x: 1 + np.tanh(x), x)
    exact = np.abs((1 + np.tanh(x)) - (1 + np.tanh(x.astype(np.float64)))) < np.finfo(np.float32).eps / 64
    assert exact.any()
    assert np.median(far[exact]) > 32


def test_a_formula_that_keeps_its_digits_is_not_uncertain_anywhere():
    x = np.concatenate([np.linspace(-80, 80, 200), [-1e4, -2.5, 1e-30, 1e4]]).astype(np.float32)
    assert spread(lambda x: 2 / (1 + np.exp(-np.clip(x, -80, 80))), x).max() <= 8


class Difference:
    """``(a * a + b) - a * a``, where ``a * a`` outweighs ``b`` by so much that float32 keeps its multiples of 8."""

    name = "numpy"

    def run(self, feeds):
        a, b = feeds["x"][:1], feeds["x"][1:]
        return {"y": (a * a + b) - a * a}

    def exact(self, feeds):
        return {"y": feeds["x"].astype(np.float64)[1:]}


def test_that_a_source_is_exact_at_one_input_only_is_luck():
    text = '<ir_version: 10, opset_import: ["": 20]> sums (float[2] x) => (float[1] y) { y = ReduceSum (x) }'
    judge = Judge(Difference(), Model(onnx_ir.from_onnx_text(text)), None, {})
    case = Case("edge values", {"x": np.array([1e4, 800], np.float32)}, edge="finite")
    expected = Difference().run(case.feeds)
    assert expected == Difference().exact(case.feeds)
    assert judge.compare(case, expected, {"y": np.float32([808])}, "cpu").ok
    assert not judge.compare(case, expected, {"y": np.float32([1200])}, "cpu").ok


class Chaotic:
    """Two hundred thousand numbers of which one rounding of the input decides the digits; not known in float64."""

    name = "numpy"

    def run(self, feeds):
        rng = np.random.default_rng(list(feeds["x"].tobytes()))
        return {"y": (1 + 1e-3 * rng.standard_normal(200_000)).astype(np.float32)}


def test_of_many_elements_none_is_sure_by_luck():
    text = '<ir_version: 10, opset_import: ["": 20]> sums (float[50] x) => (float[1] y) { y = ReduceSum (x) }'
    case = Case("edge values", {"x": np.full(50, 1e4, np.float32)}, edge="finite")
    expected = Chaotic().run(case.feeds)
    rng = np.random.default_rng(1)
    actual = (expected["y"] + 1e-3 * rng.standard_normal(200_000)).astype(np.float32)
    judge = Judge(Chaotic(), Model(onnx_ir.from_onnx_text(text)), None, {})
    assert judge.compare(case, expected, {"y": actual}, "cpu").ok
    actual[7] += 1
    assert not judge.compare(case, expected, {"y": actual}, "cpu").ok
