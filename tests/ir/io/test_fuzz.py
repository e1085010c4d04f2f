"""Damaged files give a model or a typed error, and nothing else: no crash, no hang, no foreign exception."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrepot as ep
from tests.ir.io.test_roundtrip import rich_model, sparse_model, sparse_proto

DATA = Path(onnx.backend.test.__file__).parent / "data"
SEEDS = [
    rich_model().SerializeToString(),
    sparse_model(sparse_proto("w", [1, 5], [3.0, 4.0], [2, 3])).SerializeToString(),
    (DATA / "simple" / "test_gradient_of_add" / "model.onnx").read_bytes(),
    (DATA / "simple" / "test_sequence_model5" / "model.onnx").read_bytes(),
    (DATA / "simple" / "test_strnorm_model_monday_casesensintive_nochangecase" / "model.onnx").read_bytes(),
    (DATA / "pytorch-operator" / "test_operator_conv" / "model.onnx").read_bytes(),
]

KNOWN = {ep.Model, ep.ModelFormatError, ep.ResourceLimitError}


def outcome(content: bytes | onnx.ModelProto) -> object:
    """What loading gives; a model that loads must also print, serialise and load again."""
    try:
        model = ep.load(content)
    except ep.EntrepotError as error:
        return type(error) if str(error) else "an error without words"
    assert repr(model)
    written = model.to_proto().SerializeToString()
    assert ep.load(written).to_proto().SerializeToString() == written
    for value in model.ir.graph.initializers.values():
        tensor = value.const_value
        assert tensor is not None
        if tensor.nbytes < 1 << 20:
            assert tensor.numpy().shape == tuple(tensor.shape.numpy())
    return ep.Model


@settings(max_examples=300)
@given(st.data())
def test_mutated_bytes_give_a_model_or_a_typed_error(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(len(content), start + 8)))
        content[start:stop] = data.draw(st.binary(max_size=8))
    assert outcome(bytes(content)) in KNOWN


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_every_single_bit_flipped_gives_a_model_or_a_typed_error(seed: int) -> None:
    content = SEEDS[seed]
    random = np.random.default_rng(seed)
    results = set()
    for position in random.choice(len(content), size=min(150, len(content)), replace=False):
        mutated = bytearray(content)
        mutated[position] ^= 1 << int(random.integers(8))
        results.add(outcome(bytes(mutated)))
    assert {ep.ModelFormatError} <= results <= KNOWN


def scramble(message, random: np.random.Generator) -> None:
    """Walk down to some field of a message and delete it, repeat it, or put another value of its kind there."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = fields[random.integers(len(fields))]
    if field.type == field.TYPE_MESSAGE and random.random() < 0.9:
        scramble(value[random.integers(len(value))] if field.is_repeated else value, random)
    elif random.random() < 0.3:
        message.ClearField(field.name)
    elif field.is_repeated:
        value.extend([value[random.integers(len(value))]])
    elif field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64):
        limit = 2**31 if field.cpp_type == field.CPPTYPE_INT32 else 2**63
        setattr(message, field.name, int(random.choice([-1, 0, 1, 7, 16, 99, limit - 1, -limit])))
    elif field.type == field.TYPE_STRING:
        setattr(message, field.name, str(random.choice(["", "x", "y", "w", "Relu", "If", "If\0", "é", "a/b::c/d"])))


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_scrambled_structure_gives_a_model_or_a_typed_error(seed: int) -> None:
    random = np.random.default_rng(seed)
    results = set()
    for _ in range(150):
        proto = onnx.ModelProto.FromString(SEEDS[seed])
        for _ in range(random.integers(1, 4)):
            scramble(proto, random)
        results.add(outcome(proto))
    assert {ep.ModelFormatError, ep.Model} <= results <= KNOWN
