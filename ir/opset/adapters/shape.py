"""TODO shape."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Concat", 4, 11)
extended("Flatten", 9, 11)
extended("Pad", 13, 18)
extended("Pad", 18, 19)
extended("Reshape", 13, 14)
extended("Shape", 13, 15)
extended("Slice", 10, 11)
extended("Split", 2, 11)
extended("Squeeze", 1, 11)
extended("Unsqueeze", 1, 11)
unchanged("Concat", 11, 13)
unchanged("Expand", 8, 13)
unchanged("Flatten", 1, 9)
unchanged("Flatten", 11, 13, 21, 23, 24, 25)
unchanged("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
unchanged("Pad", 11, 13)
unchanged("Pad", 19, 21, 23, 24, 25)
unchanged("Reshape", 14, 19, 21, 23, 24, 25)
unchanged("Reshape", 5, 13)
unchanged("Shape", 1, 13)
unchanged("Shape", 15, 19, 21, 23, 24, 25)
unchanged("Size", 1, 13, 19, 21, 23, 24, 25)
unchanged("Slice", 11, 13)
unchanged("Squeeze", 13, 21, 23, 24, 25)
unchanged("Tile", 6, 13)
unchanged("Transpose", 1, 13, 21, 23, 24, 25)
unchanged("Unsqueeze", 13, 21, 23, 24, 25)
