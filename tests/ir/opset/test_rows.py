"""Steps of every operator on a sample of the operator cases; ``benchmarks.opset_rows`` judges them all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.rules import Step
from tests.ir.opset.evaluate import checked, op_types, parse
from tests.judges.differences import DIFFERENCES, Difference, known
from tests.judges.draws import draws, draws_differ
from tests.judges.evaluators import evaluate
from tests.judges.oracle import run_onnxruntime
from tests.judges.settle import settle
from tests.op_cases import all_cases
from tests.op_cases.case import Case, bf16, f32, floats, ints, strings
from tests.op_cases.ml import ensemble
from tests.op_cases.variants import variants
from tests.sweeps.rows import BAD, judged, operators, steps, verdicts

CASES = [case for case in all_cases() if not case.domain and "Random" not in case.op_type][::8]
CASES = [case for case in CASES if case.op_type not in ("Bernoulli", "Multinomial")]
OPERATORS = [cases for (domain, _), cases in operators("").items() if not domain]


def _bad(found: Iterable[tuple[Step, str, str]]) -> list[tuple[Step, str, str]]:
    return [item for item in found if item[1] in BAD]


@pytest.mark.parametrize("part", range(4))
def test_no_step_of_a_case_is_wrong_or_invalid(part: int) -> None:
    found = [verdict for case in CASES[part::4] for verdict in judged(case)]
    assert sum(verdict == "right" for _, verdict, _ in found) > len(found) // 3
    assert _bad(found) == []


@pytest.mark.parametrize("part", range(8))
def test_no_step_of_a_variant_is_wrong_or_invalid(part: int) -> None:
    chosen = [case for cases in OPERATORS[part::8] for case in islice(variants(cases, settle, strength=1), 3, None, 12)]
    found = [verdict for case in chosen for verdict in judged(case, changing=True)]
    assert sum(verdict == "right" for _, verdict, _ in found) > len(found) // 3
    assert _bad(found) == []


@pytest.mark.parametrize("case", list(draws())[::3], ids=str)
def test_draws_keep_their_distribution(case: Case) -> None:
    found = list(judged(case))
    assert "right" in {verdict for _, verdict, _ in found}
    assert _bad(found) == []


def test_draws_of_another_distribution_are_told_apart() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 2000)), rng.normal(size=(2, 2000))
    assert draws_differ(one, other) == ""
    assert "apart" in draws_differ(one, other + np.array([[0], [0.3]]))
    coins = (rng.uniform(size=(2, 2, 2000)) < 0.5).astype(np.float32)
    assert draws_differ(*coins) == ""
    coins[1, 1, 7] = 0.5
    assert "never drawn" in draws_differ(*coins)
    assert "instead of" in draws_differ(one, other.astype(np.float32))


WORDS = strings([["a", "b", "c"], ["d", "e", "f"]])
NAN = floats(1, np.nan)
EXAMPLES = {
    ("Trilu", 14): Case("Trilu", WORDS),
    ("Sign", 9): Case("Sign", NAN),
    ("Shrink", 9): Case("Shrink", NAN),
    ("DynamicQuantizeLinear", 11): Case("DynamicQuantizeLinear", floats(0, 0))
    .outputs(3)
    .held_to("onnxruntime", why="onnx.reference divides by a scale of zero"),
    ("BatchNormalization", 14): Case(
        "BatchNormalization", f32(2, 3, 0), *(f32(3, low=0.5) for _ in range(4)), training_mode=1
    ).outputs(3),
    ("TreeEnsemble", 5): ensemble(leaf_targetids=[0, 1, 0, 1, 1], n_targets=2, post_transform=1).held_to(
        "onnxruntime", why="onnx.reference transforms nothing"
    ),
    **{
        (name, 22): Case(
            name, f32(1, 1, 9), kernel_shape=[2], dilations=[3], strides=[3], auto_pad="SAME_LOWER"
        ).held_to("onnxruntime", why="what the difference says is its")
        for name in ("AveragePool", "LpPool", "MaxPool")
    },
    ("GridSample", 22): Case("GridSample", f32(1, 2, 5, 6), bf16(1, 4, 3, 2)),
    ("MeanVarianceNormalization", 13): Case("MeanVarianceNormalization", f32(2, 3, 4, 5)),
    ("ReduceLogSumExp", 19): Case("ReduceLogSumExp", floats(1000, -1000, dtype=np.float16)).giving(
        np.array([1000], np.float16)
    ),
    ("ReduceMean", 18): Case("ReduceMean", np.zeros((0, 3), np.uint64)).giving(np.array([[7]], np.uint64)),
    ("Bernoulli", 22): Case("Bernoulli", floats(0, 1)).giving(floats(0, 1)),
    ("Dropout", 12): Case("Dropout", f32(2, 3)).outputs(2),
}


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda item: f"{item.op_type}-{item.below}")
def test_a_difference_between_evaluators_is_still_there(difference: Difference) -> None:
    case = EXAMPLES[difference.op_type, difference.below]
    bad = _bad(verdicts(case, list(steps(case))))
    assert bad, "it is gone: so can its entry be"
    assert {known(case, step) for step, _, _ in bad} == {difference.why}


def test_onnxruntime_still_loses_words_that_it_gathers() -> None:
    case = Case("Gather", WORDS, ints(1, 0))
    with pytest.raises(AssertionError, match="not equal"):
        np.testing.assert_array_equal(run_onnxruntime(case.model(13), case.feeds())[0], WORDS[::-1])
    assert evaluate(case.model(13), case.feeds()).by == "reference"


def test_quantising_integers_goes_through_floats_where_the_scale_has_the_type_of_the_input() -> None:
    model = parse("y = QuantizeLinear(x, s, z)", 13, "int32[N] x, float s, uint8 z) => (uint8[N] y")
    after = convert_opset(model, 19)
    checked(after)
    assert op_types(after) == ["Cast", "QuantizeLinear"]


def test_interpolated_integers_are_refused_below_their_modes() -> None:
    model = parse(
        'y = Resize<mode = "cubic">(x, , s)',
        13,
        "uint8[1,1,4,4] x) => (uint8[1,1,8,8] y",
        stored="float[4] s = {1, 1, 2, 2}",
    )
    with pytest.raises(ConversionError, match="interpolated integers"):
        convert_opset(model, 10)


def test_a_top_of_nothing_is_refused_below_version_10() -> None:
    model = parse("y, i = TopK(x, k)", 11, "float[N,4] x) => (float[N,0] y, int64[N,0] i", stored="int64[1] k = {0}")
    with pytest.raises(ConversionError, match="K is 0"):
        convert_opset(model, 9)


def test_a_scalar_constant_stays_a_scalar_below_its_birth() -> None:
    model = parse("y = ConstantOfShape(s)", 9, "int64[0] s) => (float y")
    after = convert_opset(model, 8)
    checked(after)
    assert "Expand" in op_types(after)
