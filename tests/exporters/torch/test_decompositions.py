"""Decompositions against torch's own kernels at the values where formulas come apart."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from scipy import special
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations import decompositions
from tests.judges.precision import judge
from tests.op_cases.torch_functions import BINARY, EDGES, UNARY, edges

aten = torch.ops.aten
OF_TENSORS = [
    operator for operator in decompositions()
    if all(str(argument.type) == "Tensor" for argument in operator._schema.arguments)
    and len(operator._schema.returns) == 1
]  # fmt: skip
ASKED_BELOW = {
    aten.remainder.Tensor,  # torch's fmod of vectors is NaN for quotients beyond 2**24, the one in a file is not
    aten.floor_divide.default,
    aten.log_sigmoid_backward.default,  # one operand is a function of another
    aten.lerp.Tensor,  # where terms cancel, torch's fused multiplication and addition keeps what others round
}


def operands(operator, kind=torch.float32):
    return [torch.from_numpy(each).to(kind) for each in edges(len(operator._schema.arguments))]


def supports(operator, kind):
    try:
        operator(*operands(operator, kind))
    except (RuntimeError, IndexError):
        return False
    return decompositions()[operator](*operands(operator, kind)) is not NotImplemented


CASES = [
    (operator, kind)
    for operator in OF_TENSORS
    for kind in (torch.float16, torch.float32, torch.float64)
    if operator not in ASKED_BELOW and supports(operator, kind)
]


INEXACT = {aten.igamma.default, aten.igammac.default, aten.special_airy_ai.default}
"""Those of which torch loses digits in double precision; tests of their own ask SciPy."""
OSCILLATING = {
    getattr(aten, f"special_bessel_{name}").default: getattr(special, name) for name in ("j0", "j1", "y0", "y1")
}


@pytest.mark.parametrize(
    "operator",
    [operator for operator, kind in CASES if kind == torch.float64 and operator not in {*OSCILLATING, *INEXACT}],
)
def test_doubles_give_what_torch_gives(operator):
    args = operands(operator, torch.float64)
    torch.testing.assert_close(
        decompositions()[operator](*args), operator(*args), rtol=1e-12, atol=1e-13, equal_nan=True
    )


@pytest.mark.parametrize(("operator", "kind"), [case for case in CASES if case[1] != torch.float64])
def test_edge_values_give_what_torch_gives(operator, kind):
    args = operands(operator, kind)
    exact, actual = operator(*[each.double() for each in args]), decompositions()[operator](*args)
    found = judge(operator(*args).numpy(), exact.numpy(), actual.numpy())
    assert found.ok, (found, [each[found.at] for each in args])


@pytest.mark.parametrize("operator", OSCILLATING)
def test_bessel_functions_are_more_exact_than_those_of_torch_which_lose_eight_digits(operator):
    x = torch.cat([torch.linspace(0.01, 12, 200), torch.linspace(12, 500, 100)]).double()
    expected = torch.from_numpy(OSCILLATING[operator](x.numpy()))
    torch.testing.assert_close(decompositions()[operator](x), expected, rtol=1e-12, atol=1e-13)


def test_most_decompositions_are_judged_here():
    assert len({operator for operator, _ in CASES}) >= 30


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_interpolation_counts_from_the_nearer_end_as_torch_does(kind):
    x = torch.tensor([0.0, -0.0, 1.0, -2.5, 1e4, torch.nan, torch.inf, -torch.inf], dtype=kind)
    start, end, weight = (each.flatten() for each in torch.meshgrid(x, x, x, indexing="ij"))
    ours = decompositions()
    torch.testing.assert_close(
        ours[aten.lerp.Tensor](start, end, weight), torch.lerp(start, end, weight), equal_nan=True
    )
    for number in (-1.0, 0.0, 0.3, 0.5, 1.0, 2.0):
        torch.testing.assert_close(
            ours[aten.lerp.Scalar](start, end, number), torch.lerp(start, end, number), equal_nan=True
        )


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_derivatives_of_the_gamma_function_are_those_of_torch(order):
    x = torch.cat([torch.linspace(0.01, 40, 200), torch.linspace(-8.93, -0.05, 60)]).double()
    found = decompositions()[aten.polygamma.default](order, x)
    torch.testing.assert_close(found, torch.polygamma(order, x), rtol=1e-9, atol=1e-9)


class Numerics(nn.Module):
    """Functions whose translations by torch.onnx (2.13) are wrong away from N(0, 1)."""

    one = ("bucketize", "x % 0.7", "x // 0.3", "log1p, in place", "logit, eps", "pow -0.5")
    two = ("bce of logits", "soft margin", "logaddexp2", "hinge embedding")

    def forward(self, x, y):
        return (
            torch.atan2(x, y), F.logsigmoid(x), torch.logaddexp(x, y), torch.expm1(x), torch.log1p(x), torch.erfc(x),
            torch.lgamma(x), x.sign(), torch.heaviside(x, y), x.signbit(), torch.copysign(x, y), torch.i0(x),
            torch.special.log_ndtr(x), torch.floor_divide(x, y), torch.remainder(x, y), torch.nextafter(x, y),
            torch.hypot(x, y), torch.xlogy(x, y), torch.angle(x), torch.digamma(x), x.clamp(min=-1),
            *(UNARY[name](x) for name in self.one), *(BINARY[name](x, y) for name in self.two),
        )  # fmt: skip


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
@pytest.mark.parametrize("captured", [False, True], ids=["module", "program"])
def test_exported_functions_are_right_at_edge_values(provider, captured):
    module, pairs = Numerics(), edges(2)
    sample = tuple(torch.randn(each.shape, generator=torch.Generator().manual_seed(0)) for each in pairs)
    source = torch.export.export(module, sample) if captured else module
    model = ep.export(source, sample, dynamic="auto" if captured else False, verify=False)
    outputs = ep.Session(model, providers=[provider]).run(dict(zip("xy", pairs, strict=True)))
    single = module(*map(torch.from_numpy, pairs))
    double = module(*(torch.from_numpy(each).double() for each in pairs))
    for index, (found, source_, exact) in enumerate(zip(outputs.values(), single, double, strict=True)):
        verdict = judge(source_.numpy(), exact.numpy(), found)
        assert verdict.ok, (index, verdict, [each[verdict.at] for each in pairs])


class Scalars(nn.Module):
    """Python numbers that float32 rounds."""

    def forward(self, x):
        return (
            x * math.pi + math.e, x / 3.1, math.log(3) - x, torch.where(x > 0.1, x, 1 / 3), x.clamp(max=1 / 3),
            x ** (1 / 3), torch.full_like(x, 1 / 3), x.new_full((2,), 1 / 3), x.masked_fill(x > 0.5, 1 / 3),
            torch.full((2,), 1 / 3, dtype=torch.float64), x.lerp(x * 0, 1 / 3), x.fmod(1 / 3), x > 1 / 3,
        )  # fmt: skip


def test_python_numbers_keep_the_precision_of_float64():
    x = torch.rand(5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    outputs = ep.Session(ep.export(Scalars(), x, dynamic=False)).run({"x": x})
    for found, expected in zip(outputs.values(), Scalars()(x), strict=True):
        np.testing.assert_allclose(found, expected.numpy(), rtol=4 * np.finfo(np.float64).eps)


def test_edge_values_hold_what_formulas_fail_at():
    assert np.isnan(EDGES).any()
    assert np.isinf(EDGES).sum() == 2
    assert np.signbit(EDGES[EDGES == 0]).any()


@pytest.mark.parametrize(("ours", "theirs"), [(aten.igamma.default, "gammainc"), (aten.igammac.default, "gammaincc")])
def test_incomplete_gamma_functions_are_more_exact_than_those_of_torch(ours, theirs):
    sizes = np.array([0.01, 0.5, 1, 1.1, 2, 7, 20, 30, 70, 99, 100, 150, 1e3, 1e4, 1.01e4, 1e6, 1.001e6])
    a, x = (axis.reshape(-1) for axis in np.meshgrid(sizes, sizes))
    expected = getattr(special, theirs)(a, x)
    actual = decompositions()[ours](torch.from_numpy(a), torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-250)


def test_the_airy_function_is_right_between_its_formulas():
    x = np.linspace(-20, 20, 801)
    actual = decompositions()[aten.special_airy_ai.default](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(actual, special.airy(x)[0], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("power", [2, 3, 30])
def test_zeta_of_negative_numbers_is_a_finite_sum_and_that_of_the_rest(power):
    x = np.array([-4.25, -0.5, 0.25, 1.0, 9.5, 1e3])
    before = [sum((start + k) ** -power for k in range(-int(np.floor(start)))) for start in x]
    expected = special.zeta(power, x - np.minimum(np.floor(x), 0)) + before
    actual = decompositions()[aten.special_zeta.default](torch.full((6,), power), torch.from_numpy(x))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("correction", [0, 1, 2.5, 7])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_variances_are_those_of_torch(name, correction):
    operator = getattr(aten, name).correction
    x = torch.tensor([[1e30, 2e30, 3.0, 1.0], [1000.0, 1000.01, 999.99, 1000.0], [1e-30, 2e-30, 0.0, 0.0]])
    for dim, keepdim, part in (
        ([1], False, x),
        ([0, 1], True, x),
        (None, False, x),
        ([0], False, x[:1]),
        ([0], False, x[:0]),
    ):
        args = {"correction": correction, "keepdim": keepdim}
        torch.testing.assert_close(
            decompositions()[operator](part, dim, **args), operator(part, dim, **args), equal_nan=True
        )


def test_a_product_of_several_types_is_of_their_common_type():
    class Angles(nn.Module):
        def forward(self, x):
            return torch.einsum("i,j->ij", torch.arange(x.shape[0]), x).sin()

    model = ep.export(Angles(), torch.rand(3))
    found = ep.Session(model).run({"x": np.float32([0.5, 1, 2, 4])})["output"]
    np.testing.assert_allclose(found, np.sin(np.outer(np.arange(4), [0.5, 1, 2, 4])), atol=1e-6)
