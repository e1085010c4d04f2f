"""TODO constant."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Constant", 11, 12)
extended("Constant", 9, 11)
extended("Range", 11, 27)
unchanged("Constant", 1, 9)
unchanged("Constant", 12, 13, 19, 21, 23, 24, 25)
unchanged("ConstantOfShape", 9, 20, 21, 23, 24, 25)
unchanged("EyeLike", 9, 22)
