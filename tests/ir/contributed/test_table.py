"""What is held of every spelling: the signature of onnxruntime's schema, a case, and refusals of all that it lacks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import onnx
import onnxruntime.capi.onnxruntime_pybind11_state as pybind
import pytest

from entrepot.ir.contributed.table import MICROSOFT, every
from entrepot.ir.errors import UnsupportedOpError
from entrepot.ir.io.read import load
from entrepot.ir.opset.values import Known
from entrepot.ir.typing.query import Types
from entrepot.runtime.session import Session
from tests.op_cases.case import f32
from tests.op_cases.contributed import ATTENTION, CONTRIBUTED, LSTM, SCALES, Contributed, ms

SCHEMAS = {schema.name: schema for schema in pybind.get_all_operator_schema() if schema.domain == MICROSOFT}
SPELLINGS = {op_type: spelling for (_, op_type), spelling in every().items()}
WITHOUT_KERNELS = {"BiasAdd", "BiasSplitGelu", "GemmFastGelu"}
"""Operators that onnxruntime runs on other devices only; ``test_unjudged`` has their formulas."""


def _default(attribute: Any) -> Any:
    if not attribute._default_value:
        return inspect.Parameter.empty if attribute.required else None
    value = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(attribute._default_value))
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("op_type", SPELLINGS)
def test_inputs_and_attributes_are_those_of_the_schema(op_type: str) -> None:
    _, *parameters = inspect.signature(SPELLINGS[op_type]).parameters.values()
    places = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    assert places == [each.name for each in SCHEMAS[op_type].inputs][: len(places)]
    defaults = {name: _default(each) for name, each in SCHEMAS[op_type].attributes.items()}
    ours = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert ours.keys() <= defaults.keys()
    for name, default in ours.items():
        if defaults[name] is not None:  # else the kernel says what is meant, and a case holds it
            assert default == pytest.approx(defaults[name]) if isinstance(default, float) else default == defaults[name]


@pytest.mark.parametrize("op_type", SPELLINGS)
def test_every_spelling_has_a_case(op_type: str) -> None:
    assert op_type in WITHOUT_KERNELS | {case.op_type for case in CONTRIBUTED}


def test_the_size_of_what_is_made_follows_from_the_spelling() -> None:
    (case,) = [each for each in ATTENTION if each.attributes.get("qkv_hidden_sizes")]
    model = load(case.model()).ir
    types = Types(Known(model.ir_version), model.graph.opset_imports)
    (result,) = model.graph.outputs
    assert (str(types.dtype(result)), list(types.shape(result) or ())) == ("FLOAT", [2, 3, 4])


REFUSED: list[tuple[Contributed, str]] = [
    (ms("QuickGelu", f32(2), beta=1.0), "attribute 'beta'"),
    (ms("BiasGelu", f32(2), f32(2), f32(2)), "input 2"),
    (ms("Gelu", f32(2)).named(2), "output 1"),
    (ms("FusedConv", f32(1, 1, 3), f32(1, 1, 3), activation="Erf"), "activation 'Erf'"),
    (ms("Attention", f32(1, 2, 4), f32(4, 12), num_heads=1, do_rotary=1), "rotary"),
    (ms("CDist", f32(2, 2), f32(2, 2), metric="cosine"), "metric 'cosine'"),
    (ms("DynamicQuantizeLSTM", *LSTM, *SCALES, hidden_size=1 << 31).storing(1, 2, 8, 9, 10, 11), "disagrees with R"),
]


@pytest.mark.parametrize(("case", "words"), REFUSED, ids=lambda part: str(part)[:40])
def test_what_has_no_meaning_here_is_refused(case: Contributed, words: str) -> None:
    with pytest.raises(UnsupportedOpError, match=words):
        Session(load(case.model()), providers=["cpu"])


def test_a_layout_of_one_processor_is_refused_with_what_to_do() -> None:
    model = ms("Gelu", f32(2)).model()
    model.graph.node[0].domain = "com.microsoft.nchwc"
    model.opset_import.add(domain="com.microsoft.nchwc", version=1)
    with pytest.raises(UnsupportedOpError, match="ORT_ENABLE_EXTENDED or below"):
        Session(load(model), providers=["cpu"])


def _gelu(x: np.ndarray) -> np.ndarray:
    from math import erf

    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


def test_unjudged_operators_are_their_formulas() -> None:
    x, b, y = (np.random.default_rng(n).normal(size=(3, 4)) for n in range(3))
    half = x[:, :2] + b[:, :2]
    tanh = x @ b.T
    for case, expected in (
        (ms("BiasAdd", *map(np.float32, (x, b, y))), x + b + y),
        (ms("BiasSplitGelu", *map(np.float32, (x, b))), half * _gelu(x[:, 2:] + b[:, 2:])),
        (
            ms("GemmFastGelu", *map(np.float32, (x, b.T))),
            tanh * (1 + np.tanh(np.sqrt(2 / np.pi) * (tanh + 0.044715 * tanh**3))) / 2,
        ),
    ):
        (found,) = Session(load(case.model()), providers=["cpu"]).run(case.feeds()).values()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_projections_in_one_tensor_are_those_apart() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, 2, 4)).astype(np.float32) for _ in range(3))
    apart = ms("MultiHeadAttention", *(each.reshape(2, 3, 8) for each in (q, k, v)), num_heads=2)
    packed = ms("MultiHeadAttention", np.stack([q, k, v], 3), num_heads=2)
    half = ms("MultiHeadAttention", q.reshape(2, 3, 8), np.stack([k, v], 3), num_heads=2)
    expected, *found = (
        next(iter(Session(load(case.model()), providers=["cpu"]).run(case.feeds()).values()))
        for case in (apart, packed, half)
    )
    for got in found:
        np.testing.assert_array_equal(got, expected)
