"""TODO sequence."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("OptionalGetElement", 15, 18)
extended("OptionalHasElement", 15, 18)
unchanged("Optional", 15, 28)
unchanged("OptionalGetElement", 18, 28)
unchanged("OptionalHasElement", 18, 28)
unchanged("SplitToSequence", 11, 24)
