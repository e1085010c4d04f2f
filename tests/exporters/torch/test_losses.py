import itertools

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.translations.losses import (
    cross_entropy,
    gaussian_nll_loss,
    multi_margin_loss,
)


@pytest.mark.parametrize("impossible", [False, True])
@pytest.mark.parametrize(("shape", "labels"), [((6, 5), (6,)), ((5,), ()), ((2, 5, 3, 4), (2, 3, 4))])
def test_cross_entropy_is_that_of_torch(shape, labels, impossible):
    x, chances = torch.randn(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)
    if impossible:
        x.movedim(min(x.dim() - 1, 1), 0)[0] = -torch.inf
    weight, y = torch.rand(5, dtype=torch.float64), torch.randint(1, 5, labels)
    for each, reduction, smoothing in itertools.product((None, weight), ("mean", "sum", "none"), (0.0, 0.1)):
        how = {"weight": each, "reduction": reduction, "label_smoothing": smoothing}
        torch.testing.assert_close(cross_entropy(x, chances, **how), F.cross_entropy(x, chances, **how))
        for ignored in (-100, 0, 3):
            how["ignore_index"] = ignored
            torch.testing.assert_close(cross_entropy(x, y, **how), F.cross_entropy(x, y, **how), equal_nan=True)
            nothing = torch.full_like(y, ignored)
            torch.testing.assert_close(
                cross_entropy(x, nothing, **how), F.cross_entropy(x, nothing, **how), equal_nan=True
            )


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gaussian_likelihood_is_that_of_torch(full, reduction):
    x, y, spread = torch.rand(3, 4, 5, dtype=torch.float64)
    for variance in (spread, spread[:, 0], spread[:, :1], 0.5):
        args = (x, y, variance)
        expected = F.gaussian_nll_loss(*args, full=full, reduction=reduction)
        torch.testing.assert_close(gaussian_nll_loss(*args, full=full, reduction=reduction), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(6, 5), (5,)])
def test_multi_margin_loss_is_that_of_torch(shape, reduction):
    x, weight = torch.randn(shape, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    x[..., 2] = torch.nan
    y = torch.tensor([0, 4, 2, 1, 3, 0] if len(shape) == 2 else 3)
    for p, margin, each in itertools.product((1, 2), (1.0, 0.3), (None, weight)):
        how = {"p": p, "margin": margin, "weight": each, "reduction": reduction}
        torch.testing.assert_close(multi_margin_loss(x, y, **how), F.multi_margin_loss(x, y, **how), equal_nan=True)
