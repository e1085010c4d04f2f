from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir
import pytest

from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.parity.compare import Tolerance
from entrepot.parity.plan import Case, plan_cases
from entrepot.parity.sources import ModelSource, SourceRefusal
from entrepot.parity.verify import verify

HEAD = '<ir_version: 10, opset_import: ["": 20]>'
X = {"x": np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)}


def model_of(body, inputs="float[batch, 3] x", outputs="float[batch, 3] y"):
    return Model(onnx_ir.from_onnx_text(f"{HEAD} net ({inputs}) => ({outputs}) {{ {body} }}"))


class Function:
    """A source written in NumPy."""

    name = "numpy"

    def __init__(self, function, refuses=()):
        self.function = function
        self.refuses = refuses

    def run(self, feeds):
        if len(feeds["x"]) in self.refuses:
            raise SourceRefusal(f"cannot take {len(feeds['x'])} rows")
        return {"y": self.function(feeds["x"])}


def relu(x):
    return np.maximum(x, 0)


def test_a_model_that_does_the_same_is_verified_at_every_size_and_provider():
    model = model_of("y = Relu(x)")
    report = verify(Function(relu), model, plan_cases(model, X))
    assert report.ok, str(report)
    assert {run.provider for run in report.runs} == {"cpu", "onnxruntime"}
    assert {run.label for run in report.runs} == {
        "sample", "other values", "batch=5", "batch=8", "batch=1", "batch=0",
    }  # fmt: skip
    assert report.unproven == ()


def test_what_a_kernel_refuses_because_of_a_nan_elsewhere_is_noted():
    """onnxruntime (1.31) finds the first place where a NaN is the largest, and refuses to divide by it."""
    body = """two = Constant <value = int64[1] {2}> ()
        length = Constant <value = int64[1] {12}> ()
        values, places = TopK (x, two)
        y = Div (length, places)"""
    model = model_of(body, "float[4] x", "int64[2] y")
    source = Function(lambda x: np.array([12, 4]))
    feeds = {"x": np.array([1, np.nan, 2, 3], np.float32)}
    report = verify(source, model, [Case("NaN", feeds, edge="special")])
    assert {run.provider: run.verdict for run in report.runs} == {"cpu": "agrees", "onnxruntime": "noted"}
    asked = verify(source, model, [Case("NaN", feeds, edge="special")], providers=("onnxruntime",))
    assert [run.verdict for run in asked.runs] == ["error"]
    report = verify(source, model, [Case("NaN", feeds)])
    assert {run.provider: run.verdict for run in report.runs} == {"cpu": "agrees", "onnxruntime": "error"}


def test_a_model_that_differs_at_one_size_only_is_not():
    model = model_of(
        """one = Constant <value = int64[1] {1}> ()
           n = Shape <start = 0, end = 1> (x)
           is_one = Equal (n, one)
           z = Sigmoid (x)
           r = Relu (x)
           y = Where (is_one, z, r)"""
    )
    report = verify(Function(relu), model, plan_cases(model, X), providers=["cpu"])
    assert not report.ok
    assert [run.label for run in report.failures] == ["batch=1"]
    assert report.worst.label == "batch=1"
    assert "output 'y'" in report.worst.message


def test_what_the_source_refuses_is_recorded_and_not_asked_of_the_model():
    model = model_of("y = Relu(x)")
    report = verify(Function(relu, refuses={0, 1}), model, plan_cases(model, X), providers=["cpu"])
    assert report.ok
    assert [(run.label, run.message) for run in report.refusals] == [
        ("batch=1", "cannot take 1 rows"),
        ("batch=0", "cannot take 0 rows"),
    ]


def test_a_symbol_whose_other_sizes_are_all_refused_is_called_unproven():
    model = model_of("y = Relu(x)")
    report = verify(Function(relu, refuses={0, 1, 5, 8}), model, plan_cases(model, X), providers=["cpu"])
    assert report.ok
    assert report.unproven == ("batch",)
    assert "no other size proved for batch" in report.summary()


