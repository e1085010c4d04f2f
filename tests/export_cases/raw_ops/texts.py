"""Text."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add

WORDS = np.array([["Hello World", "a1"], ["", "Ünï CODE"]], object)
PLAIN = np.array(["a b  c", "", "one", " x  y z "], object)
for op in ("StringLower", "StringUpper"):
    add(op, {"encoding": "utf-8"}, input=WORDS)
    add(op, input=PLAIN)
add("StringStrip", input=np.array([" a b ", "", "\t \n c\r\n", "  ", "d"], object))
add("StringStrip", input=WORDS)
add("StringJoin", {"separator": "-"}, inputs=[WORDS, WORDS])
add("StringJoin", inputs=[PLAIN, PLAIN, PLAIN])
for pattern in ("[a-z]+[0-9]", ".*o.*", ""):
    add("StaticRegexFullMatch", {"pattern": pattern}, input=WORDS)
    add("RegexFullMatch", known="pattern", input=WORDS, pattern=np.array(pattern, object))
for separator, most in (("", -1), (" ", -1), (" ", 1), ("", 1)):
    add("StringSplitV2", {"maxsplit": most}, "sep", input=PLAIN, sep=np.array(separator, object))
add("StringToNumber", string_tensor=np.array(["1.5", "-2e3", "7"], object))
add("StringToNumber", {"out_type": "int64"}, string_tensor=np.array(["15", "-23"], object))
add("AsString", input=np.array([1, -20, 300]))
add("AsString", input=np.array([True, False]))
add("Equal", x=PLAIN, y=PLAIN[::-1].copy())
add("ConcatV2", known="axis", values=[PLAIN, PLAIN], axis=np.int32(0))
add("GatherV2", known="axis", params=PLAIN, indices=np.array([2, 0]), axis=np.int32(0))
add("Reshape", known="shape", tensor=WORDS, shape=np.array([4]))
