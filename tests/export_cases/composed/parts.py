"""The modules whose steps are composed: layers and tables that any step may use."""

from __future__ import annotations

import torch
from torch import nn


class Sequences(nn.Module):
    """Takes [batch, length, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.lin2, self.gate, self.router = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1), nn.Linear(8, 3)
        self.cell, self.lstm = nn.GRUCell(8, 8), nn.LSTM(8, 8, batch_first=True)
        self.conv, self.norm = nn.Conv1d(8, 8, 3, padding=1), nn.LayerNorm(8)
        self.att, self.emb = nn.MultiheadAttention(8, 2, batch_first=True), nn.Embedding(10, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.register_buffer("table", torch.randn(32, 8))


class Pictures(nn.Module):
    """Takes [batch, 4, height, width]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.one, self.coord = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1), nn.Conv2d(6, 4, 1)
        self.down, self.up = nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.lin, self.se, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.GroupNorm(2, 4)
        self.gru = nn.GRU(4, 4, batch_first=True)
        self.bias_table, self.tok = nn.Parameter(torch.randn(49)), nn.Parameter(torch.randn(1, 1, 4))
        self.register_buffer("pos", torch.randn(1, 4, 6, 6))
