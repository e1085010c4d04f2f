"""Canaries: what ``ir/upstream.py`` takes from others still does what we use it for."""

import onnx.parser
import onnx_ir

from entrepot.ir.upstream import Cloner


def test_onnx_ir_s_cloner_binds_inputs_and_attributes_of_a_function():
    """``ir/opset/bodies.py`` spells operators out with it; a release that moves it has to be met there."""
    function = onnx_ir.serde.deserialize_function(
        onnx.parser.parse_function(
            '<domain: "my", opset_import: ["": 20]> f <alpha> (x) => (y) { y = Elu<alpha: float = @alpha>(x) }'
        )
    )
    given = onnx_ir.Value(name="given")
    values = {function.inputs[0]: given}
    cloner = Cloner(
        attr_map={"alpha": onnx_ir.AttrFloat32("alpha", 0.5)},
        value_map=values,
        metadata_props={"from": "here"},
        resolve_ref_attrs=True,
        allow_outer_scope_values=True,
    )
    copy = cloner.clone_node(function[0])
    assert list(copy.inputs) == [given]
    assert copy.attributes["alpha"].as_float() == 0.5
    assert copy.metadata_props == {"from": "here"}
    assert values[function.outputs[0]] is copy.outputs[0]
