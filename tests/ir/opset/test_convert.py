from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.convert import can_convert, convert_opset, raise_to_hub
from tests.ir.opset.evaluate import assert_same, checked, op_types, parse

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 7


def test_a_model_at_the_hub_is_returned_as_it_is() -> None:
    model = raise_to_hub(parse("y = Relu(x)", 18))
    assert model.opset == OPSET
    assert raise_to_hub(model) is model


def test_the_argument_is_not_changed() -> None:
    model = parse("y = Softmax<axis = 0>(x)", 11)
    before = str(model.ir)
    convert_opset(model, 13)
    assert str(model.ir) == before


def test_a_refused_model_is_not_changed_either() -> None:
    model = parse("t = Softmax<axis = 0>(x) a, b, c, d = Unique(t) y = Relu(t)", 13)
    before = str(model.ir)
    assert can_convert(model, 9)
    assert str(model.ir) == before


def test_all_blocking_nodes_are_listed_in_one_error() -> None:
    model = parse("a = Det(m) b = Unique(x) y = Relu(x)", 13, "float[2,2] m, float[N,4] x) => (float[N,4] y")
    with pytest.raises(ConversionError) as caught:
        convert_opset(model, 9)
    assert len(caught.value.blockers) == 2
    assert [str(blocker) for blocker in can_convert(model, 9)] == [str(blocker) for blocker in caught.value.blockers]


def test_a_blocker_names_node_step_reason_and_hint() -> None:
    model = parse('["r"] y = Reshape(x, s)', 13, "float[3,4] x, int64[1] s) => (float[N] y")
    (blocker,) = can_convert(model, 4)
    assert "node 'r' (Reshape, opset 13)" in str(blocker)
    assert "the shape is computed at run time" in str(blocker)
    assert blocker.hint == "possible if the shape is a constant"


def test_a_newer_opset_than_the_hub_is_refused_with_that_reason() -> None:
    blockers = can_convert(parse("y = Relu(x)", OPSET + 1), 20)
    assert "knows versions up to" in str(blockers[0])


@pytest.mark.parametrize("target", [0, OPSET + 1])
def test_a_target_out_of_range_is_refused(target: int) -> None:
    with pytest.raises(ConversionError, match="out of range"):
        convert_opset(parse("y = Relu(x)", 18), target)


def test_an_operator_that_no_schema_knows_blocks() -> None:
    (blocker,) = can_convert(parse("y = Frobnicate(x)", 13), 18)
    assert "has no operator of this name" in str(blocker)


def test_other_domains_stay_as_they_are() -> None:
    model = parse("t = com.acme.Frob(x) y = Relu(t)", 13, imports=', "com.acme": 3')
    assert convert_opset(model, 20).opsets == {"": 20, "com.acme": 3}


def test_nodes_that_no_step_concerns_come_out_equal_and_weights_are_the_same_objects() -> None:
    model = parse('["a"] t = Add(x, w) ["b"] y = Relu(t)', 14, stored="float[4] w = {1, 2, 3, 4}")
    after = convert_opset(model, 22)
    before_text = [str(node) for node in model.ir.graph]
    assert [str(node) for node in after.ir.graph] == before_text
    assert after.ir.graph.initializers["w"].const_value is model.ir.graph.initializers["w"].const_value


def test_a_replaced_node_hands_on_name_metadata_and_type() -> None:
    model = parse('["soft"] y = Softmax<axis = 0>(x)', 11, "float[3,4] x) => (float[3,4] y")
    node = model.ir.graph.node(0)
    node.metadata_props["source"] = "net.py:7"
    node.outputs[0].metadata_props["note"] = "probabilities"
    node.outputs[0].meta["quant_parameter_tensor_names"] = {"SCALE_TENSOR": "s"}
    after = convert_opset(model, 13).ir.graph
    assert after.outputs[0].name == "y"
    assert after.outputs[0].metadata_props == {"note": "probabilities"}
    assert after.outputs[0].meta["quant_parameter_tensor_names"] == {"SCALE_TENSOR": "s"}
    assert after.outputs[0].producer().name == "soft"
    assert {item.metadata_props["source"] for item in after} == {"net.py:7"}


