import pytest
import torch

from entrepot.exporters.torch.translations.scattering import REPLACEMENTS

_GENERATOR = torch.Generator().manual_seed(0)
X, SOURCE = torch.randn(2, 3, 4, generator=_GENERATOR)
INDEX = torch.randint(2, (3, 4), generator=_GENERATOR)


@pytest.mark.parametrize("reduce", ["mean", "sum", "amax"])
@pytest.mark.parametrize("own", [False, True])
def test_scattered_elements_are_reduced_as_by_torch(reduce, own):
    args = (X, 1, INDEX, SOURCE, reduce)
    expected = torch.scatter_reduce(*args, include_self=own)
    torch.testing.assert_close(REPLACEMENTS[torch.scatter_reduce](*args, include_self=own), expected)


@pytest.mark.parametrize("how", [{}, {"N": 3}, {"N": 5, "increasing": True}], ids=str)
def test_powers_are_those_of_torch(how):
    for x in (X[0], INDEX[0]):
        torch.testing.assert_close(REPLACEMENTS[torch.vander](x, **how), torch.vander(x, **how))
