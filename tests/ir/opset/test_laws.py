"""Laws of conversion, over random models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from hypothesis import given
from hypothesis import strategies as st

from entrepot.ir.model import Model
from entrepot.ir.opset.convert import can_convert, convert_opset
from tests.ir.opset.evaluate import assert_near, op_types, parse, run

STEPS = (
    "{y} = Softmax<axis = 1>({x})",
    "{y} = LogSoftmax<axis = -1>({x})",
    "{y} = Add({x}, w)",
    "{y} = Relu({x})",
    "{y} = HardSwish({x})",
    "{y} = Transpose<perm = [0, 2, 1]>({x})",
    "{y} = Clip({x}, low, high)",
    "{y} = ReduceMean<axes = [1], keepdims = 1>({x})",
    "{y} = Dropout({x})",
    "{y} = Where(mask, {x}, low)",
    "{y}s, {y} = Split<axis = 2>({x}, parts)",
    "{y}u = Unsqueeze({x}, one) {y} = Squeeze({y}u, one)",
    "{y} = Pad({x}, pads)",
    "{y} = If(flag) <then_branch = a () => ({y}a) {{ {y}a = Softmax<axis = 0>({x}) }},"
    " else_branch = b () => ({y}b) {{ {y}b = Identity({x}) }}>",
)
STORED = (
    "float w = {0.5}, float low = {-0.5}, float high = {2}, int64[2] parts = {2, 2}, int64[1] one = {1},"
    " int64[6] pads = {0, 0, 1, 0, 0, 1}, bool mask = {1}, bool flag = {1}"
)
X = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)


@st.composite
def models(draw: Any) -> Model:
    """A chain of operators at opset 14, square in its last two axes so that every step fits every other."""
    chosen = draw(
        st.lists(st.sampled_from(STEPS[:7] + STEPS[8:10] + STEPS[11:12] + STEPS[13:]), min_size=1, max_size=6)
    )
    body = " ".join(step.format(x=f"v{i}", y=f"v{i + 1}") for i, step in enumerate(chosen))
    last = draw(st.sampled_from(STEPS)).format(x=f"v{len(chosen)}", y="y")
    return parse(f"v0 = Identity(x) {body} {last}", 14, "float[2,4,4] x) => (float[A,B,C] y", stored=STORED)


@given(models(), st.integers(7, 26))
def test_a_conversion_keeps_the_behaviour_and_so_does_the_way_back(model: Model, target: int) -> None:
    want = run(model, X)
    there = convert_opset(model, target)
    back = convert_opset(there, 14)
    for after in (there, back):
        for have, expected in zip(run(after, X), want, strict=True):
            assert_near(have, expected)


@given(models())
def test_the_same_opset_is_the_identity(model: Model) -> None:
    assert convert_opset(model, 14) is model


@given(models(), st.integers(7, 26))
def test_every_weight_is_the_same_tensor_unless_nothing_reads_it_any_more(model: Model, target: int) -> None:
    before, after = model.ir.graph.initializers, convert_opset(model, target).ir.graph.initializers
    kept = before.keys() & after.keys()
    assert all(after[name].const_value is before[name].const_value for name in kept)
    assert all(before[name].uses() for name in before.keys() - kept)  # one that nothing read before stays
    assert "w" in kept or "w" not in before


@given(models(), st.integers(7, 26))
def test_can_convert_tells_what_convert_does(model: Model, target: int) -> None:
    assert not can_convert(model, target)


@given(models(), st.integers(15, 28))
def test_stepping_in_two_is_stepping_in_one(model: Model, middle: int) -> None:
    once, twice = convert_opset(model, 28), convert_opset(convert_opset(model, middle), 28)
    assert op_types(once) == op_types(twice)
    assert ir.serde.serialize_model(once.ir).graph.output == ir.serde.serialize_model(twice.ir).graph.output


@given(
    st.integers(-9, 9),
    st.one_of(st.integers(-9, 9), st.just(-(2**63) + 1)),
    st.sampled_from([1, 2, 3, -1, -2, -3]),
    st.sampled_from([0, 1, -1]),
)
def test_a_slice_takes_the_same_elements_below_opset_10(start: int, end: int, step: int, axis: int) -> None:
    stored = f"int64[1] a = {{{start}}}, int64[1] b = {{{end}}}, int64[1] c = {{{axis}}}, int64[1] d = {{{step}}}"
    model = parse("y = Slice(x, a, b, c, d)", 13, "float[2,4,5] x) => (float[A,B,C] y", stored=stored)
    data = np.arange(40, dtype=np.float32).reshape(2, 4, 5)
    np.testing.assert_array_equal(run(convert_opset(model, 9), data)[0], run(model, data)[0])


@given(st.sampled_from(["AveragePool", "MaxPool", "LpPool"]), st.data())
def test_pooling_has_the_same_windows_at_every_opset(op_type: str, data: Any) -> None:
    size, kernel, stride = (data.draw(st.integers(low, high)) for low, high in ((4, 10), (1, 4), (1, 4)))
    pads = [data.draw(st.integers(0, kernel - 1)) for _ in range(2)]
    attributes = f"kernel_shape = [{kernel}], strides = [{stride}], pads = {pads}, ceil_mode = 1"
    model = parse(f"y = {op_type}<{attributes}>(x)", 22, f"float[1,1,{size}] x) => (float[1,1,L] y")
    x = np.random.default_rng(size).standard_normal((1, 1, size)).astype(np.float32)
    for target in (19, 9, 7):
        np.testing.assert_allclose(run(convert_opset(model, target), x)[0], run(model, x)[0], rtol=1e-5)
