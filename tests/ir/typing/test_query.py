from __future__ import annotations

import onnx
import onnx.shape_inference
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


def test_a_size_that_a_reshape_leaves_over_is_the_one_that_varies() -> None:
    expected = {
        "-1, 4, 1": ["N", 4, 1], "1, -1, 2, 2": [1, "N", 2, 2], "0, -1": ["N", 4], "-1, 2": [None, 2], "-1": [None],
    }  # fmt: skip
    for sizes, shape in expected.items():
        count = sizes.count(",") + 1
        model = parse("t = Reshape(x, s) y = Relu(t)", 18, stored=f"int64[{count}] s = {{{sizes}}}")
        types, values = types_of(model)
        found = types.shape(values["t"])
        assert found is not None
        assert [dim if isinstance(dim, int) else dim.value for dim in found] == shape


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


def test_nodes_that_look_alike_are_told_apart_by_all_that_matters() -> None:
    """Each line is the one before it but for one thing; twice over, so that what was found once is used again."""
    lines = """
        {i}a = Flatten<axis = 1>(x)      {i}b = Flatten<axis = 0>(x)    {i}c = Flatten<axis = 1>(z)
        {i}d = Reshape(x, two)           {i}e = Reshape(x, three)      {i}cc = Reshape(x, other)
        {i}f = Add(x, x)                 {i}g = Add(x, row)             {i}h = Add(k, k)
        {i}j = Cast<to = 7>(x)           {i}l = Cast<to = 1>(x)
        {i}m, {i}n = Split<axis = 1, num_outputs = 2>(x)
        {i}p, {i}q = Split<axis = 1>(x, parts)
        {i}r = ReduceSum(x, one)         {i}s = ReduceSum(x)
        {i}t = Concat<axis = 0>(x, x)    {i}u = Concat<axis = 1>(x, x)
        {i}v = Shape(x)                  {i}w = Shape<start = 1>(x)     {i}o = Shape(z)
        {i}aa = Abs(one_symbol)          {i}bb = Abs(another)
    """
    body = "".join(lines.format(i=prefix) for prefix in ("first_", "second_")) + "y = Relu(x)"
    stored = (
        "int64[1] one = {1}, int64[2] two = {8, 3}, int64[2] other = {12, 2}, int64[3] three = {2, 3, 4}, "
        "int64[2] parts = {1, 3}, float[1, 4] row = {1, 2, 3, 4}"
    )
    model = parse(
        body,
        18,
        "float[6,4] x, float[6,2,4] z, int32[6,4] k, float[M,4] one_symbol, float[K,4] another) => (float[6,4] y",
        stored=stored,
    )
    expected = onnx.shape_inference.infer_shapes(model.to_proto(), strict_mode=True).graph.value_info
    types, values = types_of(model)
    assert len(expected) == 48
    for info in expected:
        found = types.spec(values[info.name])
        assert (found.type.dtype, found.shape) == (
            ir.serde.deserialize_type_proto_for_type(info.type).dtype,
            ir.serde.deserialize_type_proto_for_shape(info.type),
        ), info.name
