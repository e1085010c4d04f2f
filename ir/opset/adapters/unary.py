"""TODO unary."""

from __future__ import annotations

from entrepot.ir.opset.rules import unchanged

unchanged("Abs", 6, 13)
unchanged("Acos", 7, 22)
unchanged("Acosh", 9, 22)
unchanged("Asin", 7, 22)
unchanged("Asinh", 9, 22)
unchanged("Atan", 7, 22)
unchanged("Atanh", 9, 22)
unchanged("Ceil", 6, 13)
unchanged("Cos", 7, 22)
unchanged("Cosh", 9, 22)
unchanged("Det", 11, 22)
unchanged("Exp", 6, 13)
unchanged("Floor", 6, 13)
unchanged("IsInf", 10, 20)
unchanged("IsNaN", 9, 13, 20)
unchanged("Log", 6, 13)
unchanged("Neg", 6, 13)
unchanged("Reciprocal", 6, 13)
unchanged("Round", 11, 22)
unchanged("Sign", 9, 13)
unchanged("Sin", 7, 22)
unchanged("Sinh", 9, 22)
unchanged("Sqrt", 6, 13)
unchanged("Tan", 7, 22)
