import pytest
import torch

from entrepot.exporters.torch.translations.elimination import REPLACEMENTS


def draw(*shape: int) -> torch.Tensor:
    """The same each time, in float64: what elimination rounds must not hide what it does wrong."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


MATRICES = [draw(*batch, size, size) for batch in ((), (3,)) for size in (1, 2, 5)]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: str(tuple(matrix.shape)))
def test_systems_are_solved_as_by_torch(matrix):
    right = draw(*matrix.shape[:-1], 2)
    for function, args in (
        (torch.linalg.inv, (matrix,)),
        (torch.linalg.solve, (matrix, right)),
        (torch.linalg.solve, (matrix, right[..., 0])),
        (torch.linalg.cholesky, (matrix @ matrix.mT + torch.eye(matrix.shape[-1], dtype=matrix.dtype),)),
    ):
        torch.testing.assert_close(REPLACEMENTS[function](*args), function(*args), **CLOSE)
    for upper in (False, True):
        triangle = (matrix.triu() if upper else matrix.tril()) + 3 * torch.eye(matrix.shape[-1], dtype=matrix.dtype)
        expected = torch.linalg.solve_triangular(triangle, right, upper=upper)
        actual = REPLACEMENTS[torch.linalg.solve_triangular](triangle, right, upper=upper)
        torch.testing.assert_close(actual, expected, **CLOSE)


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: str(tuple(matrix.shape)))
def test_determinants_are_those_of_torch(matrix):
    pairs = zip(REPLACEMENTS[torch.linalg.slogdet](matrix), torch.linalg.slogdet(matrix), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, **CLOSE)


def test_a_zero_on_the_diagonal_is_no_obstacle():
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    torch.testing.assert_close(REPLACEMENTS[torch.linalg.inv](swap), swap)