def test_new_names_avoid_every_name_in_every_scope() -> None:
    body = (
        "y = If(c) <then_branch = a () => (p) { q = Softmax<axis=0>(x) p = Identity(q) },"
        " else_branch = b () => (r) { y_Flatten = Relu(x) r = Identity(y_Flatten) }>"
    )
    model = parse(body, 11, "float[3,4] x, bool c) => (float[3,4] y")
    after = assert_same(model, 17, X, np.array(True))
    names = [value.name for graph in after.ir.graph.subgraphs() for node in graph for value in node.outputs]
    assert len(names) == len(set(names))


def test_bodies_are_converted_and_capture_outer_values() -> None:
    body = """
        axes = Constant<value = int64[1] {1}>()
        y = If(c) <
          then_branch = a () => (p) { p = ReduceSum<keepdims = 1>(x, axes) },
          else_branch = b () => (q) { s = Relu(x) q = ReduceSum<keepdims = 1>(s, axes) }>
    """
    model = parse(body, 13, "float[3,4] x, bool c) => (float[3,1] y")
    for value in (True, False):
        assert_same(model, 11, X, np.array(value))
        assert_same(model, 18, X, np.array(value))


def test_local_functions_are_converted_in_place_with_their_own_imports() -> None:
    functions = """
        <domain: "local", opset_import: ["": 11]>
        soft (t) => (u) { u = Softmax<axis = 0>(t) }
    """
    model = parse("y = local.soft(x)", 12, functions=functions, imports=', "local": 1')
    after = convert_opset(model, 20)
    (function,) = after.ir.functions.values()
    assert function.opset_imports[""] == 20
    assert [node.op_type for node in function] != ["Softmax"]
    assert_same(model, 20, X)


def test_references_to_a_functions_attributes_are_kept_in_both_directions() -> None:
    functions = """
        <domain: "local", opset_import: ["": 11]>
        squash <axes> (t) => (u) { u = Squeeze<axes: ints = @axes>(t) }
    """
    signature = "float[3,1] x) => (float[3] y"
    model = parse("y = local.squash<axes = [1]>(x)", 12, signature, functions=functions, imports=', "local": 1')
    data = X[:, :1].copy()
    up = convert_opset(model, 18)
    (function,) = up.ir.functions.values()
    assert [node.op_type for node in function] == ["Constant", "Squeeze"]
    np.testing.assert_array_equal(assert_same(up, 20, data).opset, 20)
    down = convert_opset(up, 12)
    (function,) = down.ir.functions.values()
    assert next(node for node in function if node.op_type == "Squeeze").attributes["axes"].is_ref()


def test_an_overridable_initializer_is_not_taken_for_a_constant() -> None:
    signature = "float[3,N] x, int64[1] k) => (float[3,1] y"
    model = parse("y, i = TopK(x, k)", 11, signature, stored="int64[1] k = {1}")
    (blocker,) = can_convert(model, 9)
    assert "K and the size of the axis are computed at run time" in str(blocker)


def test_a_plain_initializer_is_a_constant() -> None:
    model = parse("y = ReduceMean(x, axes)", 18, "float[3,4] x) => (float[3,1] y", stored="int64[1] axes = {1}")
    assert_same(model, 11, X)


def test_the_ir_version_follows_the_opset() -> None:
    model = parse("y = Relu(x)", 18)
    assert convert_opset(model, 28).ir.ir_version == 14
    assert convert_opset(model, 11).ir.ir_version == 6


def test_a_local_function_keeps_the_ir_version_that_can_hold_it() -> None:
    functions = '<domain: "local", opset_import: ["": 13]> f (t) => (u) { u = Relu(t) }'
    model = parse("y = local.f(x)", 13, functions=functions, imports=', "local": 1')
    assert convert_opset(model, 12).ir.ir_version == 8


def test_below_ir_4_initializers_are_inputs_and_still_not_asked_for() -> None:
    model = parse("y = Add(x, w)", 13, stored="float[4] w = {1, 2, 3, 4}")
    after = assert_same(model, 8, X)
    assert after.ir.ir_version == 3
    assert [value.name for value in after.ir.graph.inputs] == ["x", "w"]
    assert [spec.name for spec in after.inputs] == ["x"]


def test_integer_constants_become_weights_where_constant_holds_floats_only() -> None:
    model = parse("s = Constant<value = int64[1] {-1}>() y = Reshape(x, s)", 13, "float[3,4] x) => (float[12] y")
    after = assert_same(model, 8, X)
    assert op_types(after) == ["Reshape"]


