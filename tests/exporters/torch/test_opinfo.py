"""A sample of torch's own table of operators; ``python -m benchmarks.opinfo`` runs all of it."""

from __future__ import annotations

import functools

import pytest

from tests.sweeps.opinfo import DTYPES, name_of, operators, outcome

SAMPLE = [
    "special.chebyshev_polynomial_t", "special.hermite_polynomial_he", "special.legendre_polynomial_p",
    "special.shifted_chebyshev_polynomial_w", "amax", "amin", "prod", "topk", "index_reduce.mean", "index_reduce.prod",
    "put", "scatter", "scatter_add", "scatter_reduce.mean", "as_strided_scatter", "repeat_interleave", "masked_select",
    "frexp", "squeeze.multiple", "nn.functional.adaptive_max_pool2d", "nn.functional.interpolate.area", "bucketize",
    "nn.functional.batch_norm", "softmax.with_dtype", "log_softmax.with_dtype", "diagonal_scatter", "linalg.cond",
    "linalg.lu_solve", "linalg.pinv.hermitian", "ormqr", "linalg.tensorsolve", "fft.irfft2", "fft.hfft",
    "logspace.tensor_overload", "nn.functional.pad.replicate_negative", "linalg.norm", "masked.var",
    "masked.normalize", "nn.functional.pixel_unshuffle", "resize_as_", "unique_consecutive", "histogram", "histogramdd",
    "nn.functional.fractional_max_pool2d", "grid_sampler_3d", "_segment_reduce.lengths", "_segment_reduce.offsets",
    "nonzero", "native_batch_norm", "nn.functional.linear_cross_entropy", "nn.functional.linear_cross_entropy.chunked",
]  # fmt: skip
OTHERS = [
    "nanmedian/int64", "nn.functional.avg_pool2d/int64", "index_reduce.mean/int64", "scatter_reduce.mean/int64",
    "unique_consecutive/int64", "masked.std/int64", "topk/int64", "copysign/bool", "cummax/bool", "isclose/bool",
    "mode/bool", "sort/bool", "sgn/int64", "angle/int64", "round/int64", "square/bool",
    "argsort/bool", "native_layer_norm/float16", "nextafter/float16", "matrix_exp/float16",
    "logit/bool", "bfloat16/bool", "fmax/int64", "fmax/bool", "nn.functional.conv2d/int64", "__radd__/bool",
    "max.reduction_with_dim/bool", "native_batch_norm/float16", "atan2/int64", "__rpow__/int64",
    "nn.functional.avg_pool3d/float32", "nn.functional.avg_pool3d/int64", "take/float32", "cat/float32",
    "nn.functional.pdist/float32", "complex/float32", "special.laguerre_polynomial_l/float32",
]  # fmt: skip


@functools.cache
def known():
    return {name_of(info): info for info in operators()}


@pytest.mark.parametrize("name", SAMPLE)
def test_what_torch_captures_is_exported_and_right(name):
    found = outcome(known()[name], DTYPES["float32"], most=2, peer=False)
    assert found is not None
    assert found.captured
    assert set(found.verdicts.values()) == {"right"}, found.reasons


@pytest.mark.parametrize("key", OTHERS)
def test_and_so_is_what_torch_captures_of_other_types_and_samples(key):
    name, _, kind = key.partition("/")
    found = outcome(known()[name], DTYPES[kind], most=3, peer=False)
    assert found is not None
    assert found.captured
    assert found.verdicts["cpu"] == "right", found.reasons
    assert found.verdicts.get("onnxruntime") != "wrong", found.reasons
