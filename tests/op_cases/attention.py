from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_cases.case import Case, bf16, bools, f16, f32, f64, ints

LATER = "onnxruntime's newest opset is before this attribute's"


def heads(batch: int = 2, q: int = 4, kv: int = 4, length: int = 3, keys: int = 5, make: Any = f32) -> list[Any]:
    """Q, K and V with four axes; values have another size than keys."""
    return [make(batch, q, length, 8), make(batch, kv, keys, 8), make(batch, kv, keys, 6)]


PACKED = [f32(2, 3, 32), f32(2, 5, 32), f32(2, 5, 24)]
NOTHING_SEEN = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])

CASES = [
    Case("Attention", *heads()),
    Case("Attention", *heads(q=6, kv=2)),
    Case("Attention", *heads(q=3, kv=1), scale=0.3),
    Case("Attention", *PACKED, q_num_heads=4, kv_num_heads=4),
    Case("Attention", f32(2, 3, 32), f32(2, 5, 16), f32(2, 5, 12), q_num_heads=4, kv_num_heads=2),
    Case("Attention", *heads(), f32(3, 5)),
    Case("Attention", *heads(), f32(2, 1, 3, 5)),
    Case("Attention", *heads(), bools(3, 5)),
    Case("Attention", *heads(), bools(2, 4, 3, 5)),
    Case("Attention", *heads(), NOTHING_SEEN).held_to("reference", why="onnxruntime 1.31 gives NaN"),
    Case("Attention", *heads(), is_causal=1).held_to("reference", why="onnxruntime aligns another corner"),
    Case("Attention", *heads(length=5), f32(5, 5), is_causal=1),
    Case("Attention", *heads(), softcap=2.0),
    Case("Attention", *heads(length=5), left_window_size=1).held_to("reference", why=LATER),
    Case("Attention", *heads(length=5), right_window_size=1).held_to("reference", why=LATER),
    Case("Attention", *heads(length=5), left_window_size=2, right_window_size=0).held_to("reference", why=LATER),
    Case("Attention", *heads(), None, f32(2, 4, 2, 8), f32(2, 4, 2, 6)).outputs(3),
    Case("Attention", *heads(), f32(3, 7), f32(2, 4, 2, 8), f32(2, 4, 2, 6), is_causal=1).outputs(3)
    .held_to("reference", why="onnxruntime aligns another corner"),
    Case("Attention", *heads(), None, None, None, ints(2, 5)).held_to("reference", why="onnxruntime takes no lengths"),
    Case("Attention", *heads(length=2), None, None, None, ints(1, 4), is_causal=1)
    .held_to("reference", why="onnxruntime takes no lengths"),
    Case("Attention", *heads(), f32(3, 4)).held_to("reference", why="onnxruntime takes no short mask"),
    *(
        Case("Attention", *heads(length=5), f32(5, 5), softcap=1.5 * bool(mode), qk_matmul_output_mode=mode).outputs(4)
        .held_to("reference", why="onnxruntime gives other stages")
        for mode in range(4)  # of mode 0 with a softcap, onnx.reference gives what mode 1 should
    ),
    Case("Attention", *heads(), softmax_precision=1),
    *(Case("Attention", *heads(make=make)) for make in (f16, bf16)),
    Case("Attention", *heads(make=f64)).held_to("reference", why="onnxruntime has its scale in float32"),
    Case("Attention", *heads(batch=0)).giving(np.zeros((0, 4, 3, 6), np.float32)),
    Case("RotaryEmbedding", f32(2, 4, 3, 8), f32(10, 4), f32(10, 4), np.array([[0, 3, 9], [1, 2, 3]])),
    Case("RotaryEmbedding", f32(2, 4, 3, 8), f32(2, 3, 4), f32(2, 3, 4)),
    Case("RotaryEmbedding", f32(2, 4, 3, 8), f32(2, 3, 4), f32(2, 3, 4), interleaved=1),
    Case("RotaryEmbedding", f32(2, 3, 32), f32(2, 3, 4), f32(2, 3, 4), num_heads=4),
    Case("RotaryEmbedding", f32(2, 4, 3, 8), f32(10, 2), f32(10, 2), np.array([[0, 3, 9], [1, 2, 3]]),
         rotary_embedding_dim=4),
    *(Case("RotaryEmbedding", make(2, 4, 3, 8), make(2, 3, 4), make(2, 3, 4)) for make in (f16, bf16)),
]  # fmt: skip
