"""Values of attributes that mean nothing are refused as a model is read: onnx's inference crashes or hangs on some."""

from __future__ import annotations

import onnx
import pytest

import entrepot as ep

HEAD = '<ir_version: 10, opset_import: ["": 21]> g '
REFUSED = {
    "an axis that is cut to 32 bits": (
        "(float[2,3] x, float[3] w) => (float[2,3] y) { y = LayerNormalization<axis = 9223372036854775807>(x, w) }",
        "attribute 'axis' names axis 9223372036854775807",
    ),
    "one of several axes": (
        "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm = [1, -9223372036854775808]>(x) }",
        "attribute 'perm' names axis -9223372036854775808",
    ),
    "fewer parts than outputs": (
        "(float[4] x) => (float[2] y) { y, z, w = Split<num_outputs = 2>(x) }",
        "attribute 'num_outputs' is 2, but it has 3 outputs",
    ),
    "more parts than outputs": (
        "(float[4] x) => (float[N] y) { y, z = Split<num_outputs = 9223372036854775807>(x) }",
        "attribute 'num_outputs' is 9223372036854775807, but it has 2 outputs",
    ),
    "a constant without a value": (
        "(float[4] x) => (float[N] y) { y = Constant() }",
        "a Constant has one attribute, not 0",
    ),
    "a constant of two values": (
        "(float[4] x) => (float[N] y) { y = Constant<value_int = 1, value_float = 2.0>() }",
        "a Constant has one attribute, not 2",
    ),
    "negative batch_dims": (
        "(float[2,2] x, int64[2,2] i) => (float[2] y) { y = GatherND<batch_dims = -1>(x, i) }",
        "attribute 'batch_dims' is -1",
    ),
    "batch_dims beyond all ranks": (
        "(float[2,2] x, int64[2,2] i) => (float[2] y) { y = GatherND<batch_dims = 2147483647>(x, i) }",
        "attribute 'batch_dims' is 2147483647",
    ),
    **{
        f"equation {equation!r}": (
            f'(float[2] x) => (float[2] y) {{ y = Einsum<equation = "{equation}">(x) }}',
            "attribute 'equation' is no sum over letters",
        )
        for equation in ("i..", "......", "...i...", "1->1", "é->é", "i->i->i", "i;j")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_meaningless_values_are_refused(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(ep.ModelFormatError, match=message):
        ep.load(onnx.parser.parse_model(HEAD + text))


@pytest.mark.parametrize("equation", ["ij,jk->ik", "...i, ...i -> ...", "ii", "Ab,bC", "->", "i->", "... ->..."])
def test_equations_are_read_as_einsum_reads_them(equation: str) -> None:
    inputs = ", ".join(f"float[A{at}] x{at}" for at in range(equation.count(",") + 1))
    given = ", ".join(f"x{at}" for at in range(equation.count(",") + 1))
    text = f'({inputs}) => (float[N] y) {{ y = Einsum<equation = "{equation}">({given}) }}'
    assert ep.load(onnx.parser.parse_model(HEAD + text)).opset == 21
