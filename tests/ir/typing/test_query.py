from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.opset.values import Known
from entrepot.ir.typing.query import Types
from tests.ir.opset.evaluate import parse


def types_of(model: Model) -> tuple[Types, dict[str, ir.Value]]:
    graph = model.ir.graph
    values = {value.name or "": value for node in graph.all_nodes() for value in node.outputs}
    types = Types(Known(model.ir.ir_version), graph.opset_imports, model.ir.functions)
    return types, values


def test_types_and_shapes_follow_from_producers() -> None:
    model = parse("a = Shape(x) b = Cast<to = 1>(a) c = Greater(b, b) d = MatMul(x, w) y = Relu(d)", 18, stored=W)
    types, values = types_of(model)
    assert [types.dtype(values[name]).name for name in "abcd"] == ["INT64", "FLOAT", "BOOL", "FLOAT"]
    assert types.shape(values["d"]) == ir.Shape(["N", 2])
    assert values["d"].type is None, "nothing is written to the model"


W = "float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}"


def test_a_known_shape_input_gives_the_rank() -> None:
    model = parse("t = Reshape(x, s) y = Relu(t)", 18, stored="int64[3] s = {-1, 2, 2}")
    types, values = types_of(model)
    shape = types.shape(values["t"])
    assert shape is not None
    assert len(shape) == 3


def test_both_branches_of_an_if_agree_or_the_shape_is_unknown() -> None:
    body = "t = If(c) <then_branch = a () => (p) {{ p = {} }}, else_branch = b () => (q) {{ q = Relu(x) }}> y = Relu(t)"
    signature = "float[3,4] x, bool c) => (float[3,4] y"
    for branch, rank in (("Neg(x)", 2), ("Flatten<axis = 0>(x)", None)):
        types, values = types_of(parse(body.format(branch), 18, signature))
        shape = types.shape(values["t"])
        assert (None if shape is None else len(shape)) == rank
        assert types.dtype(values["t"]) == ir.DataType.FLOAT


def test_a_call_has_the_type_that_the_body_gives_it() -> None:
    functions = '<domain: "local", opset_import: ["": 18]> f (t) => (u) { u = Shape(t) }'
    model = parse("s = local.f(x) y = Relu(x)", 18, functions=functions, imports=', "local": 1')
    types, values = types_of(model)
    assert types.dtype(values["s"]) == ir.DataType.INT64


def test_what_an_unknown_operator_makes_is_unknown() -> None:
    model = parse("t = com.acme.Frob(x) u = Relu(t) y = Relu(x)", 18, imports=', "com.acme": 1')
    types, values = types_of(model)
    assert types.dtype(values["u"]) is None
    assert types.shape(values["u"]) is None


def test_a_scan_hands_its_body_slices() -> None:
    body = "y = Scan<num_scan_inputs = 1, body = b (e) => (o) { t = Relu(e) o = Neg(t) }>(x)"
    model = parse(body, 18, "float[5,3] x) => (float[5,3] y")
    types, values = types_of(model)
    types.carry(model.ir.graph.node(0))
    assert types.shape(values["t"]) == ir.Shape([3])
    assert types.dtype(values["t"]) == ir.DataType.FLOAT