def test_weights_of_bodies_become_weights_of_the_graph_below_ir_4() -> None:
    body = """
        y = If(c) <
          then_branch = a () => (p) <float[1] w = {2}> { p = Mul(x, w) },
          else_branch = b () => (q) <float[1] w2 = {3}> { q = Mul(x, w2) }>
    """
    model = parse(body, 13, "float[3,4] x, bool c) => (float[3,4] y")
    after = assert_same(model, 8, X, np.array(False))
    assert len(after.ir.graph.initializers) == 2
    assert not any(graph.initializers for graph in after.ir.graph.subgraphs())


def test_the_metadata_of_model_and_graph_is_kept() -> None:
    model = parse("y = Relu(x)", 13)
    model.ir.metadata_props["author"] = "me"
    model.ir.graph.metadata_props["note"] = "g"
    model.ir.graph.doc_string = "a graph"
    model.ir.meta["carried"] = object()
    after = convert_opset(model, 20).ir
    assert after.metadata_props == {"author": "me"}
    assert after.graph.metadata_props == {"note": "g"}
    assert after.graph.doc_string == "a graph"
    assert after.meta["carried"] is model.ir.meta["carried"]


def test_several_domains_at_once() -> None:
    body = "t = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1], values_floats = [0.5, 1.5]>(i) y = Softmax<axis=0>(t)"
    model = parse(body, 11, "int64[2,2] i) => (float[2,2] y", imports=', "ai.onnx.ml": 2')
    after = convert_opset(model, {"": 15, "ai.onnx.ml": 4})
    assert after.opsets == {"": 15, "ai.onnx.ml": 4}
    checked(after)


def test_the_name_ai_onnx_is_the_default_domain() -> None:
    model = parse("y = Relu(x)", 13)
    model.ir.graph.opset_imports.clear()
    model.ir.graph.opset_imports["ai.onnx"] = 13
    assert convert_opset(model, 20).ir.graph.opset_imports == {"ai.onnx": 20}


def test_a_type_that_an_older_operator_lacks_is_computed_in_a_wider_one() -> None:
    model = parse("y = Add(x, x)", 14, "int8[3,4] x) => (int8[3,4] y")
    after = assert_same(model, 13, np.full((3, 4), 100, np.int8))
    assert op_types(after) == ["Cast", "Cast", "Add", "Cast"]


def test_a_type_that_no_older_type_holds_blocks() -> None:
    (blocker,) = can_convert(parse("y = Abs(x)", 13, "bfloat16[3,4] x) => (bfloat16[3,4] y"), 12)
    assert "bfloat16" in str(blocker)


def test_nothing_is_stamped_that_was_not_converted() -> None:
    model = parse("y, i = TopK(x, k)", 11, "float[3,N] x, int64[1] k) => (float[3,K] y")
    (blocker,) = can_convert(model, 9)
    assert "K and the size of the axis are computed at run time" in str(blocker)


def test_a_chain_of_ten_thousand_untyped_nodes_is_walked_without_recursion() -> None:
    nodes = " ".join(f"v{i + 1} = Relu(v{i})" for i in range(10_000))
    model = parse(nodes, 14, "float[2] v0) => (float[2] v10000")
    assert convert_opset(model, 13).opset == 13


def test_the_result_shares_no_graph_objects_with_the_argument() -> None:
    model = parse("y = Relu(x)", 18)
    after = convert_opset(model, 20)
    mine: set[ir.Value] = {*model.ir.graph.inputs, *model.ir.graph.outputs}
    assert mine.isdisjoint({*after.ir.graph.inputs, *after.ir.graph.outputs})
    assert isinstance(after, Model)


def test_a_node_that_breaks_its_schema_is_refused_not_crashed_on() -> None:
    (blocker,) = can_convert(parse("y = MaxPool<ceil_mode = 1>(x)", 22, "float[1,1,3] x) => (float[1,1,2] y"), 19)
    assert "not a valid node" in str(blocker)


def test_a_function_parameter_may_be_the_axis_of_a_softmax_or_a_bound_of_a_clip() -> None:
    functions = """
        <domain: "local", opset_import: ["": 9]>
        squash <axis, low> (t) => (v) {
            u = Softmax<axis: int = @axis>(t)
            v = Clip<min: float = @low>(u)
        }
    """
    call = "y = local.squash<axis = 0, low = 0.1>(x)"
    model = parse(call, 10, "float[3,4] x) => (float[3,4] y", functions=functions, imports=', "local": 1')
    assert_same(model, 20, X)


