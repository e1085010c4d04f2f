import warnings

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations import decompositions, replacements

_GENERATOR = torch.Generator().manual_seed(0)
FLOATS = torch.randn(4, 7, generator=_GENERATOR)
OTHERS = torch.randn(4, 7, generator=_GENERATOR)
HOLES = FLOATS.clone()
HOLES[1, 2] = torch.nan
INTEGERS = torch.randint(-90, 90, (50,), generator=_GENERATOR)


def ours(function):
    if function in replacements():
        return replacements()[function]
    return decompositions()[getattr(torch.ops.aten, function.__name__).default]


def agree(function, *args, **how):
    torch.testing.assert_close(ours(function)(*args, **how), function(*args, **how), equal_nan=True)


@pytest.mark.parametrize("function", [torch.fmax, torch.fmin, torch.hypot])
def test_pairs_are_those_of_torch(function):
    agree(function, FLOATS, OTHERS)
    agree(function, HOLES, OTHERS)
    agree(function, OTHERS, HOLES)
    agree(function, FLOATS * 0, FLOATS * 0)


@pytest.mark.parametrize("function", [torch.gcd, torch.lcm])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_divisors_and_multiples_are_those_of_torch(function, dtype):
    agree(function, (INTEGERS % 11).to(dtype), INTEGERS.flip(0).to(dtype) % 11)


def test_integers_taken_from_a_float_become_floats():
    for x in (INTEGERS, INTEGERS.to(torch.uint8), FLOATS):
        agree(torch.Tensor.__rsub__, x, 1.5)
        agree(torch.rsub, x, 2, alpha=3)


@pytest.mark.parametrize("function", [torch.cov, torch.corrcoef, F.pdist, F.rrelu])
def test_tables_of_rows_are_those_of_torch(function):
    agree(function, FLOATS)


def test_extremes_and_frequencies_are_those_of_torch():
    for how in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}):
        pairs = zip(replacements()[torch.aminmax](FLOATS, **how), torch.aminmax(FLOATS, **how), strict=True)
        for ours, theirs in pairs:
            torch.testing.assert_close(ours, theirs)
    for count in (1, 7, 8):
        agree(torch.fft.fftfreq, count, 0.5)


def test_groups_of_rows_meet_their_own_matrices():
    x, weight = torch.randn(6, 8), torch.randn(3, 8, 4)
    agree(F.grouped_mm, x, weight, offs=torch.tensor([2, 2, 6], dtype=torch.int32))


@torch.library.custom_op("entrepot_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x):
    return torch.empty_like(x)


class Custom(nn.Module):
    def forward(self, x):
        return doubled(x) + torch.ops.entrepot_tests.doubled(x)


def test_an_operator_written_in_python_is_captured_as_its_python():
    assert ep.export(Custom(), FLOATS).report.ok


MEMBERS = [torch.tensor([1.0, -0.0, torch.nan, 7.5]), torch.tensor([3, 5, 5]), torch.tensor([]), 0.0]


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("members", MEMBERS, ids=["floats", "integers", "none", "number"])
def test_membership_is_that_of_torch(members, invert):
    x = torch.tensor([[0.0, 1.0, 2.0], [5.0, torch.nan, 7.5]])
    model = ep.export(Members(members, invert), x)
    assert ep.compare(torch.isin(x, members, invert=invert), ep.Session(model)(x))


@pytest.mark.parametrize("how", [{}, {"dim": 1}, {"dim": 0}, {"dim": (0, 1), "keepdim": True}], ids=str)
def test_none_of_nothing_is_true(how):
    for x in (torch.zeros(3, 0), torch.tensor([[0.0, torch.nan], [0.0, -0.0]])):
        model = ep.export(Any(how), x, dynamic=False, verify=x.numel() > 0)
        assert ep.compare(torch.any(x, **how), ep.Session(model)(x))


class Any(nn.Module):
    """Whether anything is not 0."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        return torch.any(x, **self.how)


class Members(nn.Module):
    """Which elements are among some."""

    def __init__(self, members, invert):
        super().__init__()
        self.members, self.invert = members, invert

    def forward(self, x):
        return torch.isin(x, self.members, invert=self.invert)


@pytest.mark.parametrize("divisor", [1.0, 2.5, -2.5, 3, -3, 0.0, float("inf"), float("-inf"), float("nan")])
def test_remainders_by_a_number_have_its_sign(divisor):
    table = decompositions()
    for x in (FLOATS * 4, HOLES, torch.tensor([-6.0, -0.0, 0.0, 6.0, -1e-9])):
        found = table[torch.ops.aten.remainder.Scalar](x, divisor)
        torch.testing.assert_close(found, torch.remainder(x, divisor), equal_nan=True, rtol=0, atol=0)
        found = table[torch.ops.aten.floor_divide.Scalar](x, divisor)
        torch.testing.assert_close(found, torch.floor_divide(x, divisor), equal_nan=True, rtol=0, atol=0)


def test_lengths_are_those_of_torch_where_squares_overflow():
    sizes = [0.0, 1e-42, 1e-30, 3.0, 1e30, 3e38, float("inf"), float("-inf"), float("nan")]
    x, y = torch.cartesian_prod(torch.tensor(sizes), torch.tensor(sizes)).unbind(1)
    torch.testing.assert_close(ours(torch.hypot)(x, y), torch.hypot(x, y), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("correction", [0, 1, 2, 0.5])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_variances_of_few_numbers_are_those_of_torch(count, correction):
    x = torch.linspace(-1, 2, 5)[:count]
    found = decompositions()[torch.ops.aten.var.correction](x, correction=correction)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few numbers
        torch.testing.assert_close(found, torch.var(x, correction=correction), equal_nan=True)


def test_sums_of_exponentials_keep_digits_and_infinities():
    ends = [0.0, -1e-3, -5.0, -12.0, 90.0, -1000.0, 3e38, float("inf"), float("-inf"), float("nan")]
    x, y = torch.cartesian_prod(torch.tensor(ends), torch.tensor(ends)).unbind(1)
    torch.testing.assert_close(ours(torch.logaddexp)(x, y), torch.logaddexp(x, y), equal_nan=True, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("how", "nodes"), [({}, 1), ({"threshold": 2}, 3), ({"beta": 3}, 5)])
def test_softplus_is_one_node_where_its_bound_does_not_show(how, nodes):
    x = torch.tensor([-200.0, -30, -1, 0, 1, 17.9, 18.1, 19.9, 20.1, 500])
    model = ep.export(lambda x: torch.nn.functional.softplus(x, **how), x)
    assert model.report.ok
    assert len([node for node in model.ir.graph if node.op_type != "Constant"]) == nodes
