"""Linear algebra as loops: factorisations and what is made of them, for matrices of any size."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def draw(*shape: int, kind=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=kind)


def positive(x):
    """A matrix that is positive definite, and well away from others."""
    return x @ x.mT + 4 * torch.eye(x.shape[-1], dtype=x.dtype)


def rebuilt(parts):
    left, sizes, right = parts
    return left * sizes.unsqueeze(-2) @ right, sizes


def mapped(values, vectors):
    return (vectors * values.tanh().unsqueeze(-2)) @ vectors.mT


SQUARE = {
    "least squares": lambda x: torch.linalg.lstsq(positive(x), x[..., :2]).solution,
    "inverse": torch.linalg.inv,
    "determinant": torch.linalg.det,
    "slogdet": torch.linalg.slogdet,
    "solve": lambda x: torch.linalg.solve(positive(x), x[..., :2]),
    "solve for rows": lambda x: torch.linalg.solve(positive(x), x[..., :2, :], left=False),
    "solve for vectors": lambda x: torch.linalg.solve(positive(x), x[..., 0]),
    "factors": lambda x: torch.lu_unpack(*torch.linalg.lu_factor(x)),
    "solve by factors": lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(positive(x)), x),
    "cholesky": lambda x: torch.linalg.cholesky(positive(x)),
    "cholesky, upper": lambda x: torch.linalg.cholesky(positive(x), upper=True),
    "cholesky solve": lambda x: torch.cholesky_solve(x, torch.linalg.cholesky(positive(x))),
    "cholesky inverse": lambda x: torch.cholesky_inverse(torch.linalg.cholesky(positive(x))),
    "triangle": lambda x: torch.linalg.solve_triangular(positive(x), x, upper=True),
    "triangle on the right": lambda x: torch.linalg.solve_triangular(positive(x), x, upper=False, left=False),
    "ones on the diagonal": lambda x: torch.linalg.solve_triangular(x, x, upper=False, unitriangular=True),
    "exponential": torch.matrix_exp,
    "eigenvalues": lambda x: torch.linalg.eigvalsh(x + x.mT),
    "spectral map": lambda x: mapped(*torch.linalg.eigh(x + x.mT)),
}
OBLONG = {
    "lu": torch.linalg.lu,
    "qr": torch.linalg.qr,
    "qr, complete": lambda x: torch.linalg.qr(x, mode="complete"),
    "singular values": torch.linalg.svdvals,
    "svd": lambda x: rebuilt(torch.linalg.svd(x, full_matrices=False)),
    "pseudo-inverse": torch.linalg.pinv,
    "rank": torch.linalg.matrix_rank,
    "nuclear norm": lambda x: torch.linalg.matrix_norm(x, "nuc"),
}
CASES = [(name, SQUARE[name], shape) for name in SQUARE for shape in ((4, 4), (2, 3, 3))]
CASES += [(name, OBLONG[name], shape) for name in OBLONG for shape in ((5, 3), (2, 3, 4))]


@pytest.mark.parametrize(("name", "function", "shape"), CASES, ids=[f"{case[0]} {case[2]}" for case in CASES])
@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_results_are_those_of_torch(name, function, shape, provider):
    x = draw(*shape)
    model = ep.export(Function(function), x, dynamic=False, verify=False)
    expected = function(x.double())
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    found = ep.Session(model, providers=[provider]).run({model.inputs[0].name: x}).values()
    for actual, exact in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, exact.numpy(), rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("name", ["solve", "determinant", "cholesky", "spectral map"])
def test_the_number_of_rows_may_vary(name):
    model = ep.export(Function(SQUARE[name]), positive(draw(3, 3)))
    assert model.report.ok
    assert not any(isinstance(size, int) for size in model.inputs[0].shape)
    x = positive(draw(7, 7))
    (found,) = ep.Session(model).run({model.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, SQUARE[name](x).numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e8])
@pytest.mark.parametrize("size", [1, 2, 9, 24])
def test_singular_values_keep_their_digits(size, scale):
    x = draw(size, size, kind=torch.float64) * scale
    model = ep.export(Function(torch.linalg.svdvals), x, dynamic=False, verify=False)
    (found,) = ep.Session(model).run({model.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, np.linalg.svd(x.numpy(), compute_uv=False), rtol=1e-11)


def test_rotations_have_an_exponential():
    angle = np.array([0.0, 1.0, 40.0], np.float32)
    turn = torch.from_numpy(angle[:, None, None] * np.array([[0.0, -1.0], [1.0, 0.0]], np.float32))
    model = ep.export(Function(torch.matrix_exp), turn, dynamic=False, verify=False)
    (found,) = ep.Session(model).run({model.inputs[0].name: turn}).values()
    rows = [np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)]
    np.testing.assert_allclose(found.reshape(3, 4), np.stack(rows, 1), atol=2e-6)


def test_a_zero_on_the_diagonal_is_no_obstacle():
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    model = ep.export(Function(lambda x: (torch.linalg.inv(x), torch.linalg.det(x))), swap, dynamic=False, verify=False)
    inverse, determinant = ep.Session(model).run({model.inputs[0].name: swap}).values()
    np.testing.assert_array_equal(inverse, swap.numpy())
    assert determinant == -1


@pytest.mark.parametrize("rows", [1, 3])
def test_a_singular_matrix_has_determinant_zero(rows):
    x = torch.zeros(rows, rows)
    model = ep.export(Function(torch.linalg.det), x, dynamic=False, verify=False)
    (found,) = ep.Session(model).run({model.inputs[0].name: x}).values()
    assert found == 0
