"""Formulas of sizes, what is fitted to numbers, and where a sequence repeats itself."""

import math

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import pytest

from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.fitting import fitted
from entrepot.exporters.paths.periods import aligned, stretches
from entrepot.exporters.paths.writing import Writer

SIZES = [{"n": n, "m": m} for n, m in ((11, 7), (6, 13), (5, 4), (17, 9), (8, 22), (23, 3))]
FORMULAS = [
    "n",
    "2 * n - 1",
    "n // 4",
    "(n + 3) // 4",
    "-n % 7",
    "(3 * n) // 2",
    "n * m",
    "(n // 2) * (m // 2)",
    "n * n",
    "3 * n + 2 * m - 5",
    "Max(n, 9)",
]
REALS = ["1 / sqrt(n)", "0.5 * log(n)", "n / 8.0", "1 / (n - 1)", "(n + 0.1) / 4"]


def value(text, sizes):
    names = {"Max": max, "Min": min, "sqrt": math.sqrt, "log": math.log}
    return eval(text, names, dict(sizes))


@pytest.mark.parametrize("text", FORMULAS)
def test_whole_numbers_become_the_formula_that_made_them(text):
    found = fitted([value(text, sizes) for sizes in SIZES], SIZES)
    for n in range(1, 60):
        elsewhere = {"n": n, "m": (5 * n) % 31 + 1}
        assert found(elsewhere) == value(text, elsewhere)


@pytest.mark.parametrize("text", REALS)
def test_numbers_in_single_precision_become_the_formula_that_made_them(text):
    found = fitted([float(np.float32(value(text, sizes))) for sizes in SIZES], SIZES)
    for n in range(2, 60):
        assert found({"n": n, "m": 1}) == pytest.approx(value(text, {"n": n}), rel=1e-6)


def test_numbers_that_follow_nothing_have_no_formula():
    assert fitted([3, 1, 4, 1, 5, 9], SIZES) is None
    assert fitted([4, 4, 4, 4, 4, 4], SIZES) == 4


@pytest.mark.parametrize("text", ["m", "2 * m", "n * m", "n * n"])
def test_two_captures_are_enough_for_a_size_and_for_a_product(text):
    sizes = [{"n": 3, "m": 25}, {"n": 5, "m": 13}]  # where 43 - 6 * n is m, too, and 90 - 5 * n is n * m
    found = fitted([value(text, each) for each in sizes], sizes)
    assert found({"n": 1, "m": 12}) == value(text, {"n": 1, "m": 12})


def test_a_formula_that_the_capture_knows_comes_first():
    sizes = [{"n": 6}, {"n": 10}]
    known = Expression("TruncToInt(1.5*ToFloat(n))")
    assert fitted([9, 15], sizes, [known]) == known


def written(expression, sizes):
    """What onnxruntime computes for a formula of the size of an input."""
    inputs = [onnx_ir.val(name, onnx_ir.DataType.FLOAT, [name]) for name in sizes]
    graph = onnx_ir.Graph(inputs, [], nodes=[], opset_imports={"": 20}, name="formula")
    writer = Writer(graph, {value.name: (value, 0) for value in inputs})
    whole = not isinstance(expression(sizes), float)
    result = writer.scalar(expression, onnx_ir.DataType.INT64 if whole else onnx_ir.DataType.DOUBLE)
    writer.place()
    graph.outputs.append(result)
    result.type = onnx_ir.TensorType(onnx_ir.DataType.INT64 if whole else onnx_ir.DataType.DOUBLE)
    result.shape = onnx_ir.Shape([])
    model = onnx_ir.to_proto(onnx_ir.Model(graph, ir_version=10))
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {name: np.zeros(size, np.float32) for name, size in sizes.items()})[0]


@pytest.mark.parametrize(
    "text",
    [
        *FORMULAS,
        *REALS,
        "Mod(4 - (Mod(n, 4)), 4)",
        "Eq(Mod(n, 2), 0)",
        "(n >= 4) & (m >= 4) | Ne(n, m)",
        "TruncToInt(1.5*ToFloat(n))",
        "CeilToInt(IntTrueDiv(n, m))",
        "TruncToInt(FloatPow(ToFloat(n * n), 0.5))",
        "PowByNatural(n, 2)",
        "n > 3 and not m < 5",
        "(2 - n) // 3",
        "Min(n, m, 7)",
    ],
)
@pytest.mark.parametrize("sizes", [{"n": 5, "m": 8}, {"n": 12, "m": 3}, {"n": 1, "m": 1}])
def test_a_written_formula_computes_what_it_says(text, sizes):
    expression = Expression(text)
    if expression(sizes) is not None:
        assert written(expression, sizes) == pytest.approx(float(expression(sizes)), rel=1e-12)


@pytest.mark.parametrize(
    "text", ["Eq(n, m)", "Ne(n, m)", "n == m", "n != m", "n > m", "n <= m", "n >= m", "n < m", "Eq(n // 2, 2*(m // 4))"]
)
def test_a_comparison_is_told_by_a_number(text):
    _, number = Expression(text).numbers()
    seen = {}
    for sizes in ({"n": n, "m": m} for n in range(1, 9) for m in range(1, 9)):
        seen.setdefault(bool(Expression(text)(sizes)), set()).add(number(sizes))
    assert sorted(map(sorted, seen.values())) == [[0], [1]]


def test_other_conditions_are_told_by_no_number():
    assert Expression("(n >= 4) & (m >= 4)").numbers() == []


@pytest.mark.parametrize("text", ["__import__('os')", "n.real", "[n]", "n if m else 1", "lambda: n", "f(n)", "n +"])
def test_nothing_but_arithmetic_is_a_formula(text):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is all there is to say
        Expression(text)
    assert str(raised.value) == text


def test_the_repetition_that_covers_most_is_found():
    found = stretches("xabcabcabcy")
    assert [(each.start, each.length, each.count) for each in found] == [(0, 1, 1), (1, 3, 3), (10, 1, 1)]


def test_sequences_that_repeat_more_or_less_often_are_aligned():
    first, second = aligned(["xababab" + "q" * 3 + "y", "xabababab" + "q" * 3 + "y"])
    assert [each.count for each in first] == [1, 3, 1, 1, 1, 1]
    assert [each.count for each in second] == [1, 4, 1, 1, 1, 1]


def test_loops_of_equal_bodies_after_one_another_are_no_loop_of_loops():
    first, second = aligned(["uuuuuc" * 2, "uuuuuuuc" * 2])
    assert [each.count for each in first] == [5, 1, 5, 1]
    assert [each.count for each in second] == [7, 1, 7, 1]


def test_sequences_that_differ_otherwise_are_not_aligned():
    assert aligned(["xabab", "yababab"]) is None
