"""Sequences, optionals and scans."""

from __future__ import annotations

from tests.ir.opset.down.case import UNARY, Down, M, f32

CASES = {
    "a tensor out of an open sequence": Down(
        11,
        (10, 9),
        "s = SequenceConstruct(x, z) y = SequenceAt(s, i)",
        "float[3,4] x, float[3,4] z) => (float[3,4] y",
        (M, f32(3, 4)),
        "int64 i = {-1}",
    ),
    "the element of what is not optional": Down(18, (16, 15), "y = OptionalGetElement(x)", UNARY, (M,)),
    "scan along a negative axis": Down(
        11,
        (10, 9),
        "f, y = Scan<num_scan_inputs = 1, scan_input_axes = [-1],"
        " body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) { t = Add(s, e) o = Identity(t) }>(i, x)",
        "float[3,4] x) => (float[3] f, float[4,3] y",
        (M,),
        "float[3] i = {0, 0, 0}",
    ),
}
