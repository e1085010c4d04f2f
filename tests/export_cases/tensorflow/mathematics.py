"""Mathematics, linear algebra, reductions, shapes and indices."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.export_cases.tensorflow.case import add, normal, share, two, whole

X, Y = two((4, 3), (6, 3))
M, N = two((2, 4, 4), (3, 4, 4))
P, Q = share(4, 3) + 0.1, share(5, 3) + 0.1

for _name, _function in {
    "softplus": tf.math.softplus, "gelu": lambda x: tf.nn.gelu(x, approximate=False), "erfc": tf.math.erfc,
    "swish": tf.nn.swish, "selu": tf.nn.selu, "cumsum": lambda x: tf.cumsum(x, 0, exclusive=True, reverse=True),
    "cumprod": lambda x: tf.math.cumprod(x, 1), "logsumexp": lambda x: tf.reduce_logsumexp(x, 0),
    "moments": lambda x: tf.nn.moments(x, [0]), "std": lambda x: tf.math.reduce_std(x, 1),
    "norm": lambda x: tf.norm(x, axis=-1), "normalize": lambda x: tf.math.l2_normalize(x, -1),
    "expm1": tf.math.expm1, "atan2": lambda x: tf.atan2(x, x + 1.0), "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0),
    "squared_difference": lambda x: tf.math.squared_difference(x, x[0]), "sign": tf.sign,
    "where": lambda x: tf.where(x > 0, x, -x * 2.0), "argmax": lambda x: tf.argmax(x, 1),
    "top_k": lambda x: tf.math.top_k(x, 2), "sort": lambda x: tf.sort(x, -1, "DESCENDING"),
    "argsort": lambda x: tf.argsort(x, 0), "one_hot": lambda x: tf.one_hot(tf.argmax(x, 1), 3),
    "reshape_by_shape": lambda x: tf.reshape(x, [tf.shape(x)[0] * 3]), "transpose": tf.transpose,
    "tile": lambda x: tf.tile(x, [2, 1]), "pad": lambda x: tf.pad(x, [[1, 2], [0, 1]], constant_values=3.0),
    "reflect": lambda x: tf.pad(x, [[1, 1], [0, 0]], "REFLECT"), "roll": lambda x: tf.roll(x, 1, 0),
    "reverse": lambda x: tf.reverse(x, [0]), "stack": lambda x: tf.stack([x, x * 2.0], 1),
    "split": lambda x: tf.split(x, 3, 1), "unstack": lambda x: tf.unstack(x, axis=1),
    "strided": lambda x: x[::2, ..., tf.newaxis, 1:], "negative_steps": lambda x: x[::-1, -2:],
    "boolean_mask": lambda x: tf.boolean_mask(x, x[:, 0] > 0), "nonzero": lambda x: tf.where(x > 0),
    "einsum": lambda x: tf.einsum("ij,kj->ik", x, x), "tensordot": lambda x: tf.tensordot(x, x, [[1], [1]]),
    "meshgrid": lambda x: tf.meshgrid(x[:, 0], x[0]), "range": lambda x: tf.cast(tf.range(tf.shape(x)[0]), tf.float32),
    "linspace": lambda x: tf.linspace(x[0], x[1], 5), "zeros_like": lambda x: tf.zeros_like(x) + tf.ones_like(x),
    "fill": lambda x: tf.fill(tf.shape(x), 2.5), "eye": lambda x: tf.eye(tf.shape(x)[0]),
    "broadcast_to": lambda x: tf.broadcast_to(x[:1], tf.shape(x)), "histogram": lambda x: tf.histogram_fixed_width(
        x, [-2.0, 2.0], 5),
    "bincount": lambda x: tf.math.bincount(tf.cast(tf.abs(x[:, 0]) * 3.0, tf.int32), minlength=9),
    "segment_mean": lambda x: tf.math.unsorted_segment_mean(x, tf.range(tf.shape(x)[0]) % 2, 2),
    "scatter_update": lambda x: tf.tensor_scatter_nd_update(x, [[0], [2]], x[:2] * 5.0),
    "scatter_nd": lambda x: tf.scatter_nd([[1], [3]], x[:2], tf.shape(x)), "quantile_like": lambda x: tf.sort(x, 0)[1],
    "in_top_k": lambda x: tf.math.in_top_k(tf.argmax(x, 1), x, 1), "confusion": lambda x: tf.math.confusion_matrix(
        tf.argmax(x, 1), tf.argmin(x, 1), 3),
    "bucketize": lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]),
    "searchsorted": lambda x: tf.searchsorted(tf.sort(x[:, 0]), x[:, 1]), "nan": lambda x: tf.math.is_nan(tf.sqrt(x)),
    "log_softmax": tf.nn.log_softmax, "dynamic_rank": lambda x: tf.reduce_sum(x, tf.range(tf.rank(x))),
    "float64": lambda x: tf.cast(x, tf.float64) * 2, "int_division": lambda x: tf.cast(x * 10, tf.int32) // 3,
    "modulo": lambda x: tf.cast(x * 10, tf.int32) % 3, "uint8": lambda x: tf.saturate_cast(x * 300.0, tf.uint8),
    "cross_entropy": lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x), x),
    "sigmoid_entropy": lambda x: tf.nn.sigmoid_cross_entropy_with_logits(tf.sigmoid(x), x),
}.items():  # fmt: skip
    add(_name, _function, X, Y)

for _name, _function in {
    "digamma": tf.math.digamma, "lgamma": tf.math.lgamma, "log1p": tf.math.log1p, "pow": lambda x: x**1.7,
    "xlogy": lambda x: tf.math.xlogy(x, x), "ndtri": lambda x: tf.math.ndtri(tf.clip_by_value(x, 0.01, 0.99)),
    "rsqrt": tf.math.rsqrt, "entropy": lambda x: -tf.reduce_sum(x * tf.math.log(x), 1),
    "betainc": lambda x: tf.math.betainc(x + 1.0, x + 2.0, tf.clip_by_value(x, 0.0, 1.0)),
}.items():  # fmt: skip
    add(_name, _function, P, Q)

for _name, _function in {
    "matmul": lambda x: x @ tf.transpose(x, [0, 2, 1]), "band_part": lambda x: tf.linalg.band_part(x, 1, 0),
    "diagonal": tf.linalg.diag_part, "trace": tf.linalg.trace, "set_diag": lambda x: tf.linalg.set_diag(x, x[:, 0]),
    "cholesky": lambda x: tf.linalg.cholesky(x @ tf.transpose(x, [0, 2, 1]) + tf.eye(4) * 4.0),
    "solve": lambda x: tf.linalg.solve(x + tf.eye(4) * 6.0, x), "inverse": lambda x: tf.linalg.inv(x + tf.eye(4) * 6.0),
    "determinant": lambda x: tf.linalg.det(x + tf.eye(4) * 4.0),
    "einsum_batched": lambda x: tf.einsum("bij,bjk->bik", x, x),
    "triangular": lambda x: tf.linalg.triangular_solve(tf.linalg.band_part(x, -1, 0) + tf.eye(4) * 5.0, x),
    "qr": lambda x: tf.abs(tf.linalg.qr(x)[1]), "gather_nd": lambda x: tf.gather_nd(x, [[0, 1], [1, 2]]),
    "batch_gather": lambda x: tf.gather(x, tf.argmax(x, 2), batch_dims=2), "space": lambda x: tf.nn.space_to_depth(
        x[..., tf.newaxis], 2), "sequence": lambda x: tf.reverse_sequence(x, tf.fill([tf.shape(x)[0]], 2), 1, 0),
    "sequence_mask": lambda x: tf.sequence_mask(tf.cast(tf.abs(x[:, 0, 0]) * 3.0, tf.int32), 5),
    "fft": lambda x: tf.abs(tf.signal.rfft(x)), "fft_there_and_back": lambda x: tf.signal.irfft(tf.signal.rfft(x)),
    "complex": lambda x: tf.math.real(tf.complex(x, x + 1.0) * tf.complex(x, -x)),
}.items():  # fmt: skip
    add(_name, _function, M, N)

add("embedding", lambda ids: tf.nn.embedding_lookup(tf.constant(X), ids), whole(0, 4, 5), whole(0, 4, 8))
add("bitwise", tf.bitwise.bitwise_xor, (whole(0, 99, 4), whole(0, 99, 4)))
add("shift", lambda a: tf.bitwise.right_shift(a, 2), whole(0, 99, 4), whole(0, 99, 7))
add("two_inputs", lambda x, y: {"sum": x + y, "parts": [x * y, (x - y,)]}, (X, X + 1), (Y, Y - 1))
add("nested_inputs", lambda batch: batch["a"] + batch["b"][0], ({"a": X, "b": [X]},), ({"a": Y, "b": [Y]},))
add("int64", lambda x: tf.cumsum(x * 3), whole(0, 9, 5, dtype=np.int64), whole(0, 9, 8, dtype=np.int64))
KERNEL = tf.constant(normal(3, 3, 5))
add("conv1d", lambda x: tf.nn.conv1d(x, KERNEL, 1, "SAME"), normal(2, 8, 3), normal(3, 11, 3))
add("unique", tf.unique, whole(0, 4, 9), whole(0, 4, 6))
add("segment_sum", lambda x: tf.math.segment_sum(x, [0, 0, 1, 3]), X)
for _name in ("gcd", "lcm"):
    _function = getattr(tf.experimental.numpy, _name)
    add(f"{_name}_of_a_number", lambda x, f=_function: f(x, 6), whole(1, 30, 4, 3), whole(1, 30, 6, 3))
add("dct_of_pieces", lambda x: tf.signal.dct(tf.reshape(x, [tf.shape(x)[0], -1, 20])), normal(2, 60), normal(3, 100))
EDGES = np.float32([0.0, -0.0, 1e-45, -1e-38, 1.0, -2.0, 3.4e38, np.inf, -np.inf, np.nan])
add("bits_as_integers", lambda x: tf.bitcast(x, tf.int32), EDGES, normal(7))
add("bits_as_halves", lambda x: tf.bitcast(x, tf.uint16), EDGES, normal(7))
add("integers_as_numbers", lambda x: tf.bitcast(x, tf.float32), EDGES.view(np.int32), whole(-(2**31), 2**31 - 1, 9))
add("neighbours", tf.math.nextafter, (EDGES, EDGES[::-1].copy()), (normal(5), normal(5)))
add("transposed_as_told", tf.transpose, (normal(2, 3, 4), np.int32([2, 0, 1])), (normal(5, 1, 2), np.int32([1, 0, -1])))
add("pseudo_inverse", tf.linalg.pinv, normal(2, 4, 3), normal(5, 4, 3))

ONE, TWO = np.array([[1, 2, 2, 5], [3, 4, 4, 3]], np.int32), np.array([[2, 9], [3, 1]], np.int32)
FEW, MORE = np.array([[1, 2, 3]], np.int32), np.array([[2, 9, 1]], np.int32)
for _function in (tf.sets.intersection, tf.sets.union, tf.sets.difference):
    add(
        f"sets_{_function.__name__}", lambda x, y, of=_function: tf.sparse.to_dense(of(x, y)), (ONE, TWO), (FEW, MORE)
    )  # fmt: skip
