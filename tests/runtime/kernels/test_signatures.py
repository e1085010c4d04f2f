"""A kernel's signature is its operator's schema: held for every entry of every table."""

from __future__ import annotations

import inspect
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from entrepot.ir.opset import OPSET
from entrepot.ir.table import OpKey, OpTable
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.providers.cpu.table import native
from entrepot.runtime.providers.torch.table import native as torch_native

Option = onnx.defs.OpSchema.FormalParameterOption
TABLES = (shared, native, torch_native)
OWN = (np.ufunc, BuiltinFunctionType)
"""A framework's own functions: they have no signature to look at, and take no attributes."""
INTEGERS = {"bitwise_and", "bitwise_or", "bitwise_xor"}
FREE = {"n_outputs"}
"""Keyword-only parameters that are not attributes."""


def _entries() -> list[Any]:
    return [pytest.param(table, key, id=f"{table.kind} {key.op_type}") for table in TABLES for key in table]


def _schema(key: OpKey) -> onnx.defs.OpSchema:
    """The newest one in use: models with the older forms of tree ensembles stay at ai.onnx.ml 4."""
    newest = onnx.defs.get_schema(key.op_type, OPSET, key.domain)
    if not newest.deprecated:
        return newest
    return onnx.defs.get_schema(key.op_type, newest.since_version - 1, key.domain)


def _positional(table: OpTable[Any], key: OpKey) -> list[inspect.Parameter] | None:
    """The parameters that take inputs; ``None`` for a framework's own function."""
    function = table.get(*key).function
    if isinstance(function, OWN):
        return None
    parameters = inspect.signature(function).parameters.values()
    found = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    return found[1:] if table is shared else found


@pytest.mark.parametrize(("table", "key"), _entries())
def test_the_version_is_the_one_in_force_at_the_hub(table: OpTable[Any], key: OpKey) -> None:
    assert key.since == _schema(key).since_version


@pytest.mark.parametrize(("table", "key"), _entries())
def test_inputs_are_positional_in_schema_order_with_none_for_optional_ones(table: OpTable[Any], key: OpKey) -> None:
    parameters, declared = _positional(table, key), _schema(key).inputs
    if parameters is None:
        assert _takes(table.get(*key).function, len(declared))
        return
    if all(p.kind is not p.VAR_POSITIONAL for p in parameters):
        assert len(parameters) == len(declared)
    for parameter, formal in zip(parameters, declared, strict=False):
        if formal.option == Option.Variadic:  # the last one; a kernel may name the first few of it
            assert parameters[-1].kind == parameter.VAR_POSITIONAL
        elif formal.option == Option.Optional and parameter.kind != parameter.VAR_POSITIONAL:
            assert parameter.default is None


def _takes(function: Any, count: int) -> bool:
    """Whether a framework's own function takes so many arrays: NumPy tells, torch shows."""
    if isinstance(function, np.ufunc):
        return function.nin == count
    operand = torch.ones(2, dtype=torch.bool if function.__name__ == "where" else torch.float32)
    operands = [operand if function.__name__ not in INTEGERS else operand.int()] * count
    return isinstance(function(*operands), torch.Tensor)


@pytest.mark.parametrize(("table", "key"), _entries())
def test_attributes_are_keyword_only_with_the_schemas_names_and_defaults(table: OpTable[Any], key: OpKey) -> None:
    function = table.get(*key).function
    declared = _schema(key).attributes
    if isinstance(function, OWN):
        assert not declared
        return
    parameters = inspect.signature(function).parameters.values()
    given = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in FREE}
    assert set(given) == set(declared)
    for name, attribute in declared.items():
        assert _same(given[name], attribute), (name, given[name], _default(attribute))


def _same(given: Any, attribute: onnx.defs.OpSchema.Attribute) -> bool:
    default = _default(attribute)
    if default is None:
        return given is not inspect.Parameter.empty  # the schema's prose may name a default that its type does not
    if isinstance(default, float):
        return np.float32(given) == np.float32(default)
    return list(given) == default if isinstance(default, list) else given == default


def _default(attribute: onnx.defs.OpSchema.Attribute) -> Any:
    if attribute.required:
        return inspect.Parameter.empty
    if not attribute.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    if isinstance(value, list):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return value.decode() if isinstance(value, bytes) else value
