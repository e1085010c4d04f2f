"""Operators that exporters tend to have no translation for, in the models that need them."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn
from torch.func import grad, jacrev, vmap

from tests.export_cases.case import case


def _module(function):
    """A module whose forward is a function of tensors: the shortest way to have one operator in place."""

    class Function(nn.Module):
        def forward(self, *tensors: Tensor):
            return function(*tensors)

    return Function()


def _positive(n: int, batch: int = 2) -> Tensor:
    a = randn(batch, n, n)
    return a @ a.transpose(1, 2) + n * torch.eye(n)


class Gaussian(nn.Module):
    """The density of a multivariate normal distribution by its Cholesky factor."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.root = nn.Parameter(randn(3)), nn.Parameter(torch.eye(3) + 0.1 * torch.rand(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        factor = torch.linalg.cholesky(self.root @ self.root.T)
        z = torch.linalg.solve_triangular(factor, (x - self.mean).T, upper=False)
        return -0.5 * z.pow(2).sum(0) - factor.diagonal().log().sum()


@case("x.0")
def gaussian_density():
    return Gaussian(), (randn(4, 3),), (randn(9, 3),)


class Mixture(nn.Module):
    """A Gaussian mixture through torch.distributions."""

    def __init__(self) -> None:
        super().__init__()
        self.logits, self.mean, self.scale = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        parts = torch.distributions.Normal(self.mean(x), F.softplus(self.scale(x)) + 0.1)
        return torch.logsumexp(parts.log_prob(y.unsqueeze(-1)) + self.logits(x).log_softmax(-1), -1)


@case("x.0", "y.0")
def mixture_density():
    return Mixture(), (randn(2, 4), randn(2)), (randn(5, 4), randn(5))


class GaussianProcess(nn.Module):
    """Prediction of a Gaussian process with stored training points."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("x", torch.rand(6, 2))
        self.register_buffer("y", torch.rand(6))

    def forward(self, new: Tensor) -> tuple[Tensor, Tensor]:
        k = torch.exp(-torch.cdist(self.x, self.x).pow(2)) + 0.1 * torch.eye(6)
        cross = torch.exp(-torch.cdist(new, self.x).pow(2))
        inverse = torch.linalg.inv(k)
        return cross @ inverse @ self.y, 1 - (cross @ inverse * cross).sum(-1)


@case("new.0")
def gaussian_process():
    return GaussianProcess(), (torch.rand(3, 2),), (torch.rand(7, 2),)


@case("x.0")
def matrix_exponential():
    return _module(torch.matrix_exp), (randn(2, 3, 3),), (randn(4, 3, 3),)


@case("x.0")
def determinant_and_inverse():
    return (
        _module(lambda x: (torch.linalg.det(x), torch.linalg.inv(x), torch.logdet(x))),
        (_positive(3),),
        (_positive(3, 5),),
    )


@case("x.0")
def svd_whitening():
    return _module(torch.linalg.svdvals), (randn(2, 4, 3),), (randn(5, 4, 3),)


@case("x.0")
def symmetric_eigenvalues():
    return _module(torch.linalg.eigvalsh), (_positive(3),), (_positive(3, 5),)


@case("x.0")
def least_squares_by_qr():
    return (
        _module(lambda x, y: torch.linalg.lstsq(x, y).solution),
        (randn(2, 5, 3), randn(2, 5, 1)),
        (randn(4, 5, 3), randn(4, 5, 1)),
    )


@case("x.0")
def pseudo_inverse():
    return _module(torch.linalg.pinv), (randn(2, 4, 3),), (randn(5, 4, 3),)


@case("x.0", "x.1")
def ranking_with_stable_sort():
    def rank(x: Tensor) -> Tensor:
        return x.sort(dim=-1, stable=True, descending=True).indices.argsort(-1)

    return _module(rank), (randn(2, 5),), (randn(3, 8),)


@case("x.0", "x.1")
def quantile_normalisation():
    table = torch.linspace(-2, 2, 9)
    return (
        _module(lambda x: torch.searchsorted(table, x) + torch.bucketize(x, table, right=True)),
        (randn(2, 5),),
        (randn(3, 8),),
    )


@case("x.0", "x.1")
def cumulative_products():
    return (
        _module(lambda x: (x.cumprod(-1), x.cummax(-1).values, x.logcumsumexp(-1))),
        (torch.rand(2, 5),),
        (torch.rand(3, 8),),
    )


@case("x.0", "x.1")
def median_and_quantile():
    return (
        _module(lambda x: (x.median(-1).values, x.quantile(0.3, dim=-1), x.mode(-1).values)),
        (randn(2, 5),),
        (randn(3, 9),),
    )


@case("x.0", "x.1")
def special_functions():
    def special(x: Tensor) -> tuple[Tensor, ...]:
        y = x.sigmoid()
        return torch.erfinv(y), torch.special.i0(x), torch.lgamma(y + 1), torch.digamma(y + 1), torch.special.ndtri(y)

    return _module(special), (randn(2, 5),), (randn(3, 8),)


@case("a.0", "b.0")
def distances_of_all_pairs():
    return (
        _module(lambda a, b: (torch.cdist(a, b, p=1), F.pairwise_distance(a[:2], b[:2]))),
        (randn(3, 4), randn(5, 4)),
        (randn(6, 4), randn(2, 4)),
    )


@case("logits.0", "logits.1")
def ctc_loss():
    def loss(logits: Tensor, targets: Tensor, lengths: Tensor, sizes: Tensor) -> Tensor:
        return F.ctc_loss(logits.log_softmax(-1), targets, lengths, sizes)

    def call(batch: int, length: int) -> tuple[Tensor, ...]:
        full = torch.full((batch,), length)
        return randn(length, batch, 6), torch.randint(1, 6, (batch, 3)), full, torch.full((batch,), 3)

    return _module(loss), call(2, 8), call(3, 11)


@case("x.0", "x.1")
def unique_values():
    return (
        _module(lambda x: torch.unique(x, return_inverse=True, return_counts=True)),
        (torch.randint(0, 4, (2, 5)),),
        (torch.randint(0, 7, (3, 8)),),
    )


@case("x.0")
def bincount_histogram():
    return (
        _module(lambda x: torch.bincount(x, minlength=6) + torch.histc(x.float(), 6, 0, 6)),
        (torch.randint(0, 6, (9,)),),
        (torch.randint(0, 6, (14,)),),
    )


@case("x.0")
def gradient_inside_forward():
    class Force(nn.Module):
        """Forces as the gradient of an energy."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_(True)
                (force,) = torch.autograd.grad(self.net(x).sum(), x)
            return -force

    return Force(), (randn(2, 3),), (randn(5, 3),)


