"""Quantised networks are as exact as their roundings allow, and no less."""

from __future__ import annotations

import numpy as np
import pytest

import entrepot as ep
from entrepot.exporters.options import Judging
from entrepot.exporters.proof.conversion import report_on
from entrepot.parity.sources import ModelSource
from entrepot.parity.unsteady import rounds_to_steps
from tests.ir.opset.evaluate import parse
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.case import f32
from tests.op_cases.contributed import ms

STEP = 0.25
FEEDS = {"i": np.array([0, 1, 2], np.int64)}


def network(row: str, zero: int = 3) -> ep.Model:
    """Rows of a table, quantised and back."""
    stored = f"float[3] w = {row}, float s = {{{STEP}}}, uint8 z = {{{zero}}}, uint8 back = {{3}}"
    body = "a = Gather(w, i)  q = QuantizeLinear(a, s, z)  y = DequantizeLinear(q, s, back)"
    return parse(body, 13, "int64[N] i) => (float[N] y", stored=stored)


HALFWAY, CLEAR = "{0.125, 1.375, 2.625}", "{0.25, 1.3, 2.7}"


def test_a_number_half_way_between_two_steps_may_go_to_either() -> None:
    assert rounds_to_steps(network(HALFWAY))
    assert ModelSource(network(HALFWAY), "onnxruntime").steps(FEEDS)["y"] == pytest.approx(STEP, rel=1e-4)


def test_numbers_near_one_step_stay_there() -> None:
    assert ModelSource(network(CLEAR), "onnxruntime").steps(FEEDS)["y"] < 1e-5


def test_a_network_without_steps_is_not_run_again() -> None:
    plain = parse("y = Relu(x)", 13)
    assert not rounds_to_steps(plain)
    assert ModelSource(plain, "onnxruntime").steps({"x": np.ones((1, 4), np.float32)}) == {}


@pytest.mark.parametrize(("row", "zero", "agrees"), [(CLEAR, 3, True), (CLEAR, 4, False), (HALFWAY, 5, False)])
def test_a_step_too_many_is_found_all_the_same(row: str, zero: int, agrees: bool) -> None:
    report = report_on(network(row), network(row, zero), FEEDS, Judging())
    assert (not report.failures) == agrees


OFTEN = "a = MatMul(x, w)  b = com.microsoft.QuickGelu(a)  y = Mul(b, x)"


def test_what_onnxruntime_adds_is_proved_like_the_rest() -> None:
    imports, stored = ', "com.microsoft": 1', "float[4, 4] w = {1,0,2,0, 0,1,0,3, 1,1,1,1, 0,0,2,1}"
    model = parse(OFTEN, 13, stored=stored, imports=imports)
    report = ep.to_torch(model).report
    assert report is not None
    assert report.ok


@pytest.mark.parametrize(("level", "exact"), [(0, True), (4, False)])
def test_a_product_that_may_be_made_of_bytes_is_no_more_exact_than_that(level: int, exact: bool) -> None:
    rng = np.random.default_rng(0)
    packed, steps = rng.integers(0, 256, (8, 2, 16), np.uint8), rng.uniform(0.1, 0.2, 16).astype(np.float32)
    case = ms("MatMulNBits", f32(3, 64), packed, steps, K=64, N=8, block_size=32, accuracy_level=level).storing(1, 2)
    model = ep.load(case.model())
    apart = run_onnxruntime(case.model(), case.feeds())[0] - next(iter(ep.Session(model).run(case.feeds()).values()))
    assert (np.abs(apart).max() < 1e-4) == exact
    assert not report_on(model, model, case.feeds(), Judging()).failures


def test_nodes_that_onnxruntime_fuses_and_rounds_otherwise_are_judged_as_they_stand() -> None:
    stored = "float s = {0.01}, uint8 z = {100}, float t = {0.00390625}, uint8 u = {0}"
    body = """
        a = Gather(w, i)  q = QuantizeLinear(a, s, z)  b = DequantizeLinear(q, s, z)  c = Softmax<axis = -1>(b)
        d = QuantizeLinear(c, t, u)  y = DequantizeLinear(d, t, u)
    """
    table = "float[3, 1] w = {0.5, 1, 1.5}, "
    model = parse(body, 17, "int64[N] i) => (float[N, 1] y", stored=table + stored)
    assert not report_on(model, model, FEEDS, Judging()).failures
