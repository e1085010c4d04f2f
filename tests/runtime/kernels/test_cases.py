"""Every operator case on every table that has the operator, against every oracle that the case trusts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from entrepot.ir.table import OpTable
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native, prepared
from tests.judges.oracle import opinions
from tests.op_cases import all_cases
from tests.op_cases.case import Case

CASES = all_cases()
TOLERANCES = {  # (rtol, atol): a few units in the last place of results near 1
    np.dtype(np.float64): (1e-12, 1e-13),
    np.dtype(np.float32): (2e-6, 1e-6),
    np.dtype(np.float16): (2e-3, 1e-3),
    np.dtype(ml_dtypes.bfloat16): (1.6e-2, 8e-3),
}


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
    trusted = opinions(case)
    assert tables, f"no kernel for {case.op_type}"
    assert trusted, "no oracle can run this case: name what it must give"
    for table, layout in product(tables, LAYOUTS):
        outputs = _run(table, case, LAYOUTS[layout])
        for oracle, expected in trusted.items():
            assert len(outputs) >= len(expected)
            for position, (got, wanted) in enumerate(zip(outputs, expected, strict=False)):
                _assert_same(got, wanted, case, f"{table.kind} on {layout} inputs against {oracle}, output {position}")


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "variable"])
@pytest.mark.parametrize(
    "case", [case for case in CASES if prepared.find(case.domain, case.op_type, case.since)], ids=str
)
def test_a_prepared_kernel_agrees_with_every_trusted_oracle(case: Case, constant: bool) -> None:
    bind = prepared.get(case.domain, case.op_type, case.since).function
    kernel = bind(_view(case, constant))
    if kernel is None:
        return  # it has nothing better than the native kernel here
    with np.errstate(all="ignore"):
        outputs = _outputs(case, kernel(*case.inputs))
    for oracle, expected in opinions(case).items():
        for position, (got, wanted) in enumerate(zip(outputs, expected, strict=False)):
            _assert_same(got, wanted, case, f"prepared kernel against {oracle}, output {position}")


def _view(case: Case, constant: bool) -> NodeView:
    """The case's node; first inputs are data, which a graph rarely has as constants."""
    inputs = [
        None if x is None else InputView(f"i{n}", x if constant and n else None, x.dtype, x.shape)
        for n, x in enumerate(case.inputs)
    ]
    return NodeView(
        case.op_type, tuple(inputs), since=case.since, attributes=case.attributes, n_outputs=case.output_count
    )


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
    attributes = dict(case.attributes)
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


def _assert_same(got: Any, wanted: Any, case: Case, where: str) -> None:
    if isinstance(wanted, list):
        assert isinstance(got, list), where
        assert len(got) == len(wanted), where
        for g, w in zip(got, wanted, strict=True):
            _assert_same(g, w, case, where)
    elif wanted is None:
        assert got is None or isinstance(got, np.ndarray | np.generic), where
    else:
        _assert_array(np.asarray(got), np.asarray(wanted), case, where)


def _assert_array(got: np.ndarray, wanted: np.ndarray, case: Case, where: str) -> None:
    assert got.shape == wanted.shape, f"{where}: shape {got.shape}, not {wanted.shape}"
    kinds = {got.dtype.kind, wanted.dtype.kind}
    assert got.dtype == wanted.dtype or kinds == {"O", "U"}, f"{where}: dtype {got.dtype}, not {wanted.dtype}"
    rtol, atol = TOLERANCES.get(wanted.dtype, (0, 0))
    rtol, atol = rtol if case.rtol is None else case.rtol, atol if case.atol is None else case.atol
    if wanted.dtype.kind not in "fcV":
        np.testing.assert_array_equal(got, wanted, err_msg=where)
        return
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), rtol=rtol, atol=atol, err_msg=where)
