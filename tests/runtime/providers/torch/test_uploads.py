"""Small arrays of the host that kernels take to a device: once for each part, and each time as a tensor of its own."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from entrepot.runtime.providers.torch import uploads
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.dtypes import array_of_tensor
from entrepot.runtime.providers.torch.uploads import Uploads, uploaded

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.uint16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_what_is_taken_there_has_the_same_values(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int64).reshape(shape).astype(dtype)
    with Uploads():
        for _ in range(2):
            np.testing.assert_array_equal(array_of_tensor(uploaded(array, CPU)), array)


def test_the_same_content_is_taken_there_once_whoever_writes_to_it() -> None:
    with Uploads() as part:
        first = uploaded(np.array([1, 2]), CPU)
        first += 1
        assert uploaded(np.array([1, 2]), CPU).tolist() == [1, 2]
        assert len(part.kept) == 1
        uploaded(np.array([1, 2], np.int32), CPU)
        uploaded(np.array([[1, 2]]), CPU)
        assert len(part.kept) == 3


def test_nothing_is_kept_outside_of_a_part_nor_what_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Uploads()
    assert uploaded(np.array([1, 2]), CPU).tolist() == [1, 2]
    monkeypatch.setattr(uploads, "_LARGEST", 8)
    with part:
        assert uploaded(np.array([1, 2]), CPU).tolist() == [1, 2]
    assert not part.kept


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_MOST", 2)
    with Uploads() as part:
        assert [uploaded(np.array(n), CPU).item() for n in (1, 2, 3, 3)] == [1, 2, 3, 3]
        assert len(part.kept) == 2


def test_parts_within_parts_keep_their_own() -> None:
    with Uploads() as outer:
        with Uploads() as inner:
            uploaded(np.array(1), CPU)
        uploaded(np.array(2), CPU)
    assert (len(inner.kept), len(outer.kept)) == (1, 1)


def test_kernels_make_arrays_of_a_device_by_it() -> None:
    with Uploads() as part:
        made = TorchBackend("meta").asarray(np.array([1, 2]))
    assert made.device.type == "meta"
    assert len(part.kept) == 1
