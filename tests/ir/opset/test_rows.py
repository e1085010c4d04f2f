"""Steps of every operator on a sample of the operator cases; ``benchmarks.opset_rows`` judges them all."""

from __future__ import annotations

import pytest

from benchmarks.opset_rows import judged
from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import checked, op_types, parse
from tests.op_cases import all_cases

EVALUATORS_DIFFER = {
    "Cast": "how numbers are spelled as strings",
    "CastLike": "as Cast",
    "Gather": "onnxruntime's kernels of Gather 1 and 11 lose most of the strings",
    "NonZero": "of a scalar: onnxruntime takes it for a vector of one",
    "TopK": "in the order of sorted=0, which is free",
    "Unique": "of NaN, which onnxruntime's kernel drops",
    "Dropout": "in its draws",
    "ReduceSum": "of integers that overflow: onnxruntime's older kernels saturate",
    "Sign": "of NaN below opset 9",
    "Shrink": "of NaN below opset 9",
    "Bernoulli": "in its draws",
    "Multinomial": "in its draws",
}
SAMPLE = [case for case in all_cases() if not case.domain and case.op_type not in EVALUATORS_DIFFER][::25]
SAMPLE = [case for case in SAMPLE if "Random" not in case.op_type]


@pytest.mark.parametrize("part", range(4))
def test_no_step_of_a_case_is_wrong_or_invalid(part: int) -> None:
    verdicts = [found for case in SAMPLE[part::4] for found in judged(case)]
    assert sum(verdict == "right" for _, verdict, _ in verdicts) > len(verdicts) // 3
    assert [found for found in verdicts if found[1] in ("wrong", "invalid", "crashed")] == []


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
