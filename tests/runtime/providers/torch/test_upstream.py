"""Canaries for what is used of torch's private operators: they say what broke when a release moves it."""

from __future__ import annotations

import pytest
import torch

from entrepot.runtime.providers.torch import upstream


def test_packed_kernels_are_there_where_their_libraries_are() -> None:
    assert upstream.packs_convolutions() == torch.backends.mkldnn.is_available()
    assert upstream.packs_matrices() == torch.backends.mkl.is_available()


def test_where_one_is_missing_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_operator", lambda *_: None)
    for probe in (upstream.packs_convolutions, upstream.packs_matrices):
        assert probe.__wrapped__() is False
