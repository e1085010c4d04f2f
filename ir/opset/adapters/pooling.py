"""TODO pooling."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("AveragePool", 1, 7)
extended("AveragePool", 11, 19)
extended("AveragePool", 19, 22)
extended("AveragePool", 7, 10)
extended("LpPool", 11, 18)
extended("MaxPool", 1, 8)
extended("MaxPool", 12, 22)
extended("MaxPool", 8, 10)
unchanged("AveragePool", 10, 11)
unchanged("GlobalAveragePool", 1, 22)
unchanged("GlobalLpPool", 2, 22)
unchanged("GlobalMaxPool", 1, 22)
unchanged("LpPool", 18, 22)
unchanged("LpPool", 2, 11)
unchanged("MaxPool", 10, 11, 12)
unchanged("MaxRoiPool", 1, 22)
unchanged("MaxUnpool", 9, 11, 22)
unchanged("RoiAlign", 16, 22)
