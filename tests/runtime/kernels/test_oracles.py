"""Which operator cases only one oracle judges, or none. A new case moves a number here; nothing else should."""

from __future__ import annotations

from collections import Counter

from tests.judges.oracle import silences
from tests.op_cases import all_cases

CASES = all_cases()
REASONS = {
    "NOT_IMPLEMENTED": "no kernel for the operator or the element type",
    "INVALID_GRAPH": "its schema lacks the operator, the attribute or the element type",
    "Numpy": "its Python interface lacks the element type",
    "MLDataType": "its Python interface lacks the element type",
    "OrtValues": "its Python interface lacks the element type",
    "Invalid tensor data type": "its schema lacks the operator, the attribute or the element type",
}


def test_how_many_cases_onnxruntime_is_silent_about_and_why() -> None:
    said = [found["onnxruntime"] for case in CASES if "onnxruntime" in (found := silences(case))]
    why = Counter(next((reason for sign, reason in REASONS.items() if sign in text), "it fails") for text in said)
    assert why == {
        "no kernel for the operator or the element type": 247,
        "its schema lacks the operator, the attribute or the element type": 47,
        "it fails": 29,
        "its Python interface lacks the element type": 15,
    }


def test_which_operators_onnx_reference_fails_on() -> None:
    assert Counter(case.op_type for case in CASES if "reference" in silences(case)) == {
        "ConvTranspose": 1,
        "Flatten": 1,
        "GatherElements": 3,
        "LayerNormalization": 1,
        "MaxPool": 2,
        "MeanVarianceNormalization": 1,
        "NonMaxSuppression": 1,
        "OneHot": 2,
        "Pad": 3,
        "ReduceLogSumExp": 1,
        "STFT": 2,
        "Softsign": 1,
        "TfIdfVectorizer": 1,
    }


def test_how_many_cases_are_judged_by_whom() -> None:
    trusted = Counter(", ".join(case.oracles) or "the case itself" for case in CASES)
    assert trusted == {"reference, onnxruntime": 2462, "the case itself": 162, "onnxruntime": 83, "reference": 40}
