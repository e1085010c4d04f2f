"""Operators of one input, spelled out."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run


@pytest.mark.parametrize("kind", ["int64", "int32", "float", "double", "uint64"])
def test_the_sign_of_every_element_type_goes_below_its_birth(kind: str) -> None:
    model = parse("y = Sign(x)", 9, f"{kind}[N] x) => ({kind}[N] y")
    values = [0, 1, 2**63 - 1] if "int64" in kind else [0, 1, 3]
    dtype = np.dtype({"float": np.float32, "double": np.float64}.get(kind, kind))
    x = np.array(values, dtype)
    if dtype.kind != "u":
        x = np.concatenate([x, -x])
    np.testing.assert_array_equal(run(convert_opset(model, 7), x)[0], np.sign(x))
