"""The way down, one small model per rule, judged by onnxruntime's own kernels of both opsets."""

from __future__ import annotations

import pytest

from entrepot.ir.opset.convert import can_convert
from tests.ir.opset.down import CASES, FAMILIES
from tests.ir.opset.down.case import UNARY
from tests.ir.opset.evaluate import assert_same, parse


def test_every_family_names_its_cases_apart() -> None:
    assert len(CASES) == sum(len(family.CASES) for family in FAMILIES)


@pytest.mark.parametrize(
    ("name", "target"), [(name, target) for name, case in CASES.items() for target in case.targets]
)
def test_the_older_form_computes_the_same(name: str, target: int) -> None:
    case = CASES[name]
    model = parse(case.body, case.opset, case.signature, stored=case.stored)
    older = assert_same(model, target, *case.feeds, atol=case.atol)
    assert_same(older, case.opset, *case.feeds, atol=case.atol)


REFUSED = {
    "a stepless unknown axis": (18, 17, "y = ReduceSum(x, a)", "float[3,4] x, int64[1] a) => (float[3,4] y", None),
    "dilated average": (
        19,
        18,
        "y = AveragePool<kernel_shape = [2], dilations = [2]>(x)",
        "float[1,1,N] x) => (float[1,1,M] y",
        "not fixed",
    ),
    "trigonometry before opset 7": (7, 6, "y = Sin(x)", UNARY, "trigonometric"),
    "regions by half pixels": (
        16,
        15,
        "y = RoiAlign(x, r, b)",
        "float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y",
        "regions",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_older_version_cannot_say_is_refused_with_the_reason(name: str) -> None:
    opset, target, body, signature, reason = REFUSED[name]
    blockers = can_convert(parse(body, opset, signature), target)
    assert bool(blockers) is (reason is not None)
    assert reason is None or reason in str(blockers[0])