@case("x.0")
def per_sample_gradient():
    class Score(nn.Module):
        """``vmap`` over ``grad``."""

        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(randn(3))

        def forward(self, x: Tensor) -> Tensor:
            return vmap(grad(lambda row: torch.tanh(row @ self.w).pow(2)))(x)

    return Score(), (randn(2, 3),), (randn(5, 3),)


@case("x.0")
def jacobian_of_a_net():
    class Jacobian(nn.Module):
        """``vmap`` over ``jacrev``."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

        def forward(self, x: Tensor) -> Tensor:
            return vmap(jacrev(self.net))(x)

    return Jacobian(), (randn(2, 3),), (randn(5, 3),)


@case("x.0", "x.1")
def vmap_over_heads():
    return _module(vmap(lambda row: row.softmax(0) @ row)), (randn(2, 5),), (randn(4, 7),)


@case("x.0", "x.2", "x.3")
def local_patches():
    def patches(x: Tensor) -> Tensor:
        columns = F.unfold(x, 3, padding=1)
        return F.fold(columns, x.shape[-2:], 3, padding=1)

    return _module(patches), (randn(2, 3, 5, 6),), (randn(1, 3, 8, 7),)


@case("x.0", "x.2", "x.3", "theta.0")
def spatial_transformer():
    def warp(x: Tensor, theta: Tensor) -> Tensor:
        return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)

    return _module(warp), (randn(2, 3, 5, 6), randn(2, 2, 3)), (randn(4, 3, 7, 9), randn(4, 2, 3))


@case("x.0", "x.2", "x.3")
def unpooling():
    class Unpool(nn.Module):
        """SegNet's unpooling by indices."""

        def forward(self, x: Tensor) -> Tensor:
            y, where = F.max_pool2d(x, 2, return_indices=True)
            return F.max_unpool2d(y, where, 2)

    return Unpool(), (randn(2, 3, 6, 8),), (randn(1, 3, 10, 4),)


@case("x.0", "x.1")
def rolled_flipped_and_rotated():
    return (
        _module(lambda x: torch.rot90(x.roll((1, -2), (1, 2)), 1, (1, 2)) + x.flip(1).transpose(1, 2)),
        (randn(2, 5, 5),),
        (randn(3, 7, 7),),
    )


@case("x.0")
def triangles_and_diagonals():
    def pack(x: Tensor) -> Tensor:
        rows, columns = torch.tril_indices(4, 4, -1)
        return torch.cat([x[:, rows, columns], x.diagonal(dim1=1, dim2=2)], 1)

    return _module(pack), (randn(2, 4, 4),), (randn(5, 4, 4),)


class DeformableConv(nn.Module):
    """A deformable convolution from grid samples."""

    def __init__(self) -> None:
        super().__init__()
        self.offset, self.conv = nn.Conv2d(3, 18, 3, padding=1), nn.Conv1d(27, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        offset = self.offset(x).view(b, 9, 2, h, w)
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        taps = []
        for tap in range(9):
            py = ys + tap // 3 - 1 + offset[:, tap, 0]
            px = xs + tap % 3 - 1 + offset[:, tap, 1]
            grid = torch.stack([2 * px / (w - 1) - 1, 2 * py / (h - 1) - 1], -1)
            taps.append(F.grid_sample(x, grid, align_corners=True))
        return self.conv(torch.cat(taps, 1).flatten(2)).view(b, 4, h, w)


@case("x.0", "x.2", "x.3")
def deformable_convolution():
    return DeformableConv(), (randn(2, 3, 5, 6),), (randn(1, 3, 8, 7),)


@case("x.0")
def bilinear_and_cosine():
    class Match(nn.Module):
        """A bilinear layer and a cosine."""

        def __init__(self) -> None:
            super().__init__()
            self.pair = nn.Bilinear(4, 4, 3)

        def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            return self.pair(a, b), F.cosine_similarity(a, b)

    return Match(), (randn(2, 4), randn(2, 4)), (randn(5, 4), randn(5, 4))


@case("x.0")
def random_relu_and_celu():
    return (
        nn.Sequential(nn.RReLU(), nn.CELU(0.7), nn.Hardshrink(), nn.Softshrink(), nn.Threshold(0.1, 0.5)),
        (randn(2, 6),),
        (randn(5, 6),),
    )


@case("x.0", "x.1")
def masked_attention_rows():
    """A row of the mask without a single True."""

    def attend(x: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    def call(batch: int, length: int) -> tuple[Tensor, Tensor]:
        mask = torch.ones(batch, length, length).tril().bool()
        mask[0, 0] = False
        return randn(batch, length, 4), mask

    return _module(attend), call(2, 4), call(3, 6)
