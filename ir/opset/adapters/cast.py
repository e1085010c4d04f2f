"""TODO cast."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Cast", 13, 19)
extended("Cast", 23, 24)
extended("Cast", 6, 9)
extended("CastLike", 15, 19)
extended("CastLike", 23, 24)
unchanged("Cast", 19, 21, 23)
unchanged("Cast", 24, 25, 28)
unchanged("Cast", 9, 13)
unchanged("CastLike", 19, 21, 23)
unchanged("CastLike", 24, 25)
