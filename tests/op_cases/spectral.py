from __future__ import annotations

import numpy as np

from tests.op_cases.case import Case, bf16, f16, f32, f64, floats

WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")


def whole(value: int, dtype: type = np.int64) -> np.ndarray:
    return np.array(value, dtype)


CASES = [
    *(Case("DFT", make(2, 8, 1)) for make in (f32, f64)),
    *(Case("DFT", make(2, 8, 1)) for make in (f16, bf16)),
    Case("DFT", f32(2, 8, 2)),
    Case("DFT", f32(2, 8, 2), inverse=1),
    Case("DFT", f32(2, 8, 1), onesided=1),
    Case("DFT", f32(2, 5, 2), inverse=1, onesided=1)
    .held_to("reference", why="onnxruntime knows no IRFFT"),
    Case("DFT", f32(2, 8, 1), whole(12)),
    Case("DFT", f32(2, 8, 1), whole(5, np.int32)),
    Case("DFT", f32(3, 8, 4, 1), None, whole(1)),
    Case("DFT", f32(3, 8, 4, 2), None, whole(-3)),
    Case("STFT", f32(2, 20, 1), whole(4), f32(8)),
    Case("STFT", f32(2, 20, 1), whole(4), None, whole(8)),
    Case("STFT", f32(2, 20), whole(4), f32(8)),
    Case("STFT", f64(2, 20), whole(3), None, whole(8), onesided=0),
    Case("STFT", f32(2, 20, 1), whole(3), f32(8), whole(8), onesided=0),
    Case("STFT", f32(2, 20, 2), whole(4), f32(8), onesided=0),
    Case("STFT", f64(1, 16, 1), whole(4), f64(8)),
    *(Case("STFT", make(1, 16, 1), whole(4), make(8)) for make in (f16, bf16)),
    Case("MelWeightMatrix", whole(8), whole(16), whole(8192), floats(0).reshape(()), floats(4096).reshape(())),
    Case("MelWeightMatrix", whole(4, np.int32), whole(64, np.int32), whole(8000, np.int32), floats(100).reshape(()),
         floats(3000).reshape(()), output_datatype=11),
    *(Case(op, whole(10)) for op in WINDOWS),
    *(Case(op, whole(9, np.int32), periodic=0) for op in WINDOWS),
    *(Case(op, whole(10), output_datatype=code) for op in WINDOWS[:1] for code in (10, 11)),
    *(
        Case(op, whole(10), output_datatype=code).held_to("reference", why="onnxruntime has their constants in float32")
        for op in WINDOWS[1:]
        for code in (10, 11)
    ),
    *(Case(op, whole(0)).giving(np.zeros(0, np.float32)) for op in WINDOWS),
]  # fmt: skip
