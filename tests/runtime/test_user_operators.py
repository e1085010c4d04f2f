"""``ep.op``: one registration, and every provider runs the operator; without it, a refusal says what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir
import pytest

import entrepot as ep
from entrepot.exporters.operators import Operator
from entrepot.ir.errors import ExecutionError, InputError, UnsupportedOpError
from entrepot.ir.inference import list_nodes

X = np.array([[-1.5, 2.0, 0.25]], np.float32)


def model(text: str) -> ep.Model:
    return ep.Model(onnx_ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 20, "test.ops": 2]> {text}'))


CHAIN = "g (float[n, 3] x) => (y) { a = Relu(x)  b = test.ops.Scaled <factor = 3.0> (a)  y = Neg(b) }"


@pytest.fixture
def scaled() -> Iterator[Operator]:
    @ep.op("test.ops", "Scaled", since=2)
    def scaled(x, offset=None, *, factor: float = 2.0):
        """x times a factor."""
        y = x * np.float32(factor)
        return y if offset is None else y + offset

    yield scaled
    scaled.remove()


@pytest.mark.parametrize("providers", [["cpu"], ["reference"], ["torch"], ["onnxruntime"], ["onnxruntime", "cpu"]])
def test_every_provider_runs_it(scaled: Operator, providers: list[str]) -> None:
    session = ep.Session(model(CHAIN), providers=providers)
    np.testing.assert_array_equal(session.run({"x": X})["y"], -3 * np.maximum(X, 0))
    placed = {row.op_type: (row.provider, row.how) for row in session.plan().placements}
    assert placed["Scaled"][1] == "python"
    assert placed["Relu"][0] == providers[0]


def test_it_runs_inside_a_branch_on_a_provider_that_knows_no_python(scaled: Operator) -> None:
    branching = model("""g (float[n, 3] x, bool c) => (y) { y = If (c) <
        then_branch = t () => (z) { z = test.ops.Scaled (x) }, else_branch = e () => (z) { z = Neg(x) } > }""")
    for providers in ("onnxruntime", "cpu"):
        session = ep.Session(branching, providers=providers)
        np.testing.assert_array_equal(session.run({"x": X, "c": np.array(True)})["y"], 2 * X)


def test_an_optional_input_may_be_left_out_or_given(scaled: Operator) -> None:
    given = model("g (float[n, 3] x) => (y) { y = test.ops.Scaled (x, x) }")
    np.testing.assert_array_equal(ep.Session(given).run({"x": X})["y"], 3 * X)
    np.testing.assert_array_equal(scaled(X, factor=1.0), X)


def test_what_nobody_has_registered_is_refused_with_what_to_write(scaled: Operator) -> None:
    scaled.remove()
    with pytest.raises(UnsupportedOpError, match=r'nobody has registered test\.ops::Scaled.*@ep\.op\("test\.ops"'):
        ep.Session(model(CHAIN))


def test_an_older_version_than_registered_is_refused(scaled: Operator) -> None:
    old = ep.Model(onnx_ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 20, "test.ops": 1]> {CHAIN}'))
    with pytest.raises(UnsupportedOpError, match="registered since version 2"):
        ep.Session(old)


def test_versions_live_side_by_side(scaled: Operator) -> None:
    @ep.op("test.ops", "Scaled", since=3)
    def newer(x, *, factor: float = 2.0):
        return x / np.float32(factor)

    try:
        assert ep.Session(model(CHAIN)).run({"x": X})["y"][0, 1] == -6
        new = ep.Model(onnx_ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 20, "test.ops": 9]> {CHAIN}'))
        assert ep.Session(new).run({"x": X})["y"][0, 1] == np.float32(-2) / np.float32(3)
    finally:
        newer.remove()


def test_a_result_that_is_not_what_was_said_is_an_error() -> None:
    @ep.op("test.ops", "Scaled", since=2)
    def wrong(x, *, factor: float = 1.0):
        return x.astype(np.float64)

    with pytest.raises(ExecutionError, match=r"test\.ops::Scaled returned float64\(1, 3\), but .* float32\(1, 3\)"):
        ep.Session(model(CHAIN)).run({"x": X})
    wrong.remove()


def test_shapes_are_inferred_as_far_as_a_file_tells_them() -> None:
    @ep.op(
        "test.ops",
        "Rows",
        outputs=2,
        shape=lambda x: (x.like(shape=x.shape[:1]), x.like(shape=(2 * x.shape[0],), dtype="int64")),
    )
    def rows(x):
        """Sums of rows, and their numbers twice."""
        return x.sum(1), np.arange(2 * len(x))

    two = model("g (float[n, 3] x) => (a, b) { a, b = test.ops.Rows (x) }")
    (node,) = list_nodes(two)
    assert [str(each and (each.dtype, each.shape)) for each in node.outputs] == [
        "('float32', ('n',))",
        "('int64', (None,))",
    ]
    found = ep.Session(two).run({"x": np.concatenate([X, X])})
    np.testing.assert_array_equal(found["b"], np.arange(4))
    rows.remove()


def test_what_cannot_be_an_operator_is_refused() -> None:
    with pytest.raises(InputError, match="belongs to the standard"):
        ep.op("", "Foo")(lambda x: x)
    with pytest.raises(InputError, match="no name of an operator"):
        ep.op("test.ops", "two words")(lambda x: x)
    with pytest.raises(InputError, match="any number of inputs"):
        ep.op("test.ops", "Many")(lambda *x: x)
    with pytest.raises(InputError, match="an attribute comes after"):
        ep.op("test.ops", "Default")(lambda x, k=3: x)
    with pytest.raises(InputError, match="neither a number nor a text"):
        ep.op("test.ops", "Odd")(lambda x, *, k={}: x)
    with pytest.raises(InputError, match="no ONNX function"):
        ep.op("test.ops", "Bad", body="y = Relu(x)")(lambda x: x)
    body = '<opset_import: ["": 20], domain: "test.ops"> Other (x) => (y) { y = Relu(x) }'
    with pytest.raises(InputError, match=r"that of test\.ops::Other"):
        ep.op("test.ops", "Mine", body=body)(lambda x: x)
    with pytest.raises(InputError, match="versions begin with 1"):
        ep.op("test.ops", "Old", since=0)(lambda x: x)


def test_an_opset_conversion_leaves_it_alone(scaled: Operator) -> None:
    lowered = ep.convert_opset(model(CHAIN), 17)
    assert [node.op_type for node in lowered.ir.graph] == ["Relu", "Scaled", "Neg"]
    np.testing.assert_array_equal(ep.Session(lowered).run({"x": X})["y"], -3 * np.maximum(X, 0))


def test_its_errors_name_the_node() -> None:
    @ep.op("test.ops", "Scaled", since=2)
    def failing(x, *, factor: float = 1.0):
        raise ValueError("no factor is good enough")

    with pytest.raises(ExecutionError, match=r"Scaled.*no factor is good enough"):
        ep.Session(model(CHAIN)).run({"x": X})
    failing.remove()


def test_only_what_can_be_imported_is_written_into_a_file(scaled: Operator) -> None:
    with pytest.raises(UnsupportedOpError, match=r"test\.ops::Scaled.*cannot be imported"):
        ep.to_numpy(model(CHAIN))
