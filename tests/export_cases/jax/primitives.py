"""Every primitive of lax that a program on one processor may consist of, by a function that binds it."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.export_cases.jax.making import f32, flag, functions, i32

X, POSITIVE, UNIT = f32("b", 4), f32("b", 4, low=0.1, high=3), f32("b", 4, low=-0.9, high=0.9)
INTS, UINTS, BYTES = (
    i32("b", 4, low=-9, high=9),
    i32("b", 4, low=0, high=2**31, dtype="uint32"),
    i32("b", 4, low=-128, high=127, dtype="int8"),
)
NONZERO = i32("b", 4, low=1, high=5)
SQUARE = f32("b", 3, 3)


def definite(x):
    return x @ jnp.swapaxes(x, -1, -2) + 2 * jnp.eye(x.shape[-1])


def _window(function, init, **how):
    how = {"window_dimensions": (1, 2, 2, 1), "window_strides": (1, 2, 2, 1), "padding": "VALID"} | how
    return lambda x: lax.reduce_window(x, np.asarray(init, x.dtype), function, **how)


def _conv(**how):
    how = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")} | how
    return lambda x, k: lax.conv_general_dilated(x, k, **how)


def _gather(dims, sizes, mode=None, fill=None):
    return lambda x, i: lax.gather(x, i, dims, sizes, mode=mode, fill_value=fill)


def _scatter(function, dims, mode=None):
    return lambda x, i, u: function(x, i, u, dims, mode=mode)


ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
PARTS = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
INTO = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
PARTLY = lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
)
IMAGE, KERNEL = f32("b", 8, 6, 4), f32(3, 3, 4, 6)

ELEMENTWISE = {
    name: (getattr(lax, name), argument)
    for argument, names in {
        X: "abs ceil cos cosh erf erfc exp exp2 expm1 floor is_finite logistic neg round sign sin sinh square tan tanh atan asinh cbrt bessel_i0e bessel_i1e",
        POSITIVE: "log log1p rsqrt sqrt lgamma digamma reciprocal",
        UNIT: "acos asin atanh erf_inv",
    }.items()
    for name in names.split()
}
functions("primitives", ELEMENTWISE)
functions(
    "primitives",
    {
        "acosh": (lambda x: lax.acosh(x + 1), POSITIVE),
        "integer_pow": (lambda x: lax.integer_pow(x, 5), X),
        "integer_pow_negative": (lambda x: lax.integer_pow(x, -3), POSITIVE),
        "round_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), X),
        "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), X),
        "stop_gradient": (lambda x: lax.stop_gradient(x) * 2, X),
        "not": (lax.bitwise_not, INTS),
        "population_count": (lax.population_count, UINTS),
        "clz": (lax.clz, UINTS),
        "population_count_int8": (lax.population_count, BYTES),
        "bitcast_to_int": (lambda x: lax.bitcast_convert_type(x, np.int32), X),
        "bitcast_to_float": (lambda x: lax.bitcast_convert_type(x, np.float32), i32("b", 4, low=2**20, high=2**30)),
        "bitcast_to_bytes": (lambda x: lax.bitcast_convert_type(x, np.uint8), UINTS),
        "bitcast_from_bytes": (lambda x: lax.bitcast_convert_type(x, np.uint32), i32("b", 4, high=255, dtype="uint8")),
        "convert_to_int": (lambda x: lax.convert_element_type(x * 1e3, np.int8), X),
        "convert_to_bfloat16": (lambda x: lax.convert_element_type(x, jnp.bfloat16).astype(np.float32), X),
        "convert_to_bool": (lambda x: lax.convert_element_type(x, np.bool_), INTS),
        "nextafter": (lax.nextafter, X, X),
        "add": (lax.add, X, X),
        "add_int8": (lax.add, BYTES, BYTES),
        "sub_uint32": (lax.sub, UINTS, UINTS),
        "mul_int32": (lambda x, y: x * y * 123456789, INTS, INTS),
        "div": (lax.div, X, POSITIVE),
        "div_ints": (lax.div, INTS, i32("b", 4, low=-3, high=3)),
        "floor_divide": (jnp.floor_divide, INTS, i32("b", 4, low=-3, high=3)),
        "rem": (lax.rem, X, POSITIVE),
        "rem_ints": (lax.rem, INTS, i32("b", 4, low=-3, high=3)),
        "pow": (lax.pow, POSITIVE, X),
        "pow_int": (lax.pow, X, NONZERO),
        "max": (lax.max, X, X),
        "min": (lax.min, X, X),
        "max_bool": (lax.max, flag("b", 4), flag("b", 4)),
        "max_int16": (lax.max, i32("b", 4, low=-9, high=9, dtype="int16"), i32("b", 4, low=-9, high=9, dtype="int16")),
        "atan2": (lax.atan2, X, X),
        "complex_parts": (lambda x, y: lax.real(lax.complex(x, y) * 2) + lax.imag(lax.conj(lax.complex(x, y))), X, X),
        "and": (lax.bitwise_and, INTS, INTS),
        "or": (lax.bitwise_or, flag("b", 4), flag("b", 4)),
        "xor": (lax.bitwise_xor, UINTS, UINTS),
        "shift_left": (lax.shift_left, INTS, NONZERO),
        "shift_right_logical": (lax.shift_right_logical, INTS, NONZERO),
        "shift_right_arithmetic": (lax.shift_right_arithmetic, INTS, i32("b", 4, low=0, high=40)),
        "mulhi": (lax.mulhi, UINTS, UINTS),
        "eq": (lax.eq, INTS, INTS),
        "ne": (lax.ne, INTS, INTS),
        "lt": (lax.lt, X, X),
        "le": (lax.le, flag("b", 4), flag("b", 4)),
        "gt": (lax.gt, X, X),
        "ge": (lax.ge, UINTS, UINTS),
        "select": (lax.select, flag("b", 4), X, X),
        "select_n": (lax.select_n, i32("b", 4, high=3), X, X, X),
        "clamp": (lambda x: lax.clamp(-1.0, x, 1.0), X),
        "igamma": (lax.igamma, POSITIVE, POSITIVE),
        "igammac": (lax.igammac, POSITIVE, POSITIVE),
        "igamma_grad_a": (lax.igamma_grad_a, POSITIVE, POSITIVE),
        "betainc": (lax.betainc, POSITIVE, POSITIVE, f32("b", 4, low=0.1, high=0.9)),
        "polygamma": (lax.polygamma, f32("b", 4, low=1, high=1.01), POSITIVE),
        "polygamma_2": (lambda x: jax.scipy.special.polygamma(2, x), POSITIVE),
        "zeta": (lambda x, q: lax.zeta(x + 1.5, q), POSITIVE, POSITIVE),
        "random_gamma_grad": (lax.random_gamma_grad, POSITIVE, POSITIVE),
    },
)
functions(
    "primitives",
    {
        "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, x.shape[0], 3, 4), (1, 3)), X),
        "reshape": (lambda x: lax.reshape(x, (x.shape[0] * 2, 2)), X),
        "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), f32("b", "t", 3)),
        "squeeze": (lambda x: lax.squeeze(x, (1,)), f32("b", 1, 3)),
        "expand_dims": (lambda x: lax.expand_dims(x, (0, 2)), X),
        "concatenate": (lambda x, y: lax.concatenate([x, y, x], 1), X, f32("b", 2)),
        "split": (lambda x: lax.split(x, (1, 3), 1), X),
        "rev": (lambda x: lax.rev(x, (0, 1)), X),
        "slice": (lambda x: lax.slice_in_dim(x, 1, 4, 2, 1), X),
        "slice_batch": (lambda x: x[1:], f32("t", 4)),
        "pad": (lambda x: lax.pad(x, 0.5, ((1, 2, 0), (-1, 1, 2))), X),
        "pad_interior_batch": (lambda x: lax.pad(x, 0.5, ((0, 1, 2), (0, 0, 0))), X),
        "iota": (lambda x: x + lax.broadcasted_iota(np.float32, x.shape, 0), X),
        "tile": (lambda x: jnp.tile(x, (2, 3)), X),
        "stack": (lambda x, y: jnp.stack([x, y], 1), X, X),
        "unstack": (lambda x: jnp.unstack(x, axis=1), X),
        "dim_as_value": (lambda x: x.sum(0) / x.shape[0], X),
        "empty": (lambda x: lax.empty(x.shape, x.dtype) * 0 + x, X),
        "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (1, 2)), f32("t", 4), i32(2, low=-3, high=8)),
        "dynamic_slice_in_dim": (lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), X, i32()),
        "dynamic_update_slice": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), f32("t", 4), f32(2, 4), i32()),
        "dynamic_update_slice_part": (
            lambda x, u, i: lax.dynamic_update_slice(x, u, (i[0], i[1])),
            f32("t", 4),
            f32(2, 2),
            i32(2),
        ),
        "gather_rows": (_gather(ROWS, (1, 4)), f32("t", 4), i32("b", 1)),
        "gather_rows_clip": (_gather(ROWS, (1, 4), "clip"), f32("t", 4), i32("b", 1, low=-4, high=12)),
        "gather_rows_fill": (_gather(ROWS, (1, 4), "fill", -7.0), f32("t", 4), i32("b", 1, low=-4, high=12)),
        "gather_parts": (_gather(PARTS, (2, 3)), f32("t", 4), i32("b", 2, low=0, high=2)),
        "gather_parts_fill": (_gather(PARTS, (2, 3), "fill"), f32("t", 4), i32("b", 2, low=-1, high=3)),
        "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i, 1), X, i32("b", 3, high=4)),
        "take_ints_fill": (lambda x, i: jnp.take(x, i, axis=0), i32("t", 2), i32("b", high=12)),
        "index_pairs": (lambda x, i, j: x[i, j], f32("t", 4), i32("b"), i32("b", high=4)),
        "index_mixed": (lambda x, i: x[:, i, ::2], f32("b", "t", 6), i32(3)),
        "scatter": (_scatter(lax.scatter, INTO), f32("t", 4), i32(2, 1, high=2), f32(2, 4)),
        "scatter_apply": (lambda x, i: x.at[i].apply(lambda y: jnp.sin(y) + 1), f32("t", 4), i32("b", high=2)),
        "scatter_apply_clip": (lambda x, i: x.at[i, 1:3].apply(jnp.cos, mode="clip"), f32("t", 4), i32("b", high=9)),
        "scatter_add": (_scatter(lax.scatter_add, INTO), f32("t", 4), i32("b", 1), f32("b", 4)),
        "scatter_add_drop": (
            _scatter(lax.scatter_add, INTO, "drop"),
            f32("t", 4),
            i32("b", 1, low=-5, high=12),
            f32("b", 4),
        ),
        "scatter_add_clip": (
            _scatter(lax.scatter_add, INTO, "clip"),
            f32("t", 4),
            i32("b", 1, low=-5, high=12),
            f32("b", 4),
        ),
        "scatter_sub": (_scatter(lax.scatter_sub, INTO), f32("t", 4), i32("b", 1), f32("b", 4)),
        "scatter_mul": (_scatter(lax.scatter_mul, INTO), f32("t", 4), i32("b", 1), f32("b", 4)),
        "scatter_max": (_scatter(lax.scatter_max, INTO), f32("t", 4), i32("b", 1), f32("b", 4)),
        "scatter_min": (_scatter(lax.scatter_min, INTO), f32("t", 4), i32("b", 1), f32("b", 4)),
        "scatter_part": (_scatter(lax.scatter_add, PARTLY), f32("t", 4), i32("b", 2, high=2), f32("b", 2, 3)),
        "at_set": (lambda x, i: x.at[:, i].set(0.5), f32("b", "t"), i32()),
        "at_add_rows": (lambda x, i, u: x.at[i].add(u), f32("t", 3), i32("b"), f32("b", 3)),
        "at_set_bool": (lambda x, i: x.at[i].set(True), flag("t"), i32(2)),
        "reduce_sum": (lambda x: jnp.sum(x, (0, 2)), f32("b", "t", 3)),
        "reduce_sum_uint8": (lambda x: lax.reduce_sum(x, (0,)), i32("b", 4, high=200, dtype="uint8")),
        "reduce_prod": (lambda x: jnp.prod(x, 1), X),
        "reduce_max": (lambda x: jnp.max(x, 1), X),
        "reduce_min_uint32": (lambda x: jnp.min(x, 1), UINTS),
        "reduce_and": (lambda x: jnp.all(x, 1), flag("b", 4)),
        "reduce_or": (lambda x: jnp.any(x, 0), flag("b", 4)),
        "reduce_or_ints": (lambda x: lax.reduce_or(x, (1,)), INTS),
        "reduce_xor": (lambda x: lax.reduce_xor(x, (0,)), INTS),
        "reduce_xor_bool": (lambda x: lax.reduce_xor(x, (1,)), flag("b", 4)),
        "reduce": (lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + a, (1,)), X),
        "argmax": (lambda x: jnp.argmax(x, 1), X),
        "argmin": (lambda x: lax.argmin(x, 0, np.int32), X),
        "cumsum": (lambda x: lax.cumsum(x, 1), f32("b", "t")),
        "cumsum_reverse": (lambda x: lax.cumsum(x, 1, reverse=True), f32("b", "t")),
        "cumprod": (lambda x: lax.cumprod(x, 1), f32("b", "t")),
        "cummax": (lambda x: lax.cummax(x, 0), f32("b", "t")),
        "cummin_reverse": (lambda x: lax.cummin(x, 1, reverse=True), f32("b", "t")),
        "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), f32("b", "t")),
        "sort": (lambda x: lax.sort(x, dimension=1), f32("b", "t")),
        "sort_bfloat16": (lambda x: lax.sort(x.astype(jnp.bfloat16), dimension=1).astype(np.float32), f32("b", "t")),
        "sort_pairs": (lambda x, y: lax.sort((x, y), dimension=1, num_keys=2), i32("b", "t", high=3), f32("b", "t")),
        "sort_stable": (lambda x, y: lax.sort((x, y), dimension=1, num_keys=1), i32("b", "t", high=3), f32("b", "t")),
        "argsort": (lambda x: jnp.argsort(x, axis=0), f32("t", 3)),
        "argsort_descending": (lambda x: jnp.argsort(x, descending=True), i32("b", "t", high=3)),
        "top_k": (lambda x: lax.top_k(x, 2), X),
        "top_k_ints": (lambda x: lax.top_k(x, 2), BYTES),
        "approx_max_k": (lambda x: lax.approx_max_k(x, 2, recall_target=1.0), f32("b", "t")),
    },
)
functions(
    "primitives",
    {
        "dot_vectors": (lambda x, y: jnp.dot(x, y), f32(4), f32(4)),
        "dot_matrix_vector": (lambda x, y: x @ y, X, f32(4)),
        "dot_batch": (
            lambda x, y: lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,)))),
            f32("b", "t", 3),
            f32("b", 4, 3),
        ),
        "dot_two_contractions": (
            lambda x, y: lax.dot_general(x, y, (((1, 2), (1, 0)), ((), ()))),
            f32("b", 3, 4),
            f32(4, 3, 5),
        ),
        "dot_batch_rows": (
            lambda x, y: lax.dot_general(x, y, (((3,), (1,)), ((0,), (0,)))),
            f32("b", "t", 2, 3),
            f32("b", 3, 2, 4),
        ),
        "dot_ints": (
            lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.int32),
            BYTES,
            i32(4, 3, low=-128, high=127, dtype="int8"),
        ),
        "dot_bfloat16": (
            lambda x, y: lax.dot(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), preferred_element_type=np.float32),
            X,
            f32(4, 3),
        ),
        "einsum": (lambda x, y: jnp.einsum("bthd,bshd->bhts", x, y), f32("b", "t", 2, 3), f32("b", 6, 2, 3)),
        "outer": (lambda x, y: jnp.einsum("bi,bj->bij", x, y), X, X),
        "ragged_dot": (lambda x, y: lax.ragged_dot(x, y, np.array([2, 1], np.int32)), f32(3, 4), f32(2, 4, 5)),
        "conv": (_conv(), IMAGE, KERNEL),
        "conv_strided": (_conv(window_strides=(2, 2), padding=((0, 1), (1, 0))), IMAGE, KERNEL),
        "conv_dilated": (_conv(rhs_dilation=(2, 2)), IMAGE, KERNEL),
        "conv_groups": (_conv(feature_group_count=2), IMAGE, f32(3, 3, 2, 6)),
        "conv_depthwise": (_conv(feature_group_count=4), IMAGE, f32(3, 3, 1, 4)),
        "conv_batch_groups": (lambda x, k: _conv(batch_group_count=2)(x, k), f32(4, 8, 6, 4), KERNEL),
        "conv_lhs_dilated": (_conv(lhs_dilation=(2, 3), padding=((2, 1), (1, 1))), IMAGE, KERNEL),
        "conv_lhs_dilated_strided": (
            _conv(lhs_dilation=(2, 2), window_strides=(3, 1), padding=((2, 1), (1, 1))),
            IMAGE,
            KERNEL,
        ),
        "conv_negative_padding": (_conv(padding=((-1, 2), (1, -1))), IMAGE, KERNEL),
        "conv_transpose": (lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), IMAGE, KERNEL),
        "conv_first": (lambda x, k: lax.conv(x, k, (1, 1), "VALID"), f32("b", 4, 8, 6), f32(5, 4, 3, 3)),
        "conv_1d": (
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
            f32("b", "t", 4),
            f32(3, 4, 5),
        ),
        "conv_3d": (
            lambda x, k: lax.conv_general_dilated(
                x, k, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
            ),
            f32("b", 4, 4, 4, 2),
            f32(2, 2, 2, 2, 3),
        ),
        "reduce_window_max": (_window(lax.max, -np.inf), IMAGE),
        "reduce_window_max_same": (_window(lax.max, -np.inf, padding="SAME", window_dimensions=(1, 3, 3, 1)), IMAGE),
        "reduce_window_min": (_window(lax.min, np.inf), IMAGE),
        "reduce_window_sum": (_window(lax.add, 0.0), IMAGE),
        "reduce_window_sum_dilated": (
            _window(lax.add, 0.0, window_dilation=(1, 2, 2, 1), base_dilation=(1, 2, 1, 1)),
            IMAGE,
        ),
        "reduce_window_max_ints": (_window(lax.max, np.iinfo(np.int32).min), i32("b", 8, 6, 4, low=-9, high=9)),
        "reduce_window_sum_along": (
            _window(lax.add, 0.0, window_dimensions=(1, 3), window_strides=(1, 1), padding=((0, 0), (2, 0))),
            f32("b", "t"),
        ),
        "reduce_window": (_window(lambda a, b: a * b + b, 0.5), IMAGE),
        "select_and_scatter_add": (jax.grad(lambda x: jnp.sum(_window(lax.max, -np.inf)(x) ** 2)), IMAGE),
        "select_and_gather_add": (lambda x, y: jax.jvp(_window(lax.max, -np.inf), (x,), (y,))[1], IMAGE, IMAGE),
        "cholesky": (lambda x: jnp.linalg.cholesky(definite(x)), SQUARE),
        "cholesky_update": (
            lambda x, y: lax.linalg.cholesky_update(jnp.linalg.cholesky(definite(x)).T, y),
            f32(3, 3),
            f32(3),
        ),
        "triangular_solve": (
            lambda x, y: lax.linalg.triangular_solve(definite(x), y, left_side=True, lower=True),
            SQUARE,
            f32("b", 3, 2),
        ),
        "triangular_solve_right": (
            lambda x, y: lax.linalg.triangular_solve(definite(x), y, lower=False, transpose_a=True, unit_diagonal=True),
            SQUARE,
            f32("b", 2, 3),
        ),
        "lu": (lambda x: lax.linalg.lu(x), SQUARE),
        "qr": (lambda x: jnp.linalg.qr(x), f32("b", 4, 3)),
        "qr_full": (lambda x: jnp.linalg.qr(x, mode="complete"), f32("b", 4, 3)),
        "geqrf": (lambda x: lax.linalg.geqrf(x), f32("b", 4, 3))
        if hasattr(lax.linalg, "geqrf")
        else (jnp.linalg.qr, f32("b", 3, 4)),
        "householder_product": (lambda x, t: lax.linalg.householder_product(x, t), f32("b", 4, 3), f32("b", 3)),
        "eigh_values": (lambda x: jnp.linalg.eigvalsh(x + jnp.swapaxes(x, 1, 2)), SQUARE),
        "eigh_rebuilt": (
            lambda x: (lambda w, v: (v * jnp.exp(w)[..., None, :]) @ jnp.swapaxes(v, -1, -2))(
                *jnp.linalg.eigh(x + jnp.swapaxes(x, 1, 2))
            ),
            SQUARE,
        ),
        "svd_values": (lambda x: jnp.linalg.svd(x, compute_uv=False), f32("b", 4, 3)),
        "svd_rebuilt": (
            lambda x: (lambda u, s, v: (u * (s + 1)[..., None, :]) @ v)(*jnp.linalg.svd(x, full_matrices=False)),
            f32("b", 3, 4),
        ),
        "tridiagonal_solve": (
            lambda a, d, c, y: lax.linalg.tridiagonal_solve(a.at[..., 0].set(0), d + 5, c.at[..., -1].set(0), y),
            f32("b", 4),
            f32("b", 4),
            f32("b", 4),
            f32("b", 4, 2),
        ),
        "symmetric_product": (
            lambda x, c: lax.linalg.symmetric_product(x, c, symmetrize_output=True),
            f32(4, 3),
            f32(4, 4),
        ),
        "custom_linear_solve": (
            lambda x, y: jax.scipy.sparse.linalg.cg(lambda v: definite(x) @ v, y)[0],
            f32(3, 3),
            f32(3),
        ),
        "solve": (jnp.linalg.solve, f32("b", 4, 4), f32("b", 4, 2)),
        "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), f32("b", 8)),
        "ifft2": (lambda x: jnp.fft.ifft2(x).real, f32("b", 4, 6)),
        "rfft": (lambda x: jnp.abs(jnp.fft.rfft(x)), f32("b", 7)),
        "irfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, n=8), f32("b", 8)),
        "rfft2_back": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x), s=x.shape[-2:]), f32("b", 4, 6)),
        "fft_length": (lambda x: jnp.abs(jnp.fft.rfft(x)), f32("b", "t")),
        "threefry_uniform": (lambda s: jax.random.uniform(jax.random.PRNGKey(s), (3, 4)), i32(high=99)),
        "threefry_split_normal": (
            lambda s: jax.random.normal(jax.random.split(jax.random.key(s), 3)[1], (5,)),
            i32(high=99),
        ),
        "threefry_bits": (lambda k: jax.random.bits(k, (4,)), i32(2, high=2**31, dtype="uint32")),
        "random_fold_in": (
            lambda k, n: jax.random.uniform(jax.random.fold_in(k, n), (4,)),
            i32(2, high=2**31, dtype="uint32"),
            i32(),
        ),
        "random_by_batch": (lambda k, x: x + jax.random.uniform(k, x.shape), i32(2, high=2**31, dtype="uint32"), X),
        "random_choice": (lambda k: jax.random.randint(k, (6,), 0, 10), i32(2, high=2**31, dtype="uint32")),
        "random_categorical": (
            lambda k, x: jax.random.categorical(k, x),
            i32(2, high=2**31, dtype="uint32"),
            f32(3, 4),
        ),
        "random_permutation": (lambda k, x: jax.random.permutation(k, x), i32(2, high=2**31, dtype="uint32"), f32(6)),
        "random_gamma": (lambda k: jax.random.gamma(k, np.float32(2.0), (3,)), i32(2, high=2**31, dtype="uint32")),
        "optimization_barrier": (lambda x: lax.optimization_barrier(x * 2), X),
        "approx_min_k": (lambda x: lax.approx_min_k(x, 2, recall_target=1.0), f32("b", 5)),
    },
)


def _branches(i, x):
    return lax.switch(i, [jnp.sin, lambda v: v * 2, lambda v: jnp.flip(v, 1)], x)


def _while(x):
    return lax.while_loop(lambda c: jnp.sum(c[0]) < 50, lambda c: (c[0] * 2 + 1, c[1] + 1), (jnp.abs(x), 0))


def _scan(x, reverse=False):
    def step(carry, each):
        total, count = carry
        total = total + each
        return (total, count + 1), (total * count, each - total)

    return lax.scan(step, (jnp.zeros_like(x[0]), 0), x, reverse=reverse)


def _linear_recurrence(x):
    def both(first, second):
        return first[0] * second[0], second[0] * first[1] + second[1]

    decay = jnp.exp(-jnp.abs(x) * (0.5 + 1j))
    return jax.vmap(lambda a, v: lax.associative_scan(both, (a, v + 0j))[1].real)(decay, x)


@jax.custom_vjp
def _straight(x):
    return jnp.round(x)


_straight.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))

functions(
    "primitives",
    {
        "cond": (lambda p, x: lax.cond(p, jnp.sin, lambda v: v * 2, x), flag(), X),
        "switch": (_branches, i32(low=-2, high=6), X),
        "while": (_while, X),
        "fori": (lambda x: lax.fori_loop(0, 5, lambda i, v: v * 1.1 + i, x), X),
        "fori_batch": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, v: v + x[i], jnp.zeros(x.shape[1:])), X),
        "fori_dynamic": (lambda x, n: lax.fori_loop(0, n, lambda i, v: v + i, x), X, i32(high=6)),
        "scan": (_scan, f32("t", "b", 3)),
        "scan_reverse": (functools.partial(_scan, reverse=True), f32("t", 3)),
        "scan_without_items": (lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, None, 4), X),
        "map": (lambda x: lax.map(lambda v: jnp.cumsum(v), x), f32("b", 4)),
        "associative_scan": (lambda x: lax.associative_scan(jnp.add, x, axis=1), X),
        "associative_scan_backward": (lambda x: lax.associative_scan(jnp.maximum, x, reverse=True), f32("t", "b")),
        "associative_scan_of_pairs": (_linear_recurrence, f32("b", "t", 3)),
        "vmapped_while": (
            jax.vmap(lambda v: lax.while_loop(lambda c: c < 10, lambda c: c * 2 + 1, v)),
            f32("b", low=0, high=3),
        ),
        "remat": (jax.checkpoint(lambda x: jnp.sin(x) * 2), X),
        "custom_vjp": (lambda x: _straight(x) + 1, X),
        "custom_jvp": (jax.nn.relu6, X),
        "grad": (jax.vmap(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))), X),
        "jit": (lambda x: jax.jit(lambda v: v + 1)(x) * 2, X),
        "complex_scan": (
            lambda x: jnp.abs(lax.scan(lambda c, v: (c * 0.5j + v, None), jnp.zeros(x.shape[1:], np.complex64), x)[0]),
            f32("t", 3),
        ),
    },
)
COMPLEX = {
    name: (
        lambda x, y, name=name: (lambda z: (z.real, z.imag))(
            jnp.asarray(getattr(jnp, name)(lax.complex(x, y)), np.complex64)
        ),
        X,
        X,
    )
    for name in [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "sinh",
        "cosh",
        "tanh",
        "tan",
        "square",
        "sign",
        "log1p",
        "expm1",
        "arctan",
        "arcsinh",
        "negative",
        "conjugate",
    ]
}
functions("complex_numbers", COMPLEX)
functions(
    "complex_numbers",
    {
        "mul": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, y) * lax.complex(y, x)), X, X),
        "div": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, y) / lax.complex(y, x + 3)), X, X),
        "abs": (lambda x, y: jnp.abs(lax.complex(x, y)), X, X),
        "pow": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, y) ** 3), X, X),
        "pow_complex": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, y) ** (1.5 + 0.5j)), X, X),
        "matmul": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, x) @ lax.complex(y, -y)), X, f32(4, 3)),
        "sum": (lambda x, y: jnp.abs(jnp.sum(lax.complex(x, y), 1)), X, X),
        "prod": (lambda x, y: jnp.abs(jnp.prod(lax.complex(x, y), 1)), X, X),
        "where": (lambda x, y: jnp.abs(jnp.where(x > 0, lax.complex(x, y), 1j)), X, X),
        "index": (lambda x, y: jnp.abs(lax.complex(x, y)[:, ::2].reshape(-1)), X, X),
        "scale_a_part": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, y).at[:, 1:].multiply(2j)), X, X),
        "equal": (lambda x, y: lax.complex(x, y) == lax.complex(x, x), X, X),
        "angle": (lambda x, y: jnp.angle(lax.complex(x, y)), X, X),
        "rotary": (
            lambda x: (lambda z: (z.real, z.imag))(lax.complex(x, x) * jnp.exp(1j * jnp.arange(x.shape[-1]))),
            X,
        ),
    },
)
