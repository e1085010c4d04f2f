"""Functions of jax.numpy, jax.nn, jax.scipy and jax.image, as users call them."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.export_cases.jax.making import f32, flag, functions, i32

X, POSITIVE, IMAGE = f32("b", 4), f32("b", 4, low=0.1, high=3), f32("b", 8, 6, 3)

functions(
    "nn",
    {
        name: (getattr(jax.nn, name), X)
        for name in [
            "relu",
            "relu6",
            "sigmoid",
            "softplus",
            "soft_sign",
            "silu",
            "log_sigmoid",
            "leaky_relu",
            "hard_sigmoid",
            "hard_silu",
            "hard_tanh",
            "elu",
            "celu",
            "selu",
            "gelu",
            "glu",
            "squareplus",
            "mish",
            "softmax",
            "log_softmax",
            "standardize",
            "logsumexp",
            "sparse_plus",
        ]
        if hasattr(jax.nn, name)
    },
)
functions(
    "nn",
    {
        "gelu_exact": (lambda x: jax.nn.gelu(x, approximate=False), X),
        "one_hot": (lambda i: jax.nn.one_hot(i, 5), i32("b", "t")),
        "softmax_masked": (lambda x, m: jax.nn.softmax(x, axis=-1, where=m.at[:, 0].set(True)), X, flag("b", 4)),
        "attention": (
            lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
            *[f32("b", "t", 2, 4)] * 3,
        ),
        "attention_grouped": (
            jax.nn.dot_product_attention,
            f32("b", "t", 4, 4),
            f32("b", "t", 2, 4),
            f32("b", "t", 2, 4),
        ),
        "attention_masked": (
            lambda q, k, v, m: jax.nn.dot_product_attention(q, k, v, mask=m.at[..., 0].set(True)),
            *[f32("b", "t", 2, 4)] * 3,
            flag("b", 1, "t", "t"),
        ),
    },
)
_UNARY = (
    "abs sinh tanh exp expm1 log1p sqrt square sign floor ceil rint trunc cbrt reciprocal negative deg2rad nan_to_num sinc i0 angle"
    " isnan isfinite isinf signbit median mean var std ptp max min sum prod argsort sort cumsum cumprod diff ravel flip fliplr"
    " transpose atleast_3d nanmean nansum nanmax nanstd count_nonzero all any logical_not fix spacing exp2 log2 log10 unwrap"
)
functions(
    "numpy",
    {name: (getattr(jnp, name), POSITIVE) for name in _UNARY.split() if hasattr(jnp, name)},
)
_BINARY = (
    "add subtract multiply divide true_divide floor_divide mod remainder fmod power maximum minimum fmax fmin hypot logaddexp"
    " arctan2 copysign heaviside ldexp_ equal less greater logical_and logical_xor nextafter float_power divmod isclose kron inner"
)
functions(
    "numpy",
    {
        name: (getattr(jnp, name), POSITIVE, POSITIVE)
        for name in _BINARY.split()
        if hasattr(jnp, name) and name not in ("kron",)
    },
)
functions(
    "numpy",
    {
        "where": (lambda x: jnp.where(x > 0, x, -1), X),
        "clip": (lambda x: jnp.clip(x, -1, 1), X),
        "concatenate": (lambda x, y: jnp.concatenate([x, y], 0), X, f32("t", 4)),
        "roll": (lambda x: jnp.roll(x, 2, 1), X),
        "roll_batch": (lambda x: jnp.roll(x, 1, 0), X),
        "repeat": (lambda x: jnp.repeat(x, 3, 1), X),
        "linspace": (lambda x: x + jnp.linspace(0, 1, 4), X),
        "arange_of_length": (lambda x: x + jnp.arange(x.shape[1]), f32("b", "t")),
        "meshgrid": (lambda x, y: jnp.meshgrid(x, y), f32("b"), f32("t")),
        "tril": (jnp.tril, f32("b", "t", "t")),
        "triu_mask": (
            lambda x: jnp.where(jnp.triu(jnp.ones((x.shape[1], x.shape[1]), bool), 1), -1e9, x),
            f32("b", "t", "t"),
        ),
        "eye": (lambda x: x + jnp.eye(4), f32("b", 4, 4)),
        "outer": (jnp.outer, f32("b"), f32("t")),
        "tensordot": (lambda x, y: jnp.tensordot(x, y, 2), f32("b", 3, 4), f32(3, 4, 5)),
        "einsum_trace": (lambda x: jnp.einsum("bii->b", x), f32("b", 3, 3)),
        "diagonal": (lambda x: jnp.diagonal(x, axis1=1, axis2=2), f32("b", 3, 3)),
        "cross": (jnp.cross, f32("b", 3), f32("b", 3)),
        "quantile": (lambda x: jnp.quantile(x, 0.3, axis=1), X),
        "percentile_rows": (lambda x: jnp.percentile(x, 60, axis=0), X),
        "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), f32(7), f32("b", "t")),
        "digitize": (lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), X),
        "interp": (lambda x: jnp.interp(x, jnp.array([-1.0, 0.0, 2.0]), jnp.array([0.0, 3.0, 1.0])), X),
        "polyval": (lambda x: jnp.polyval(jnp.array([1.0, -2.0, 3.0]), x), X),
        "convolve": (lambda x, y: jnp.convolve(x, y), f32(8), f32(3)),
        "bincount": (lambda i: jnp.bincount(i, length=6), i32("t")),
        "histogram": (lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], f32("t")),
        "cov": (jnp.cov, f32(3, "t")),
        "corrcoef": (jnp.corrcoef, f32(3, "t")),
        "select": (lambda x: jnp.select([x < 0, x < 1], [-x, x * 2], 5.0), X),
        "piecewise": (lambda x: jnp.piecewise(x, [x < 0, x > 1], [jnp.sin, jnp.cos, 0.5]), X),
        "take": (lambda x, i: jnp.take(x, i, axis=1), X, i32("t", high=4)),
        "boolean_sum": (lambda x: (x > 0).sum(1), X),
        "mean_over_length": (lambda x: x.mean(1, keepdims=True), f32("b", "t", 3)),
        "pad_reflect": (lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode="reflect"), X),
        "pad_edge": (lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode="edge"), X),
        "pad_wrap": (lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode="wrap"), X),
        "split_heads": (lambda x: x.reshape(*x.shape[:2], 2, 3).swapaxes(1, 2), f32("b", "t", 6)),
        "merge_batch_and_length": (lambda x: x.reshape(-1, 3) @ jnp.ones((3, 2)), f32("b", "t", 3)),
        "last_step": (lambda x: x[:, -1], f32("b", "t", 3)),
        "reverse": (lambda x: x[:, ::-1], f32("b", "t")),
        "newaxis": (lambda x: x[:, None] - x[None], X),
        "apply_along_axis": (lambda x: jnp.apply_along_axis(jnp.sort, 1, x), X),
        "vectorize": (jnp.vectorize(lambda a, c: a @ c, signature="(n),(n)->()"), X, X),
        "int_division": (lambda x: x // 3 + x % 3, i32("b", 4, low=-9, high=9)),
        "int_power": (lambda x: x**3, i32("b", 4, low=-9, high=9)),
        "shifts": (lambda x: (x << 2) ^ (x >> 1), i32("b", 4, low=-99, high=99)),
        "packbits": (jnp.packbits, flag("b", 8)),
        "unpackbits": (lambda x: jnp.unpackbits(x, axis=1), i32("b", 2, high=255, dtype="uint8")),
        "unique_sized": (lambda x: jnp.unique(x, size=5), i32("t")),
        "nonzero_sized": (lambda x: jnp.nonzero(x, size=4, fill_value=-1)[0], flag("t")),
        "argwhere_sized": (lambda x: jnp.argwhere(x > 0, size=6), f32("b", 4)),
        "lexsort": (lambda x, y: jnp.lexsort((x, y)), i32("t", high=3), i32("t", high=3)),
        "partition": (lambda x: jnp.partition(x, 2, axis=1), f32("b", "t")),
        "insert_column": (lambda x: jnp.insert(x, 1, 5.0, axis=1), X),
        "delete_column": (lambda x: jnp.delete(x, 1, axis=1), X),
        "float16": (lambda x: (x.astype(jnp.float16) * 2).sum(1), X),
        "bfloat16": (lambda x: (x.astype(jnp.bfloat16) * 2).astype(jnp.float32), X),
        "norm": (lambda x: jnp.linalg.norm(x, axis=1), X),
        "det": (jnp.linalg.det, f32("b", 4, 4)),
        "slogdet": (jnp.linalg.slogdet, f32("b", 4, 4)),
        "inv": (lambda x: jnp.linalg.inv(x + 4 * jnp.eye(3)), f32("b", 3, 3)),
        "pinv": (jnp.linalg.pinv, f32(4, 3)),
        "lstsq": (lambda x, y: jnp.linalg.lstsq(x, y)[0], f32(5, 3), f32(5, 2)),
        "matrix_power": (lambda x: jnp.linalg.matrix_power(x, 3), f32("b", 3, 3)),
        "matrix_rank": (jnp.linalg.matrix_rank, f32(4, 3)),
        "expm": (jax.scipy.linalg.expm, f32(3, 3)),
        "block_diag": (lambda x, y: jax.scipy.linalg.block_diag(x, y), f32(2, 2), f32(3, 3)),
        "cho_solve": (
            lambda x, y: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), True), y),
            f32(3, 3),
            f32(3),
        ),
        "fftshift": (jnp.fft.fftshift, f32("b", 6)),
        "fftfreq": (lambda x: x * jnp.fft.fftfreq(6), f32("b", 6)),
    },
)
functions(
    "scipy",
    {
        name: (getattr(jax.scipy.special, name), POSITIVE)
        for name in [
            "erf",
            "erfc",
            "expit",
            "gammaln",
            "digamma",
            "i0",
            "i0e",
            "i1",
            "i1e",
            "log_ndtr",
            "ndtr",
            "entr",
            "exp1",
            "factorial",
        ]
    },
)
functions(
    "scipy",
    {
        "logit": (jax.scipy.special.logit, f32("b", 4, low=0.1, high=0.9)),
        "ndtri": (jax.scipy.special.ndtri, f32("b", 4, low=0.1, high=0.9)),
        "xlogy": (jax.scipy.special.xlogy, POSITIVE, POSITIVE),
        "betaln": (jax.scipy.special.betaln, POSITIVE, POSITIVE),
        "gammainc": (jax.scipy.special.gammainc, POSITIVE, POSITIVE),
        "logsumexp": (lambda x: jax.scipy.special.logsumexp(x, axis=1), X),
        "norm_logpdf": (jax.scipy.stats.norm.logpdf, X),
        "norm_ppf": (jax.scipy.stats.norm.ppf, f32("b", 4, low=0.1, high=0.9)),
        "gamma_logpdf": (lambda x: jax.scipy.stats.gamma.logpdf(x, 2.0), POSITIVE),
        "convolve2d": (lambda x, k: jax.scipy.signal.convolve2d(x, k, mode="same"), f32(6, 6), f32(3, 3)),
        "map_coordinates": (
            lambda x, c: jax.scipy.ndimage.map_coordinates(x, list(c), order=1),
            f32(6, 6),
            f32(2, 5, low=0, high=5),
        ),
        "welch": (lambda x: jax.scipy.signal.welch(x, nperseg=16)[1], f32("b", 64)),
        "stft": (lambda x: jnp.abs(jax.scipy.signal.stft(x, nperseg=16)[2]), f32("b", 64)),
    },
)
functions(
    "image",
    {
        f"resize_{method}": (lambda x, method=method: jax.image.resize(x, (x.shape[0], 12, 9, 3), method), IMAGE)
        for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5")
    },
)
functions(
    "image",
    {
        "downsample_antialias": (lambda x: jax.image.resize(x, (x.shape[0], 4, 3, 3), "linear"), IMAGE),
        "downsample_plain": (lambda x: jax.image.resize(x, (x.shape[0], 4, 3, 3), "linear", antialias=False), IMAGE),
        "scale_and_translate": (
            lambda x: jax.image.scale_and_translate(
                x, (8, 8, 3), (0, 1), jnp.array([1.2, 0.8]), jnp.array([0.5, -1.0]), "linear"
            ),
            f32(8, 6, 3),
        ),
        "normalise": (lambda x: (x.astype(jnp.float32) / 255 - 0.5) / 0.25, i32("b", 4, 4, 3, high=255, dtype="uint8")),
    },
)
functions(
    "segments",
    {
        "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, num_segments=5), f32("t", 3), i32("t")),
        "segment_max": (lambda x, i: jax.ops.segment_max(x, i, num_segments=5), f32("t", 3), i32("t")),
        "segment_mean": (
            lambda x, i: jax.ops.segment_sum(x, i, 5) / jnp.maximum(jax.ops.segment_sum(jnp.ones_like(x), i, 5), 1),
            f32("t", 3),
            i32("t"),
        ),
        "segment_softmax": (
            lambda x, i: (
                jnp.exp(x - jax.ops.segment_max(x, i, 5)[i])
                / jax.ops.segment_sum(jnp.exp(x - jax.ops.segment_max(x, i, 5)[i]), i, 5)[i]
            ),
            f32("t"),
            i32("t"),
        ),
    },
)
