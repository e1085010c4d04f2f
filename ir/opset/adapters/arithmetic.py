"""TODO arithmetic."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Max", 6, 8)
extended("Mean", 6, 8)
extended("Min", 6, 8)
extended("Mod", 13, 28)
extended("Sum", 6, 8)
unchanged("Add", 7, 13, 14)
unchanged("BitShift", 11, 28)
unchanged("Div", 7, 13, 14)
unchanged("Equal", 7, 11, 13, 19)
unchanged("Greater", 7, 9, 13)
unchanged("GreaterOrEqual", 12, 16)
unchanged("Less", 7, 9, 13)
unchanged("LessOrEqual", 12, 16)
unchanged("Max", 8, 12, 13)
unchanged("Mean", 8, 13)
unchanged("Min", 8, 12, 13)
unchanged("Mod", 10, 13)
unchanged("Mul", 7, 13, 14)
unchanged("Pow", 7, 12, 13, 15)
unchanged("Sub", 7, 13, 14)
unchanged("Sum", 8, 13)
