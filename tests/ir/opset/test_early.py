"""Steps below opset 7 in both directions, judged by an evaluator written from the specification; and itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.rules import Step
from tests.ir.opset.evaluate import assert_near, checked, op_types, parse
from tests.ir.opset.test_legacy import CASES as LEGACY
from tests.judges.early.evaluate import BreachError, CannotJudgeError, run
from tests.op_cases import all_cases
from tests.op_cases.case import Case
from tests.sweeps import old_rows
from tests.sweeps.old_nodes import X, floats, old_nodes
from tests.sweeps.rows import BAD, RANDOM, steps, verdicts

SAMPLE = [case for case in all_cases() if not case.domain]
SAMPLE = [case for case in SAMPLE if not any(word in case.op_type.lower() for word in RANDOM)][::4]


def _early(case: Case) -> list[Step]:
    return [step for step in steps(case) if (step.start or step.stop - 1) < 7]


def _bad(found: Iterable[tuple[Step, str, str]]) -> list[tuple[Step, str, str]]:
    return [item for item in found if item[1] in BAD]


@pytest.mark.parametrize("part", range(4))
def test_no_step_of_a_case_below_opset_7_is_wrong_or_invalid(part: int) -> None:
    found = [verdict for case in SAMPLE[part::4] for verdict in verdicts(case, _early(case))]
    assert sum(verdict == "right" for _, verdict, _ in found) > len(found) // 2
    assert sum(verdict == "not judged" for _, verdict, _ in found) < len(found) // 25
    assert _bad(found) == []


@pytest.mark.parametrize("part", range(4))
def test_no_step_of_an_old_node_is_wrong_or_invalid(part: int) -> None:
    found = [verdict for node in list(old_nodes())[part::8] for verdict in old_rows.judged(node)]
    assert sum(verdict == "right" for _, verdict, _ in found) > len(found) * 4 // 5
    assert _bad(found) == []


LENIENT = {
    "div with axis -1": "no text gives -1 a meaning; Caffe2 did",
    "cast by lower-case name": "DataType has capitals",
    "split without an axis": "Split 1 has no default axis",
}


def _old(model: Model, *arrays: np.ndarray) -> list[np.ndarray]:
    proto = ir.serde.serialize_model(model.ir)
    return run(proto, dict(zip([spec.name for spec in model.inputs], arrays, strict=True)))


def _legacy(name: str) -> Model:
    case = LEGACY[name]
    return parse(case.body, case.opset, case.signature, stored=case.stored, ir_version=4)


def _is_unknown(name: str) -> bool:
    """Whether the evaluator leaves the file alone: operators without a specification, and what only runtimes allow."""
    operators = op_types(_legacy(name))
    return name in LENIENT or any(not onnx.defs.has(op) or op == "ThresholdedRelu" for op in operators)


OLDEST = [name for name, case in LEGACY.items() if case.opset < 7]
UNKNOWN = [name for name in OLDEST if _is_unknown(name)]


@pytest.mark.parametrize("name", sorted(set(OLDEST) - set(UNKNOWN)))
def test_the_evaluator_agrees_with_numpy_on_legacy_files(name: str) -> None:
    feeds = LEGACY[name].feeds
    expected = LEGACY[name].expected(*feeds)
    for have, want in zip(
        _old(_legacy(name), *feeds), expected if isinstance(expected, list) else [expected], strict=True
    ):
        assert_near(have, want)


@pytest.mark.parametrize("name", UNKNOWN)
def test_the_evaluator_refuses_what_it_does_not_know(name: str) -> None:
    with pytest.raises((BreachError, CannotJudgeError)):
        _old(_legacy(name), *LEGACY[name].feeds)


FOUR = "float[2,3,4,5] a, float[{b}] b) => (float[2,3,4,5] y"
ONE = "float[2,3,4,5] x) => (float[N] y"
NEWER = {
    "broadcasting unasked": (6, "y = Add(a, b)", FOUR.format(b="5"), "without broadcast=1"),
    "broadcasting of sizes of 1": (6, "y = Add<broadcast = 1>(a, b)", FOUR.format(b="1,5"), "is not that of"),
    "broadcasting at the wrong axis": (
        6,
        "y = Mul<broadcast = 1, axis = 2>(a, b)",
        FOUR.format(b="3,4"),
        "not that of",
    ),
    "broadcasting of the first": (6, "y = Mul<broadcast = 1>(b, a)", FOUR.format(b="5"), "does not fit"),
    "a sum that broadcasts": (6, "y = Sum(a, b)", FOUR.format(b="5"), "shapes"),
    "a slope for the last axis": (6, "y = PRelu(a, b)", FOUR.format(b="5"), "slope"),
    "a slope with axes": (6, "y = PRelu(a, b)", FOUR.format(b="3,1,1"), "slope"),
    "a negative axis of Softmax": (6, "y = Softmax<axis = -1>(x)", ONE, "axis -1"),
    "negative axes of a reduction": (6, "y = ReduceSum<axes = [-1]>(x)", ONE, "axes"),
    "a negative axis of Concat": (6, "y = Concat<axis = -1>(x, x)", ONE, "axis -1"),
    "negative axes of Unsqueeze": (6, "y = Unsqueeze<axes = [-1]>(x)", ONE, "axes"),
    "negative axes of Slice": (6, "y = Slice<axes = [-1], starts = [0], ends = [1]>(x)", ONE, "axes"),
    "integers in Max": (6, "y = Max(x, x)", "int32[2] x) => (int32[2] y", "is tensor"),
    "integers in Add": (1, "y = Add(x, x)", "int32[2] x) => (int32[2] y", "is tensor"),
    "integers in Reshape": (1, "y = Reshape<shape = [2]>(x)", "int64[2] x) => (int64[2] y", "is tensor"),
    "two types": (6, "y = Mul<broadcast = 1>(a, b)", "float[2] a, double[1] b) => (float[2] y", "others are"),
    "an attribute to come": (
        6,
        "y = AveragePool<kernel_shape = [2, 2], count_include_pad = 1>(x)",
        ONE,
        "no attribute",
    ),
    "a second output of MaxPool": (6, "y, z = MaxPool<kernel_shape = [2, 2]>(x)", ONE, "2 outputs"),
    "a shape as an input": (4, "y = Reshape(x, s)", "float[4] x, int64[1] s) => (float[4] y", "2 values"),
    "negative pads": (1, "y = Pad<paddings = [-1, 0]>(x)", "float[4] x) => (float[3] y", "negative"),
    "a normalised vector": (
        1,
        "y = InstanceNormalization(x, s, s)",
        "float[2,3,4] x, float[3] s) => (float[2,3,4] y",
        "four axes",
    ),
    "a number for a type": (5, "y = Cast<to = 1>(x)", ONE, "of another type"),
    "a name for a type": (6, 'y = Cast<to = "FLOAT">(x)', ONE, "of another type"),
    "C of another shape": (
        6,
        "y = Gemm(a, b, c)",
        "float[3,4] a, float[4,2] b, float[2] c) => (float[3,2] y",
        "without broadcast=1",
    ),
    "repeats for some axes": (6, "y = Tile(x, t)", "float[2,3] x, int64[1] t) => (float[2,6] y", "repeats"),
    "a sequence unasked": (
        6,
        "y = RNN<hidden_size = 5>(x, w, r)",
        "float[4,2,3] x, float[1,5,3] w, float[1,5,5] r) => (float[4,1,2,5] y",
        "never computed",
    ),
}


def _zeros(value: ir.Value) -> np.ndarray:
    assert value.shape is not None
    assert value.dtype is not None
    return np.ones([int(dim) for dim in value.shape if isinstance(dim, int)], value.dtype.numpy())


@pytest.mark.parametrize("name", NEWER)
def test_the_evaluator_refuses_what_only_newer_opsets_allow(name: str) -> None:
    opset, body, signature, reason = NEWER[name]
    model = parse(body, opset, signature, ir_version=3)
    with pytest.raises(BreachError, match=reason):
        _old(model, *map(_zeros, model.ir.graph.inputs))


EXPERIMENTAL = {
    "affine": ("Affine<alpha = 2.0, beta = 1.0>(x)", X),
    "image scaler": ("ImageScaler<scale = 2.0, bias = [0.5, 1.0, 1.5]>(x)", X),
    "crop": ("Crop<border = [1, 0, 2, 1]>(x)", X),
    "crop to a size": ("Crop<border = [1, 1, 0, 0], scale = [2, 3]>(x)", X),
    "parametric softplus": ("ParametricSoftplus<alpha = 0.5, beta = 2.0>(x)", X),
    "scaled tanh": ("ScaledTanh<alpha = 0.5, beta = 2.0>(x)", X),
    "scale": ("Scale<scale = 3.0>(x)", X),
    "thresholded relu": ("ThresholdedRelu<alpha = 0.5>(x)", X),
    "mean and variance": ("MeanVarianceNormalization(x)", X),
    "mean alone": ("MeanVarianceNormalization<normalize_variance = 0>(x)", X),
    "across channels": ("MeanVarianceNormalization<across_channels = 1>(x)", X),
}


def _in_onnxruntime(model: Model, *arrays: np.ndarray) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = ir.serde.serialize_model(model.ir).SerializeToString()
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(zip([spec.name for spec in model.inputs], arrays, strict=True))))


@pytest.mark.parametrize("target", [6, 7, 9, 13])
@pytest.mark.parametrize("name", EXPERIMENTAL)
def test_an_experimental_operator_means_what_onnxruntime_still_computes(name: str, target: int) -> None:
    call, x = EXPERIMENTAL[name]
    model = parse(f"y = {call}", 6 if target > 6 else 5, "float[2,3,4,5] x) => (float[N,C,H,W] y", ir_version=3)
    raised = convert_opset(model, target)
    checked(raised)
    (want,) = _in_onnxruntime(model, x)
    (have,) = _old(raised, x) if target == 6 else _in_onnxruntime(raised, x)
    assert_near(have, want)


def test_training_stays_training_above_opset_6() -> None:
    model = parse(
        "y, m2, v2, sm, sv = BatchNormalization<momentum = 0.5>(x, s, b, m, v)",
        6,
        "float[2,3,4,5] x, float[3] s, float[3] b, float[3] m, float[3] v)"
        " => (float[2,3,4,5] y, float[3] m2, float[3] v2",
        ir_version=3,
    )
    arrays = (X, *(floats(3, low=0.5, seed=seed) for seed in range(4)))
    raised = convert_opset(model, 15)
    proto = checked(raised)
    have = onnx.reference.ReferenceEvaluator(proto).run(None, dict(zip("xsbmv", arrays, strict=True)))
    for ours, want in zip(have, _old(model, *arrays), strict=True):
        np.testing.assert_allclose(ours, want, rtol=1e-4, atol=1e-5)


def test_training_whose_statistics_nobody_reads_stays_training() -> None:
    model = parse(
        "y, m2, v2, sm, sv = BatchNormalization(x, s, s, s, s)",
        6,
        "float[2,3,4,5] x, float[3] s) => (float[2,3,4,5] y",
        ir_version=3,
    )
    arrays = (X, floats(3, low=0.5))
    proto = checked(convert_opset(model, 15))
    (have,) = onnx.reference.ReferenceEvaluator(proto).run(None, dict(zip("xs", arrays, strict=True)))
    np.testing.assert_allclose(have, _old(model, *arrays)[0], rtol=1e-4, atol=1e-5)


def test_counts_of_a_tile_of_booleans_are_not_booleans() -> None:
    model = parse("y = Tile(x, t)", 13, "bool[2,3] x) => (bool[6,3] y", stored="int64[2] t = {3, 1}")
    (have,) = _old(convert_opset(model, 1), np.eye(2, 3) > 0)
    assert have.tolist() == np.tile(np.eye(2, 3) > 0, (3, 1)).tolist()


def test_what_negative_pads_remove_is_cut_off_at_the_end_below_version_2() -> None:
    model = parse("y = Pad<pads = [-1, 2, 1, -2]>(x)", 2, "float[4,5] x) => (float[4,5] y", ir_version=3)
    x = floats(4, 5)
    after = convert_opset(model, 1)
    assert op_types(after) == ["Pad", "Slice"]
    np.testing.assert_array_equal(_old(after, x)[0], _old(model, x)[0])
