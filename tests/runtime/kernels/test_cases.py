"""Every operator case on every table that has the operator, against every oracle that the case trusts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest

from entrepot.ir.table import OpTable
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native, prepared
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases import all_cases, ml_cases
from tests.op_cases.case import Case

CASES = [*all_cases(), *ml_cases()]


def _spaced(x: np.ndarray) -> np.ndarray:
    """The same values as every second entry of something larger: what a slice or a split leaves."""
    wide = np.zeros((*x.shape, 2), x.dtype)
    wide[..., 0] = x
    return wide[..., 0]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": np.copy,
    "transposed": lambda x: np.array(x, order="F"),
    "spaced": _spaced,
}
"""How the inputs lie in memory: graphs pass views around, and no kernel may assume otherwise."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kernel_agrees_with_every_trusted_oracle(case: Case) -> None:
    tables = [table for table in (native, shared) if table.find(case.domain, case.op_type, case.since)]
    trusted = expectations(case)
    assert tables, f"no kernel for {case.op_type}"
    assert trusted, "no oracle can run this case: name what it must give"
    for table, layout in product(tables, LAYOUTS):
        outputs = _run(table, case, LAYOUTS[layout])
        for oracle, expected in trusted.items():
            assert len(outputs) >= len(expected)
            for position, (got, wanted) in enumerate(zip(outputs, expected, strict=False)):
                where = f"{table.kind} on {layout} inputs against {oracle}, output {position}"
                assert_as_expected(got, wanted, where)


def _view(case: Case, constant: bool) -> NodeView:
    """The case's node; first inputs are data, which a graph rarely has as constants."""
    inputs = [
        None if x is None else InputView(f"i{n}", x if constant and n else None, x.dtype, x.shape)
        for n, x in enumerate(case.inputs)
    ]
    return NodeView(
        case.op_type, tuple(inputs), since=case.since, attributes=_attributes(case), n_outputs=case.output_count
    )


def _bound(case: Case, constant: bool) -> Any:
    return prepared.get(case.domain, case.op_type, case.since).function(_view(case, constant))


def _attributes(case: Case) -> dict[str, Any]:
    """As a session gives them, which has tuples for lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in case.attributes.items()}


PREPARABLE = [case for case in CASES if prepared.find(case.domain, case.op_type, case.since)]
BOUND = {
    constant: [case for case in PREPARABLE if _bound(case, constant == "constant") is not None]
    for constant in ("constant", "variable")
}
"""The cases that a prepared kernel takes, with all inputs after the first constant or none; it declines the others."""


@pytest.mark.parametrize(
    ("case", "constant"), [(case, constant) for constant, cases in BOUND.items() for case in cases], ids=str
)
def test_a_prepared_kernel_agrees_with_every_trusted_oracle(case: Case, constant: str) -> None:
    kernel = _bound(case, constant == "constant")
    with np.errstate(all="ignore"):
        outputs = _outputs(case, kernel(*case.inputs))
    for oracle, expected in expectations(case).items():
        assert len(outputs) >= len(expected)
        for position, (got, wanted) in enumerate(zip(outputs, expected, strict=False)):
            assert_as_expected(got, wanted, f"prepared kernel against {oracle}, output {position}")


def test_prepared_kernels_take_this_many_cases() -> None:
    assert {constant: len(cases) for constant, cases in BOUND.items()} == {"constant": 449, "variable": 288}


@pytest.mark.parametrize("table", [shared, native], ids=lambda table: table.kind)
def test_every_registered_kernel_has_a_case(table: OpTable[Any]) -> None:
    covered = {(case.domain, case.op_type, case.since) for case in CASES}
    assert set(table) - covered == set()


def _run(table: OpTable[Any], case: Case, lay_out: Callable[[np.ndarray], np.ndarray]) -> tuple[Any, ...]:
    function = table.get(case.domain, case.op_type, case.since).function
    inputs = [lay_out(value) if isinstance(value, np.ndarray) else value for value in case.inputs]
    for value in inputs:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False  # a kernel that writes to its inputs is found out
    attributes = _attributes(case)
    if _takes_output_count(function):
        attributes["n_outputs"] = case.output_count
    with np.errstate(all="ignore"):
        result = function(*([NUMPY] if table is shared else []), *inputs, **attributes)
    return _outputs(case, result)


def _outputs(case: Case, result: Any) -> tuple[Any, ...]:
    single = len(case.schema.outputs) == 1 and not _is_variadic(case.schema.outputs[0])
    return (result,) if single else tuple(result)


def _takes_output_count(function: Any) -> bool:
    return "n_outputs" in getattr(getattr(function, "__code__", None), "co_varnames", ())


def _is_variadic(formal: onnx.defs.OpSchema.FormalParameter) -> bool:
    return formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
