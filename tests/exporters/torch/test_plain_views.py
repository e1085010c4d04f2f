"""Views whose sizes are seen to fit are not left to torch, which asks a dozen questions about each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.upstream import shape_inference

VIEW = torch.ops.aten.view.default


class Windows(nn.Module):
    """A picture that is padded to windows of four, which are taken apart and put together again."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, height, width, channels = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (4 - width % 4) % 4, 0, (4 - height % 4) % 4))
        rows, columns = x.shape[1:3]
        x = x.view(batch, rows // 4, 4, columns // 4, 4, channels).cumsum(2)
        x = x.view(-1, rows, columns, channels)[:, :height, :width].contiguous()
        return x.view(batch, height * width, channels)


def test_windows_of_a_padded_picture_are_seen_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    torchs, asked = shape_inference.op_implementations_dict[VIEW], list[tuple[Any, Any]]()

    def counted(mode: Any, operator: Any, source: torch.Tensor, shape: Any) -> Any:
        if any(isinstance(size, torch.SymInt) for size in (*source.shape, *shape)):
            asked.append((source.shape, shape))
        return torchs(mode, operator, source, shape)

    monkeypatch.setitem(shape_inference.op_implementations_dict, VIEW, counted)
    model = ep.export(Windows(), torch.randn(2, 9, 6, 3), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    assert not asked
