"""What a capture leaves open of shapes is stated where it follows from the inputs."""

from __future__ import annotations

import onnx.parser
import onnx_ir as ir
import pytest

from entrepot.exporters.cleanup.refine import refine_shapes

HEAD = '<ir_version: 9, opset_import: ["" : 20]> agraph (float[batch, length, 8] x) => (float[a, b, c, d] y)'


@pytest.mark.parametrize(
    "body",
    [
        """s = Shape(x) n = Cast<to = 6>(s) r = Constant<value = int32[2] {2, 4}>()
           z = Constant<value = int64[1] {0}>() e = Constant<value = int64[1] {2}>()
           front = Slice(n, z, e) t = Concat<axis = 0>(front, r) wide = Cast<to = 7>(t) y = Reshape(x, wide)""",
        """b = Shape<start = 0, end = 1>(x) r = Constant<value = int64[3] {-1, 2, 4}>() t = Concat<axis = 0>(b, r)
           y = Reshape(x, t)""",
    ],
)
def test_sizes_that_are_put_together_keep_their_names(body):
    model = ir.from_proto(onnx.parser.parse_model(f"{HEAD} {{ {body} }}"))
    (y,) = model.graph.outputs
    y.shape = ir.Shape([None] * 4)
    refine_shapes(model)
    names = [str(dim) for dim in y.shape]
    assert names in (["batch", "length", "2", "4"], ["batch", "None", "2", "4"])
    assert names[1] == ("None" if "-1" in body else "length")


def test_a_size_that_is_left_over_keeps_its_name_where_zeros_are_sizes():
    text = '<ir_version: 9, opset_import: ["" : 20]> agraph (float[batch, 2, 4] x) => (float[a, b] y)'
    body = "t = Constant<value = int64[2] {-1, 8}>() y = Reshape<allowzero = 1>(x, t)"
    model = ir.from_proto(onnx.parser.parse_model(f"{text} {{ {body} }}"))
    model.graph.outputs[0].shape = ir.Shape([None, None])
    refine_shapes(model)
    assert [str(dim) for dim in model.graph.outputs[0].shape] == ["batch", "8"]
