"""TODO recurrent."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("GRU", 7, 14)
extended("LSTM", 7, 14)
extended("RNN", 7, 14)
unchanged("GRU", 14, 22)
unchanged("LSTM", 14, 22)
unchanged("RNN", 14, 22)
