"""The table of what operators are, held against the schemas and against the operators' cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from entrepot.ir.opset.schemas import canonical
from entrepot.ir.table import OpKey
from entrepot.ir.traits import TRAITS, UNKNOWN, Cost, host_operands, traits, unread_operands
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native
from tests.op_cases import all_cases
from tests.op_cases.case import Case

SCHEMAS = onnx.defs.get_all_schemas_with_history()
DEFINED = {(canonical(schema.domain), schema.name) for schema in SCHEMAS}
CASES = all_cases()


def _kernels(case: Case) -> list[Callable[..., Any]]:
    """The case's operator as functions of its inputs, one for each table that has it."""
    found = []
    for table, leading in ((shared, (NUMPY,)), (native, ())):
        entry = table.find(case.domain, case.op_type, case.since)
        if entry is not None:
            attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in case.attributes.items()}
            if "n_outputs" in getattr(getattr(entry.function, "__code__", None), "co_varnames", ()):
                attributes["n_outputs"] = case.output_count
            found.append(lambda *x, f=entry.function, lead=leading, a=attributes: f(*lead, *x, **a))
    return found


def _run(kernel: Callable[..., Any], inputs: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        result = kernel(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def test_the_table_has_every_operator_of_the_standard_and_no_other():
    assert set(TRAITS) == DEFINED


def test_an_operator_of_another_domain_is_not_taken_for_the_standards():
    assert traits("com.example", "Add") is UNKNOWN
    assert traits("ai.onnx", "Add") is traits("", "Add")


def test_the_random_operators_are_those_that_the_schemas_call_so():
    """AffineGrid's schema says so too, and nothing in its meaning does."""
    nondeterministic = onnx.defs.OpSchema.NodeDeterminism.NonDeterministic
    declared = {(s.domain, s.name) for s in onnx.defs.get_all_schemas() if s.node_determinism == nondeterministic}
    ours = {key for key, known in TRAITS.items() if not known.repeats}
    assert declared - {("", "AffineGrid")} == ours


def test_the_operators_that_run_graphs_are_those_with_graphs_that_the_hub_still_has():
    graph = onnx.defs.OpSchema.AttrType.GRAPH
    holding = {
        (s.domain, s.name)
        for s in onnx.defs.get_all_schemas()
        if any(attribute.type == graph for attribute in s.attributes.values())
    }
    assert {key for key, known in TRAITS.items() if known.control_flow} == {key for key in holding if not key[0]}


@pytest.mark.parametrize("key", [key for key, known in TRAITS.items() if known.host or known.unread], ids=str)
def test_operands_are_named_as_some_version_of_the_schema_names_them(key):
    names = {i.name for s in SCHEMAS if (canonical(s.domain), s.name) == key for i in s.inputs}
    assert TRAITS[key].host | TRAITS[key].unread <= names


def test_positions_follow_the_version():
    assert host_operands(OpKey("", "Reshape", 25)) == {1}
    assert host_operands(OpKey("", "Reshape", 1)) == set()
    assert host_operands(OpKey("", "Slice", 13)) == {1, 2, 3, 4}
    assert host_operands(OpKey("com.example", "Slice", 13)) == set()
    assert unread_operands(OpKey("", "Shape", 25)) == {0}


INDICES = {
    "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Compress", "TensorScatter",
    "ReverseSequence", "RotaryEmbedding", "Attention", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    "LSTM", "GRU", "RNN", "RoiAlign", "Bernoulli",
}  # fmt: skip
"""Integers that are data to these: they pick elements, and no shape depends on them."""


def test_every_operand_that_decides_the_shape_of_a_result_is_a_host_operand():
    """Another value at the same shape and type gives a result of another shape, or is refused: so it decides one."""
    missed = set()
    for case in CASES:
        for position in _deciding(case) - host_operands(OpKey(case.domain, case.op_type, case.since)):
            missed.add((case.op_type, case.schema.inputs[min(position, len(case.schema.inputs) - 1)].name))
    assert {pair for pair in missed if pair[0] not in DATA_DEPENDENT} == set()


DATA_DEPENDENT = {"Compress", "NonZero", "Unique", "NonMaxSuppression", "StringSplit", "StringNormalizer"}
"""How many elements come out is what these compute."""


def _deciding(case: Case) -> set[int]:
    if case.op_type in INDICES or traits(case.domain, case.op_type).random:
        return set()
    kernel = _kernels(case)[0]
    shapes = _shapes(kernel, case.inputs)
    found = set()
    for position, value in enumerate(case.inputs):
        if isinstance(value, np.ndarray) and value.dtype in (np.int32, np.int64) and 0 < value.size <= 8:
            other = [*case.inputs]
            other[position] = value + value.dtype.type(1)
            if shapes is not None and _shapes(kernel, other) not in (shapes, None):
                found.add(position)
    return found


def _shapes(kernel: Callable[..., Any], inputs: Any) -> list[Any] | None:
    try:
        return [np.shape(result) for result in _run(kernel, inputs) if not isinstance(result, list)]
    except (ValueError, IndexError, TypeError, ArithmeticError):
        return None


ELEMENTWISE = [case for case in CASES if traits(case.domain, case.op_type).elementwise]
ORDER = np.random.default_rng(0)


def _broadcast(case: Case) -> list[np.ndarray] | None:
    """The operands at one shape; ``None`` for a case that has nothing to permute, or whose operands are no tensors."""
    data = [value for value in case.inputs if value is not None]
    if not data or not all(isinstance(value, np.ndarray) for value in data):
        return None
    scalars = {"Clip": (1, 2), "CastLike": (1,)}.get(case.op_type, ())
    spread = [value for n, value in enumerate(case.inputs) if n not in scalars and value is not None]
    try:
        shape = np.broadcast_shapes(*(value.shape for value in spread))
    except ValueError:
        return None
    return [
        value if value is None or position in scalars else np.broadcast_to(value, shape)
        for position, value in enumerate(case.inputs)
    ]


def _permuted(value: Any, order: np.ndarray) -> Any:
    return value if value is None or value.size != order.size else value.reshape(-1)[order].reshape(value.shape)


def _is_elementwise_on(case: Case) -> bool:
    """Whether results move along when the elements of all operands are moved together."""
    full = _broadcast(case)
    if full is None:
        return False
    size = full[0].size
    order = ORDER.permutation(size)
    for kernel in _kernels(case):
        plain = _run(kernel, full)
        moved = _run(kernel, [_permuted(value, order) for value in full])
        if len(plain) != 1 or np.size(plain[0]) != size:
            return False
        expected, got = _permuted(np.asarray(plain[0]), order), np.asarray(moved[0])
        if expected.shape != got.shape or not _equal(expected, got):
            return False
    return True


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    """The same values; NumPy rounds some functions otherwise at the end of an array than within it."""
    if one.dtype.kind == "O":
        return one.tolist() == other.tolist()
    if one.tobytes() == other.tobytes() or not _is_float(one.dtype):
        return one.tobytes() == other.tobytes()
    near = 4 * float(ml_dtypes.finfo(one.dtype).eps)
    with np.errstate(all="ignore"):
        return np.allclose(one.astype(np.float64), other.astype(np.float64), rtol=near, atol=0, equal_nan=True)


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or "float" in dtype.name


@pytest.mark.parametrize("case", ELEMENTWISE, ids=str)
def test_an_elementwise_operator_commutes_with_moving_elements(case):
    if _broadcast(case) is None or case.op_type == "PRelu":
        assert case.op_type in {"Max", "Min", "Mean", "Sum", "PRelu"}, "nothing was checked"
        return
    assert _is_elementwise_on(case)


def test_no_other_operator_commutes_with_moving_elements_in_all_its_cases():
    by_operator: dict[str, list[Case]] = {}
    for case in CASES:
        known = traits(case.domain, case.op_type)
        if not (known.elementwise or known.moves or known.random or known.control_flow):
            by_operator.setdefault(case.op_type, []).append(case)
    sized = {
        name: [case for case in cases if any(isinstance(v, np.ndarray) and v.size > 3 for v in case.inputs)]
        for name, cases in by_operator.items()
    }
    assert {name for name, cases in sized.items() if cases and all(map(_seems_elementwise_on, cases))} == set()


def _seems_elementwise_on(case: Case) -> bool:
    try:
        return _is_elementwise_on(case)
    except (ValueError, IndexError, TypeError, ArithmeticError, AttributeError):
        return False


@pytest.mark.parametrize("case", [case for case in CASES if traits(case.domain, case.op_type).fresh], ids=str)
def test_a_fresh_result_shares_no_memory_with_its_operands(case):
    for kernel in _kernels(case):
        for result in _run(kernel, case.inputs):
            operands = [value for value in case.inputs if isinstance(value, np.ndarray)]
            assert not any(np.shares_memory(np.asarray(result), operand) for operand in operands)


def test_what_costs_nothing_makes_no_more_than_a_view():
    """Every view of the table is one in NumPy, for a contiguous operand."""
    free = {key[1] for key, known in TRAITS.items() if known.cost is Cost.FREE and known.moves}
    views = [
        case for case in CASES if case.op_type in free & {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Flatten"}
    ]
    for case in views:
        if case.inputs[0].size:
            assert any(np.shares_memory(_run(kernel, case.inputs)[0], case.inputs[0]) for kernel in _kernels(case))


def test_what_broadcasts_says_so_in_its_schema():
    """All operands take each other's sizes where the standard calls it multidirectional, Where and Max among them."""
    said = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if not schema.domain and "multidirectional" in schema.doc.lower()
    }
    assert said == {name for (domain, name), known in TRAITS.items() if not domain and known.broadcasts}
