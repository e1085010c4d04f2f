"""TODO control_flow."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("If", 1, 11)
extended("If", 11, 13)
extended("If", 13, 16)
extended("Loop", 1, 11)
extended("Loop", 11, 13)
extended("Loop", 13, 16)
extended("Scan", 9, 11)
unchanged("If", 16, 19, 21, 23, 24, 25)
unchanged("Loop", 16, 19, 21, 23, 24, 25)
unchanged("Scan", 11, 16, 19, 21, 23, 24, 25)
