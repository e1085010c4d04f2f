import pytest
import torch

from entrepot.exporters.torch.translations.selection import REPLACEMENTS

_GENERATOR = torch.Generator().manual_seed(0)
FLOATS = torch.randn(4, 7, generator=_GENERATOR)
INTEGERS = torch.randint(4, (5, 8), generator=_GENERATOR)
HOLES = FLOATS.clone()
HOLES[1, 2] = HOLES[3] = torch.nan
FAR = FLOATS * 1000
FAR[0, :3] = FAR[1, 0] = FAR[2, 4] = -torch.inf
FAR[3, 5] = torch.inf


def agree(function, *args):
    actual, expected = REPLACEMENTS[function](*args), function(*args)
    assert type(actual) is type(expected)
    pairs = zip(actual, expected, strict=True) if isinstance(actual, tuple) else [(actual, expected)]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_ranked_elements_are_those_of_torch(dim, keep):
    agree(torch.kthvalue, FLOATS, 3, dim, keep)
    for x in (FLOATS, HOLES):
        agree(torch.median, x, dim, keep)
    agree(torch.nanmedian, FLOATS, dim, keep)
    values = REPLACEMENTS[torch.nanmedian](HOLES, dim, keep)[0]
    torch.testing.assert_close(values, torch.nanmedian(HOLES, dim, keep)[0], equal_nan=True)
    for x in (FLOATS, INTEGERS):
        agree(torch.mode, x, dim, keep)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_extremes_are_those_of_torch(dim):
    for x in (FLOATS, INTEGERS):
        agree(torch.cummax, x, dim)
        agree(torch.cummin, x, dim)
    for x in (FLOATS, HOLES, FAR):
        agree(torch.logcumsumexp, x, dim)


def test_the_middle_of_everything_is_that_of_torch():
    for x in (FLOATS, HOLES, INTEGERS):
        agree(torch.median, x)
    agree(torch.nanmedian, HOLES)


@pytest.mark.parametrize("r", [0, 1, 2, 3])
@pytest.mark.parametrize("again", [False, True])
def test_combinations_are_those_of_torch(r, again):
    for x in (FLOATS[0], INTEGERS[0], FLOATS[0, :1], FLOATS[0, :0]):
        agree(torch.combinations, x, r, again)


def test_elements_taken_along_an_axis_are_those_of_torch():
    chosen = torch.tensor([[2], [0], [6], [3]])
    agree(torch.take_along_dim, FLOATS, chosen, 1)
    agree(torch.take_along_dim, FLOATS, chosen[:1].T, -2)
    agree(torch.take_along_dim, FLOATS[:1], chosen, 1)
    agree(torch.take_along_dim, FLOATS, chosen)
