import pytest
import torch

from entrepot.exporters.torch.translations.elimination import REPLACEMENTS

_GENERATOR = torch.Generator().manual_seed(0)
MATRICES = [torch.randn(*batch, size, size, generator=_GENERATOR) for batch in ((), (3,)) for size in (1, 2, 5)]


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: str(tuple(matrix.shape)))
def test_systems_are_solved_as_by_torch(matrix):
    right = torch.randn(*matrix.shape[:-1], 2, generator=_GENERATOR)
    close = {"rtol": 1e-3, "atol": 1e-4}
    for function, args in (
        (torch.linalg.inv, (matrix,)),
        (torch.linalg.solve, (matrix, right)),
        (torch.linalg.solve, (matrix, right[..., 0])),
        (torch.linalg.cholesky, (matrix @ matrix.mT + torch.eye(matrix.shape[-1]),)),
    ):
        torch.testing.assert_close(REPLACEMENTS[function](*args), function(*args), **close)
    for upper in (False, True):
        triangle = (matrix.triu() if upper else matrix.tril()) + 3 * torch.eye(matrix.shape[-1])
        expected = torch.linalg.solve_triangular(triangle, right, upper=upper)
        actual = REPLACEMENTS[torch.linalg.solve_triangular](triangle, right, upper=upper)
        torch.testing.assert_close(actual, expected, **close)


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: str(tuple(matrix.shape)))
def test_determinants_are_those_of_torch(matrix):
    pairs = zip(REPLACEMENTS[torch.linalg.slogdet](matrix), torch.linalg.slogdet(matrix), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_zero_on_the_diagonal_is_no_obstacle():
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    torch.testing.assert_close(REPLACEMENTS[torch.linalg.inv](swap), swap)
