"""What the case table must hold of every operator that has a kernel."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import onnx
import pytest

from entrepot.ir.opset import OPSET
from entrepot.ir.table import OpKey
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.providers.cpu.table import native
from tests.op_cases import all_cases, ml_cases
from tests.op_cases.case import Case

KEYS = sorted({*shared, *native})
CASES: dict[str, list[Case]] = defaultdict(list)
for _case in [*all_cases(), *ml_cases()]:
    CASES[_case.op_type].append(_case)


def _schema(key: OpKey) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(key.op_type, key.since if key.domain else OPSET, key.domain)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.op_type)
def test_every_attribute_is_given_in_some_case(key: OpKey) -> None:
    given = {name for case in CASES[key.op_type] for name in case.attributes}
    assert set(_schema(key).attributes) - given == set()


ELEMENTWISE = [
    key
    for key in KEYS
    if _schema(key).inputs
    and _schema(key).min_input <= 2
    and _schema(key).inputs[0].type_str in ("T", "T1", "tensor(bool)")
]
CLASSES = {"float": np.float32, "float16": np.float16, "double": np.float64, "int64": np.int64, "bool": np.bool_}
"""One of each class of element type; a kernel that is right for these and wrong for another is found by its cases."""
FEW_TYPES = {
    "BitCast",
    "GridSample",
    "MaxRoiPool",
    "MaxUnpool",
    "MeanVarianceNormalization",
    "Col2Im",
    "Einsum",
    "Resize",
    "RoiAlign",
    "Multinomial",
    "RandomNormalLike",
    "RandomUniformLike",
    "Optional",
    "OptionalGetElement",
    "SequenceConstruct",
    "SplitToSequence",
    "Imputer",
    "LinearClassifier",
    "OneHotEncoder",
    "SVMClassifier",
    "SVMRegressor",
}
"""Element types are cast on entry or only passed on: one or two of them say as much as all."""


@pytest.mark.parametrize(
    "key", [key for key in ELEMENTWISE if key.op_type not in FEW_TYPES], ids=lambda key: key.op_type
)
def test_each_class_of_element_type_has_a_case(key: OpKey) -> None:
    allowed = {name[7:-1] for name in _schema(key).inputs[0].types}
    covered = {value.dtype for case in CASES[key.op_type] for value in _arrays(case.inputs[:1])}
    assert {name for name, kind in CLASSES.items() if name in allowed and np.dtype(kind) not in covered} == set()


def _arrays(values: Any) -> list[np.ndarray]:
    flat = [member for value in values for member in (value if isinstance(value, list) else [value])]
    return [member for member in flat if isinstance(member, np.ndarray)]