def test_outputs_that_were_not_asked_for_stay_so() -> None:
    model = parse("y, , h = LSTM<hidden_size = 2, layout = 1>(x, w, r)", 14, LSTM)
    (node,) = [node for node in convert_opset(model, 13).ir.graph if node.op_type == "LSTM"]
    assert [bool(value.name) for value in node.outputs] == [True, False, True]


LSTM = "float[3,5,4] x, float[1,8,4] w, float[1,8,2] r) => (float[3,5,1,2] y, float[3,1,2] h"


def test_the_ir_version_goes_down_only_when_an_opset_does() -> None:
    model = parse("y = Relu(x)", 18, ir_version=12)
    assert convert_opset(model, 20).ir.ir_version == 12
    assert convert_opset(model, 17).ir.ir_version == 8


@pytest.mark.parametrize(
    ("body", "opset", "target"),
    [
        ('y = Pad<mode = "wrap">(x, p)', 13, 18),
        ('y = Pad<mode = "mirror">(x, p)', 13, 18),
        ('y = Resize<mode = "nearest", coordinate_transformation_mode = "half_pixel_symmetric">(x, , , p)', 13, 18),
    ],
)
def test_an_attribute_value_that_the_target_does_not_know_is_refused(body: str, opset: int, target: int) -> None:
    (blocker,) = can_convert(parse(body, opset, "float[2,3] x, int64[N] p) => (float[A,B] y"), target)
    assert f"is not known to {body.split()[2].split('<', maxsplit=1)[0]} of opset {target}" in str(blocker)


def test_an_attribute_value_that_is_gone_is_refused() -> None:
    model = parse(
        'y = GridSample<mode = "bilinear">(x, g)', 20, "float[1,1,2,2] x, float[1,2,2,2] g) => (float[1,1,2,2] y"
    )
    (blocker,) = can_convert(model, 22)
    assert "mode='bilinear' is not known to GridSample of opset 22" in str(blocker)


def test_integer_constants_of_a_function_are_cast_where_constant_holds_floats_only() -> None:
    nodes = "i = Constant<value = int64[1] {1}>() b = Gather(a, i)"
    local = f'<domain: "local", opset_import: ["": 9]> F (a) => (b) {{ {nodes} }}'
    model = parse("y = local.F(x)", 9, "float[3] x) => (float[1] y", functions=local, imports=', "local": 1')
    assert_same(model, 8, np.array([1, 2, 3], np.float32))


@pytest.mark.parametrize(
    ("body", "signature", "opset", "reason"),
    [
        ("y = Cast<to = -5>(x)", "float[3] x) => (float[3] y", 13, "no element type -5"),
        (
            "y = GatherND<batch_dims = 1099511627776>(x, i)",
            "float[2,3] x, int64[2,1] i) => (float[2] y",
            13,
            "batch_dims",
        ),
        ("y, z = Split<num_outputs = 1099511627776>(x)", "float[4] x) => (float[2] y, float[2] z", 18, "2 outputs"),
    ],
)
def test_numbers_that_break_the_schema_are_refused_at_once(body: str, signature: str, opset: int, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        convert_opset(parse(body, opset, signature), 9)


def test_nodes_share_the_small_constants_that_conversion_writes() -> None:
    nodes = "".join(
        f"{name} = ReduceSum <axes = [{axis}], keepdims = 1> (x) " for name, axis in zip("abc", (0, 0, 1), strict=True)
    )
    model = convert_opset(parse(f"{nodes} d = Add (a, b) y = Add (c, d)", 11), OPSET)
    tensors = [node.attributes["value"].as_tensor() for node in model.ir.graph if node.op_type == "Constant"]
    assert [tensor.numpy().tolist() for tensor in tensors] == [[0], [0], [1]]
    assert tensors[0] is tensors[1]
    assert tensors[0] is not tensors[2]


def test_constants_of_other_types_and_shapes_are_not_shared() -> None:
    nodes = (
        "a = Clip <min = 0.0> (x) b = Cast <to = 10> (x) c = Clip <min = 0.0> (b) d = Cast <to = 1> (c) y = Add (a, d)"
    )
    model = convert_opset(parse(nodes, 6), OPSET)
    tensors = [node.attributes["value"].as_tensor() for node in model.ir.graph if node.op_type == "Constant"]
    assert [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors] == [
        (ir.DataType.FLOAT, ()),
        (ir.DataType.FLOAT16, ()),
    ]