def test_inputs_that_name_one_batch_twice_are_proved_at_other_sizes_of_both():
    proto = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 18]>
        net (float[one, 3] a, float[other, 3] b) => (float[one, k] y) { s = Concat<axis = 1>(a, b) y = Relu(s) }""")
    model, feeds = load(proto), {name: np.ones((2, 3), np.float32) for name in "ab"}
    report = verify(ModelSource(model), model, plan_cases(model, feeds), providers=["cpu"])
    assert report.ok
    assert {run.label for run in report.runs if run.ok} >= {"one=3, other=3", "one=1, other=1"}
    assert {run.label for run in report.refusals} >= {"one=3", "other=3"}
    assert not report.unproven


def test_a_source_that_refuses_the_sample_proves_nothing():
    model = model_of("y = Relu(x)")
    report = verify(Function(relu, refuses={4}), model, plan_cases(model, X), providers=["cpu"])
    assert not report.ok
    assert report.worst.verdict == "error"


def test_nothing_compared_is_not_verified():
    assert not verify(Function(relu), model_of("y = Relu(x)"), [], providers=["cpu"]).ok


def test_a_run_that_fails_is_a_failure_with_its_message():
    model = model_of("s = Constant <value = int64[2] {4, 3}> ()  y = Reshape (x, s)")
    report = verify(Function(lambda x: x), model, plan_cases(model, X), providers=["cpu"])
    assert not report.ok
    failed = {run.label: run for run in report.failures}
    assert set(failed) == {"batch=5", "batch=8", "batch=1", "batch=0"}
    assert "Reshape" in failed["batch=5"].message
    assert report.worst.excess == float("inf")


def test_a_model_no_provider_runs_is_a_failure_and_not_an_exception():
    text = """<ir_version: 10, opset_import: ["": 20, "acme": 1]>
    net (float[batch, 3] x) => (float[batch, 3] y) { y = acme.Fancy(x) }"""
    report = verify(Function(relu), Model(onnx_ir.from_onnx_text(text)), [X], providers=["cpu"])
    assert not report.ok
    assert "Fancy" in report.worst.message


DOUBLE = Model(
    onnx_ir.from_onnx_text(f"{HEAD} net (double[batch, 3] x) => (double[batch, 3] y) {{ e = Erf(x)  y = Relu(e) }}")
)


def erf_relu(x):
    return np.maximum(np.vectorize(math.erf, otypes=[np.float64])(x), 0)


def test_a_second_opinion_that_lacks_an_operator_is_recorded_and_no_failure():
    report = verify(Function(erf_relu), DOUBLE, plan_cases(DOUBLE, {"x": X["x"].astype(np.float64)}))
    assert report.ok, str(report)
    assert [(run.provider, run.label) for run in report.declined] == [("onnxruntime", "every input")]
    assert "Erf" in report.declined[0].message
    assert "runs on cpu agree" in report.summary()
    assert "onnxruntime does not run it" in report.summary()


def test_an_operator_that_a_provider_asked_for_by_name_lacks_is_a_failure():
    report = verify(Function(erf_relu), DOUBLE, [{"x": X["x"].astype(np.float64)}], providers=["cpu", "onnxruntime"])
    assert not report.ok
    assert [run.provider for run in report.failures] == ["onnxruntime"]


def test_an_unknown_provider_is_the_callers_mistake():
    with pytest.raises(InputError, match="abacus"):
        verify(Function(relu), model_of("y = Relu(x)"), [X], providers=["abacus"])


def test_a_source_that_breaks_is_not_taken_for_a_refusal():
    def broken(_x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        verify(Function(broken), model_of("y = Relu(x)"), [X], providers=["cpu"])


def test_a_source_that_writes_into_its_inputs_does_not_change_what_the_model_gets():
    def in_place(x):
        x *= 0
        return x

    report = verify(Function(in_place), model_of("y = Relu(x)"), [X], providers=["cpu"])
    assert not report.ok


def test_a_missing_output_is_a_failure():
    report = verify(Function(relu), model_of("z = Relu(x)", outputs="float[batch, 3] z"), [X], providers=["cpu"])
    assert report.failures[0].message == "output 'y': missing; output 'z': not expected"


def test_the_tolerance_is_the_callers():
    model = model_of("h = Constant <value = float {0.01}> ()  r = Relu(x)  y = Add(r, h)")
    assert not verify(Function(relu), model, [X], providers=["cpu"]).ok
    assert verify(Function(relu), model, [X], providers=["cpu"], tolerance=Tolerance(0.02, 0.0)).ok


def test_two_models_are_held_against_each_other():
    one, same, other = model_of("y = Relu(x)"), model_of("z = Neg(x)  w = Neg(z)  y = Relu(w)"), model_of("y = Abs(x)")
    source = ModelSource(one)
    assert source.name == "net on cpu"
    assert verify(source, same, plan_cases(one, X), providers=["cpu"]).ok
    assert not verify(source, other, plan_cases(one, X), providers=["cpu"]).ok


def test_a_size_the_first_model_cannot_run_is_refused_by_it():
    model = model_of("s = Constant <value = int64[2] {4, 3}> ()  y = Reshape (x, s)")
    report = verify(ModelSource(model), model, plan_cases(model, X), providers=["cpu"])
    assert report.ok
    assert report.unproven == ("batch",)


def test_progress_names_the_stages():
    lines = []
    verify(Function(relu), model_of("y = Relu(x)"), [X], providers=["cpu"], progress=lines.append)
    assert lines == ["running numpy: feeds 0", "verifying on cpu: feeds 0"]


# --- sources that amplify rounding


WAVE = """a = Constant <value = float {3.0}> ()  b = Constant <value = float {333.33334}> ()
          ax = Mul(a, x)  abx = Mul(b, ax)  y = Sin(abx)"""


def wave(x):
    """So ill-conditioned that the order of two products shows in the fourth digit."""
    return np.sin(x * np.float32(1000))


def test_a_difference_that_rounding_alone_makes_is_not_a_failure():
    report = verify(Function(wave), model_of(WAVE), [X], providers=["cpu"])
    assert report.ok, str(report)
    assert report.sensitive
    assert "what rounding alone does" in report.summary()


def test_a_greater_difference_is_one_even_for_a_sensitive_source():
    model = model_of(WAVE.replace("y = Sin(abx)", "h = Constant <value = float {0.1}> () s = Sin(abx)  y = Add(s, h)"))
    assert not verify(Function(wave), model, [X], providers=["cpu"]).ok


def test_the_callers_tolerance_is_not_widened():
    model = model_of(WAVE)
    assert not verify(Function(wave), model, [X], providers=["cpu"], tolerance=Tolerance(1e-5, 1e-5)).ok
