"""Einsum below its birth."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run

EQUATIONS = {
    "bii->b": [(2, 3, 3)],
    "ii->i": [(3, 3)],
    "iii->": [(2, 2, 2)],
    "...ij->...ji": [(2, 5, 3, 4)],
    "...ij,...jk->...ik": [(2, 3, 4), (2, 4, 5)],
    "...i,...i": [(2, 3), (2, 3)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "ij,j": [(3, 4), (4,)],
    "i,j,k->kji": [(2,), (3,), (4,)],
}


@pytest.mark.parametrize("target", [11, 9, 7])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_an_equation_is_spelled_out(equation: str, target: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in EQUATIONS[equation]]
    inputs = ", ".join(f"float[{','.join(map(str, a.shape))}] x{i}" for i, a in enumerate(arrays))
    names = ", ".join(f"x{i}" for i in range(len(arrays)))
    truth = np.einsum(equation, *arrays)
    result = f"[{','.join(map(str, truth.shape))}]" if truth.ndim else ""
    model = parse(f'y = Einsum<equation = "{equation}">({names})', 12, f"{inputs}) => (float{result} y")
    np.testing.assert_allclose(run(convert_opset(model, target), *arrays)[0], truth, rtol=1e-5, atol=1e-6)


def test_axes_under_an_ellipsis_that_may_be_stretched_are_refused() -> None:
    model = parse('y = Einsum<equation = "...i,...i->...">(a, b)', 12, "float[1,3] a, float[2,3] b) => (float[2] y")
    with pytest.raises(ConversionError, match="under an ellipsis may be broadcast"):
        convert_opset(model, 11)
