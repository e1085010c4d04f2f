"""Sizes that are sums and products of three or more."""

from __future__ import annotations

import pytest
import torch

from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.upstream import disable_proxy_modes_tracing, make_fx

SIZES = (lambda a, b, c: a * b * c, lambda a, b, c: a + b + c, lambda a, b, c: 2 * a * b * c + b)


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_a_capture_has_not_seen_is_computed_from_three(size):
    def function(x):
        with disable_proxy_modes_tracing():  # as in the arms of a branch
            count = size(*x.shape)
        return torch.ones(count) * x.sum()

    with capture_settings():
        program = make_fx(function, tracing_mode="symbolic")(torch.ones(2, 3, 5))
    assert program(torch.ones(4, 7, 3)).shape == (size(4, 7, 3),)
