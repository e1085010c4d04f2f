from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.parity import verify
from entrepot.parity.sensitivity import nudge, sensitivity

X = np.linspace(1, 2, 1000, dtype=np.float32)


def ask(function, **feeds):
    def run(fed):
        return {"y": function(**fed)}

    return sensitivity(run, feeds, run(feeds))


def test_a_well_conditioned_source_moves_by_about_one_rounding():
    assert 1e-7 < ask(lambda x: x, x=X)["y"] < 3e-7


def test_an_ill_conditioned_source_moves_by_more():
    assert ask(lambda x: np.exp(20 * (x - 1)), x=X)["y"] > 1e-3


def test_a_few_elements_that_flip_do_not_count():
    def with_flips(x):
        return np.where((x.view(np.int32) % 50 == 0), np.float32(100), np.round(x))

    assert ask(with_flips, x=X)["y"] == 0.0


def test_zeros_that_stay_zero_do_not_hide_the_others():
    assert ask(lambda x: np.where(np.arange(1000) < 900, np.float32(0), x), x=X)["y"] > 1e-8


def test_integers_and_exact_results_have_none():
    assert ask(lambda n: n.astype(np.float32), n=np.arange(5)) == {}
    assert ask(lambda x: x > 1.5, x=X) == {"y": 0.0}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_a_nudge_moves_every_float_by_one_or_two_steps(dtype):
    array = np.array([1.0, -3.0, 100.0]).astype(dtype)
    moved = nudge(array, np.random.default_rng(0))
    assert moved.dtype == array.dtype
    relative = np.abs(moved.astype(np.float64) / array.astype(np.float64) - 1)
    assert (relative > 0).all()
    assert (relative <= 2 * float(ml_dtypes.finfo(dtype).eps)).all()


def test_a_nudge_leaves_what_is_no_float():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(nudge(np.arange(3), rng), np.arange(3))
    assert nudge([np.array(True)], rng)[0].item() is True
    assert nudge(np.zeros(0, np.float32), rng).shape == (0,)


class Mixed:
    """Tanh in half precision of a product, returned in single precision."""

    name = "mixed"

    def __init__(self, precision, factor=1.0):
        self.precision, self.factor = precision, factor

    def run(self, feeds):
        x = feeds["x"].astype(np.float16)
        # NumPy rounds each sum of two where a kernel sums up in single precision
        product = np.float16([[sum((a * b for a, b in zip(row, W.T[0], strict=True)), np.float16(0))] for row in x])
        return {"y": np.tanh(product).astype(np.float32) * np.float32(self.factor)}


W = np.linspace(0.1, 1, 24).reshape(24, 1).astype(np.float16)
MIXED = """<ir_version: 10, opset_import: ["": 20]>
g (float[16, 24] x) => (float[16, 1] y) { h = Cast<to = 10>(x)  m = MatMul(h, w)  t = Tanh(m)  y = Cast<to = 1>(t) }"""


def agrees(source):
    made = onnx.parser.parse_model(MIXED)
    made.graph.initializer.append(onnx.numpy_helper.from_array(W, "w"))
    x = np.random.default_rng(1).random((16, 24), np.float32) / 8
    return verify.verify(source, ep.load(made), [{"x": x}], providers=("reference",)).ok


def test_a_source_that_computes_in_half_precision_is_as_exact_as_that_and_not_less():
    half = np.dtype(np.float16)
    assert not agrees(Mixed(None))
    assert agrees(Mixed(half))
    assert not agrees(Mixed(half, factor=1.05))


def test_a_rounding_of_a_less_exact_type_is_larger():
    moved = nudge(X, np.random.default_rng(0), np.dtype(ml_dtypes.bfloat16))
    assert moved.dtype == np.float32
    assert np.median(np.abs(moved / X - 1)) == pytest.approx(2.0**-7, rel=1e-3)


class Cancelling:
    """A small difference of large numbers, computed more exactly than the model does."""

    name = "cancelling"

    def __init__(self, slope=1e6):
        self.slope, self.runs = slope, 0

    def run(self, feeds):
        self.runs += 1
        return {"y": (feeds["x"].astype(np.float64) * self.slope - 1e6).astype(np.float32)}


def test_a_source_is_run_again_only_as_often_as_it_takes_to_see_how_exact_it_is():
    made = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
        g (float[1000] x) => (float[1000] y)
        <float a = {1000000}> { m = Mul(x, a)  y = Sub(m, a) }""")
    x = np.linspace(1, 1.001, 1000, dtype=np.float32)
    exact, wrong = Cancelling(), Cancelling(slope=1.001e6)
    providers = ("cpu", "reference")
    assert verify.verify(exact, ep.load(made), [{"x": x}], providers=providers).ok
    assert not verify.verify(wrong, ep.load(made), [{"x": x}], providers=providers).ok
    assert exact.runs == 2 < wrong.runs
