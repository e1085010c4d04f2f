"""Products of integers where a device has none: exact to the last bit, and wrapping."""

from __future__ import annotations

import pytest
import torch

from entrepot.runtime.providers.torch import integers

KINDS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


def drawn(kind: torch.dtype, *shape: int) -> torch.Tensor:
    limits = torch.iinfo(kind)
    made = torch.randint(limits.min, limits.max, shape, generator=torch.Generator().manual_seed(0)).to(kind)
    made.view(-1)[0], made.view(-1)[-1] = limits.min, limits.max
    return made


@pytest.mark.parametrize("longest", [1 << 20, 3])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 7), (7, 4)), ((2, 3, 7), (7, 4)), ((3, 7), (2, 7, 4)), ((7,), (7, 4)), ((3, 7), (7,)), ((7,), (7,))],
)
def test_matrices_are_multiplied_as_on_the_host(
    kind: torch.dtype, left: tuple[int, ...], right: tuple[int, ...], longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integers, "_LONGEST", longest)
    x, y = drawn(kind, *left), drawn(kind, *right)
    got = integers.matmul(x, y)
    assert got.dtype == kind
    assert torch.equal(got, torch.matmul(x, y))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_sums_products_is_computed_in_pieces(kind: torch.dtype) -> None:
    x, y = drawn(kind, 3, 4, 5), drawn(kind, 5, 3)
    got = integers.bilinear(lambda a, b: torch.einsum("ijk,ki->ij", a, b), x, y)
    assert torch.equal(got, (x * y.t().unsqueeze(1)).sum(2, dtype=kind))


def test_of_sizes_that_do_not_fit_torch_says_so() -> None:
    with pytest.raises(RuntimeError):
        integers.matmul(drawn(torch.int32, 3, 7), drawn(torch.int32, 6, 4))
