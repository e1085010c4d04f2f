from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from entrepot.ir.model import Model
from entrepot.ir.opset.values import LIMIT, Known
from entrepot.ir.typing.query import Types
from tests.ir.opset.evaluate import parse


def known(model: Model, name: str) -> Any:
    graph = model.ir.graph
    query = Known(model.ir.ir_version)
    Types(query, graph.opset_imports)
    values = {**{value.name: value for node in graph for value in node.outputs}, **graph.initializers}
    return query.array(values[name])


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("value = int64[2] {1, 2}", [1, 2]),
        ("value_int = 3", 3),
        ("value_ints = [1, 2]", [1, 2]),
        ("value_float = 0.5", 0.5),
        ("value_floats = [0.5]", [0.5]),
        ('value_string = "a"', "a"),
        ('value_strings = ["a", "b"]', ["a", "b"]),
    ],
)
def test_a_constant_is_known_in_every_form(attribute: str, expected: Any) -> None:
    model = parse(f"c = Constant<{attribute}>() y = Relu(x)", 18)
    assert np.array_equal(known(model, "c"), np.array(expected))


def test_an_initializer_is_known_unless_it_may_be_fed() -> None:
    fixed = parse("y = Reshape(x, s)", 18, stored="int64[1] s = {-1}")
    fed = parse("y = Reshape(x, s)", 18, "float[N,4] x, int64[1] s) => (float[M] y", stored="int64[1] s = {-1}")
    assert known(fixed, "s").tolist() == [-1]
    assert known(fed, "s") is None


def test_up_to_ir_3_an_initializer_has_to_be_an_input_and_is_known_all_the_same() -> None:
    signature = "float[N,4] x, int64[1] s) => (float[M] y"
    model = parse("y = Reshape(x, s)", 8, signature, stored="int64[1] s = {-1}", ir_version=3)
    assert known(model, "s").tolist() == [-1]


def test_arithmetic_on_a_fixed_shape_folds() -> None:
    body = """
        s = Shape(x)
        zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>()
        r = Gather(s, zero) c = Slice(s, one, two) m = Mul(r, c) t = Concat<axis = 0>(m, zero)
        u = Unsqueeze(m, zero) f = Cast<to = 1>(m) y = Relu(x)
    """
    model = parse(body, 18, "float[3,4] x) => (float[3,4] y")
    assert known(model, "t").tolist() == [12, 0]
    assert known(model, "u").tolist() == [[12]]
    assert known(model, "f").dtype == np.float32


def test_a_shape_that_is_not_fixed_is_not_known() -> None:
    assert known(parse("s = Shape(x) y = Relu(x)", 18), "s") is None


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("start = 1", [4, 5]), ("start = -1", [5]), ("start = 1, end = 2", [4]), ("start = -9", None),
        ("end = 1", None), ("start = 2, end = 1", []), ("start = 1, end = 9", [4, 5]), ("end = -3", []),
    ],
)  # fmt: skip
def test_the_fixed_part_of_a_shape_is_known(part: str, expected: list[int] | None) -> None:
    found = known(parse(f"s = Shape<{part}>(x) y = Relu(x)", 18, "float[n,4,5] x) => (float[n,4,5] y"), "s")
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("c = Gather(s, one)", [4]), ("c = Gather(s, both)", [[4, 5]]), ("c = Gather(s, zero)", None),
        ("c = Slice(s, one, end)", [4, 5]), ("c = Slice(s, zero, end)", None), ("c = Slice(s, end, one)", []),
        ("a = Gather(s, one) b = Slice(s, one, end) c = Mul(a, b)", [16, 20]),
    ],
)  # fmt: skip
def test_a_choice_among_sizes_is_known_if_the_chosen_ones_are_fixed(choice: str, expected: list[int] | None) -> None:
    stored = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] end = {9}, int64[1, 2] both = {1, -1}"
    model = parse(f"s = Shape(x) {choice} y = Relu(x)", 18, "float[n,4,5] x) => (float[n,4,5] y", stored=stored)
    found = known(model, "c")
    assert (None if found is None else found.tolist()) == expected
    assert found is None or found.dtype == np.int64


def test_weights_are_not_read() -> None:
    def explode() -> ir.Tensor:
        raise AssertionError("a weight was read")

    model = parse("t = Add(x, w) y = Relu(t)", 18, stored="float[1] w = {0}")
    weight = model.ir.graph.initializers["w"]
    weight.const_value = ir.LazyTensor(explode, ir.DataType.FLOAT, ir.Shape([LIMIT + 1]), name="w")
    assert known(model, "w") is None
    assert known(model, "t") is None


def test_random_values_are_not_known() -> None:
    assert known(parse("r = RandomNormal<shape = [2]>() y = Relu(x)", 18), "r") is None


def test_asking_for_what_is_not_known_does_not_walk_every_path_back() -> None:
    body = " ".join(f"v{n + 1} = Add(v{n}, v{n})" for n in range(60))  # 2**60 paths
    model = parse(f"v0 = Identity(x) {body} y = Relu(v60)", 14)
    value = model.ir.graph[-1].inputs[0]
    assert Known(8).array(value) is None
