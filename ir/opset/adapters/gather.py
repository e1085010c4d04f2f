"""TODO gather."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Compress", 9, 11)
extended("Gather", 1, 11)
extended("GatherND", 11, 12)
extended("OneHot", 9, 11)
extended("ScatterElements", 13, 16)
extended("ScatterElements", 16, 18)
extended("ScatterND", 13, 16)
extended("ScatterND", 16, 18)
unchanged("Compress", 11, 28)
unchanged("Gather", 11, 13)
unchanged("GatherElements", 11, 13)
unchanged("GatherND", 12, 13)
unchanged("NonZero", 9, 13)
unchanged("OneHot", 11, 28)
unchanged("ReverseSequence", 10, 28)
unchanged("ScatterElements", 11, 13)
unchanged("ScatterND", 11, 13)
unchanged("Unique", 11, 28)
unchanged("Where", 9, 16)
