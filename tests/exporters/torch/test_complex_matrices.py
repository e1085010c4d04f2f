"""Linear algebra on complex matrices, by that of real ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.pair import Pair
from entrepot.exporters.torch.translations.pairs import rule_for

aten = torch.ops.aten
_GENERATOR = torch.Generator().manual_seed(5)
_KIND = torch.complex128


def _draw(*shape):
    return torch.randn(*shape, dtype=_KIND, generator=_GENERATOR)


A, B = _draw(2, 4, 4), _draw(2, 4, 3)
POSITIVE = A @ A.mH + torch.eye(4)
SKEWED = POSITIVE + torch.diag_embed(torch.ones(4)) * 1j  # what lies on the diagonal beside real numbers is not read


def _pair(value):
    return Pair(value.real, value.imag) if isinstance(value, torch.Tensor) and value.is_complex() else value


def _by_rule(operator, *args, **how):
    found = rule_for(operator)(*map(_pair, args), **how)
    first = found[0] if isinstance(found, tuple) else found
    return torch.complex(first.re, first.im) if isinstance(first, Pair) else first


def _first(result):
    return result if isinstance(result, torch.Tensor) else result[0]


@pytest.mark.parametrize(
    ("operator", "args", "how"),
    [
        (aten._linalg_solve_ex, (A, B), {}),
        (aten._linalg_solve_ex, (A, B.mT), {"left": False}),
        (aten._linalg_solve_ex, (A, B[..., 0]), {}),
        (aten._linalg_solve_ex, (A[0], B[0, :, 0]), {}),
        (aten._linalg_solve_ex, (A[:, None], B), {}),
        (aten.linalg_inv_ex, (A,), {}),
        (aten.linalg_matrix_exp, (A,), {}),
        (aten.linalg_cholesky_ex, (POSITIVE,), {}),
        (aten.linalg_cholesky_ex, (SKEWED,), {}),
        (aten.linalg_cholesky_ex, (POSITIVE,), {"upper": True}),
        (aten.linalg_solve_triangular, (A, B), {"upper": True}),
        (aten.linalg_solve_triangular, (A, B), {"upper": False, "unitriangular": True}),
        (aten.linalg_solve_triangular, (A, B.mT), {"upper": False, "left": False}),
        (aten.cholesky_solve, (B, torch.linalg.cholesky(POSITIVE)), {}),
        (aten.cholesky_solve, (B, torch.linalg.cholesky(POSITIVE).mH), {"upper": True}),
        (aten._linalg_eigh, (SKEWED,), {}),
        (aten._linalg_eigh, (A,), {"UPLO": "U"}),
        (aten._linalg_det, (A,), {}),
        (aten._linalg_det, (A[:, :1, :1],), {}),
        (aten._linalg_slogdet, (A,), {}),
    ],
)
def test_results_are_those_of_torch(operator, args, how):
    wanted = _first(operator(*args, **how))
    torch.testing.assert_close(_by_rule(operator, *args, **how), wanted, rtol=1e-9, atol=1e-9)


def test_the_logarithm_of_a_determinant_is_that_of_torch():
    torch.testing.assert_close(rule_for(aten._linalg_slogdet)(_pair(A))[1], torch.linalg.slogdet(A)[1])


def test_singular_values_are_those_of_torch():
    found = rule_for(aten._linalg_svd)(_pair(B), compute_uv=False)[1]
    torch.testing.assert_close(found, torch.linalg.svdvals(B))


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [0, 0, 0, 2], [1, 1, 3, 3], [2, 2, 2, 2], [0, 0, 1, 1]])
def test_eigenvectors_are_orthogonal_also_where_eigenvalues_are_equal(values):
    axes = torch.linalg.qr(A)[0]
    matrix = axes * torch.tensor(values, dtype=_KIND) @ axes.mH
    sizes, vectors = rule_for(aten._linalg_eigh)(_pair(matrix))
    vectors = torch.complex(vectors.re, vectors.im)
    torch.testing.assert_close(vectors.mH @ vectors, torch.eye(4, dtype=_KIND).expand(2, 4, 4))
    torch.testing.assert_close(vectors * sizes[:, None] @ vectors.mH, matrix)


class Beams(nn.Module):
    """Weights that suppress all but one direction, and the part of a signal that lies in none."""

    def forward(self, signal, steering):
        signal, steering = torch.view_as_complex(signal), torch.view_as_complex(steering)
        covariance = torch.einsum("bct,bdt->bcd", signal, signal.conj()) / signal.shape[-1]
        covariance = covariance + 0.1 * torch.eye(covariance.shape[-1], dtype=covariance.dtype)
        weights = torch.linalg.solve(covariance, steering)
        weights = weights / (steering.conj() * weights).sum(-1, keepdim=True)
        noise = torch.linalg.eigh(covariance)[1][..., :2]
        outside = (noise.mH @ steering[..., None]).abs().square().sum((-2, -1))
        return torch.view_as_real((weights.conj()[..., None] * signal).sum(1)), outside


def test_beams_are_formed_at_any_length():
    varying = {"signal": {0: "batch", 2: "length"}, "steering": {0: "batch"}}
    model = ep.export(Beams(), (torch.randn(2, 3, 9, 2), torch.randn(2, 3, 2)), dynamic=varying)
    assert model.inputs[0].shape == ("batch", 3, "length", 2)


@pytest.mark.parametrize("function", [torch.cov, torch.corrcoef])
def test_covariances_of_complex_numbers(function):
    class Covariance(nn.Module):
        def forward(self, x):
            return torch.view_as_real(function(torch.view_as_complex(x)))

    assert "verified" in str(ep.export(Covariance(), torch.randn(3, 7, 2)))


def test_the_pseudo_inverse_of_complex_numbers():
    class Fitted(nn.Module):
        def forward(self, x):
            return torch.view_as_real(torch.linalg.pinv(torch.view_as_complex(x)))

    with torch.no_grad():
        model = ep.export(Fitted(), torch.randn(4, 2, 2), dynamic=False)
    assert "verified" in str(model)


def test_eigenvalues_of_matrices_of_any_size():
    class Values(nn.Module):
        def forward(self, x):
            x = torch.view_as_complex(x)
            return torch.linalg.eigvalsh(x @ x.mH)

    model = ep.export(Values(), torch.randn(2, 3, 4, 2))
    assert not any(isinstance(size, int) for size in model.inputs[0].shape[:3])


def test_singular_vectors_are_refused():
    class Vectors(nn.Module):
        def forward(self, x):
            return torch.view_as_real(torch.linalg.svd(torch.view_as_complex(x), full_matrices=False)[0])

    with pytest.raises(ep.ConversionError, match="for complex numbers"):
        ep.export(Vectors(), torch.randn(3, 2, 2))
