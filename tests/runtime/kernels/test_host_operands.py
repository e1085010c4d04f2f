"""Every shared meaning on arrays that nobody may look into, with NumPy values where the table of traits says host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.ir.table import OpKey
from entrepot.ir.traits import host_operands
from entrepot.runtime.kernels.table import shared
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases import all_cases
from tests.op_cases.case import Case
from tests.runtime.opaque import OPAQUE, bare, wrapped

CASES = [case for case in all_cases() if shared.find(case.domain, case.op_type, case.since)]


def _is_text(value: Any) -> bool:
    """Strings live on the host wherever the rest does; so do their members."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "O"


def _on_device(case: Case) -> bool:
    """Whether a device can run a case at all: no device has strings."""
    made = case.expected or ()
    to_text = case.op_type == "Cast" and case.attributes.get("to") == 8
    return (
        not to_text
        and not any(map(_is_text, [*case.inputs, *made]))
        and not any(isinstance(value, list) and any(map(_is_text, value)) for value in case.inputs)
    )


@pytest.mark.parametrize("case", [case for case in CASES if _on_device(case)], ids=str)
def test_a_meaning_looks_at_no_element_but_those_of_host_operands(case: Case) -> None:
    key = OpKey(case.domain, case.op_type, case.since)
    function = shared.get(*key).function
    host = host_operands(key)
    inputs = [value if position in host else wrapped(value) for position, value in enumerate(case.inputs)]
    attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in case.attributes.items()}
    if "n_outputs" in function.__code__.co_varnames:
        attributes["n_outputs"] = case.output_count
    with np.errstate(all="ignore"):
        result = bare(function(OPAQUE, *inputs, **attributes))
    outputs = result if isinstance(result, tuple) else (result,)
    for oracle, expected in expectations(case).items():
        for position, (got, wanted) in enumerate(zip(outputs, expected, strict=False)):
            assert_as_expected(got, wanted, f"{oracle}, output {position}")
