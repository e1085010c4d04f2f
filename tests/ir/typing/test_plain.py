"""Types as plain data, there and back; ONNX's own protobufs are the judge of what is meant."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from entrepot.ir.typing.plain import Type, from_proto, of_array, to_ir, to_proto

FLOATS = Type("tensor", ir.DataType.FLOAT, (2, "N", None))
TYPES = [
    FLOATS,
    Type("tensor", ir.DataType.STRING, ()),
    Type("tensor", ir.DataType.BFLOAT16, None),
    Type("sequence", element=FLOATS),
    Type("optional", element=Type("sequence", element=FLOATS)),
]


@pytest.mark.parametrize("known", TYPES, ids=str)
def test_a_type_survives_onnxs_form(known):
    assert from_proto(to_proto(known)) == known


def test_a_type_is_what_onnx_makes_of_it():
    assert to_proto(FLOATS) == onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2, "N", None])


def test_nothing_is_known_of_an_empty_form():
    assert from_proto(onnx.TypeProto()) is None


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        (FLOATS, ir.TensorType(ir.DataType.FLOAT)),
        (Type("sparse", ir.DataType.FLOAT), ir.SparseTensorType(ir.DataType.FLOAT)),
        (Type("sequence", element=FLOATS), ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))),
        (Type("optional", element=FLOATS), ir.OptionalType(ir.TensorType(ir.DataType.FLOAT))),
    ],
    ids=str,
)
def test_a_graph_holds_the_same_type(known, kind):
    assert to_ir(known)[0] == kind


@pytest.mark.parametrize(
    ("array", "dtype"), [(np.zeros((2, 0), np.float16), "FLOAT16"), (np.array(["a"], object), "STRING")]
)
def test_an_array_has_its_own_type(array, dtype):
    assert of_array(array) == Type("tensor", ir.DataType[dtype], array.shape)
