"""Normalisation, Dropout, and Upsample."""

from __future__ import annotations

import numpy as np

from tests.judges.early.use import Array, CannotJudgeError, Use, meaning


def _channels(x: Array, vector: Array) -> Array:
    return vector.reshape(-1, *[1] * (x.ndim - 2))


@meaning("BatchNormalization", since=(1, 6))
def batch_normalization(use: Use, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> list[Array]:
    """One output in test mode, five in training; ``spatial=0`` has statistics for every feature."""
    use.needs(use.since > 1 or x.ndim == 4, f"version 1 takes four axes, not {x.ndim}")
    count = sum(1 for name in use.node.output if name)
    if use["is_test"] and count > 1:
        use.needs(False, "the further outputs are not for testing")
    if not use["is_test"] and count == 1:
        raise CannotJudgeError("one output is that of test mode, which is_test denies")
    axes = (0, *range(2, x.ndim)) if use["spatial"] else (0,)
    shaped = (lambda v: _channels(x, v)) if use["spatial"] else (lambda v: v)
    now = (mean, variance) if use["is_test"] else (x.mean(axes), x.var(axes))
    y = (x - shaped(now[0])) / np.sqrt(shaped(now[1]) + use["epsilon"]) * shaped(scale) + shaped(bias)
    kept = [old * use["momentum"] + new * (1 - use["momentum"]) for old, new in zip((mean, variance), now, strict=True)]
    results = [y] if use["is_test"] else [y, *kept, *now]
    return [result.astype(x.dtype) for result in results]


@meaning("InstanceNormalization", since=(1, 6))
def instance_normalization(use: Use, x: Array, scale: Array, bias: Array) -> Array:
    """Every channel of every image by itself."""
    use.needs(use.since > 1 or x.ndim == 4, f"version 1 takes four axes, not {x.ndim}")
    axes = tuple(range(2, x.ndim))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + use["epsilon"])
    return (_channels(x, scale) * y + _channels(x, bias)).astype(x.dtype)


@meaning("LRN")
def local_response(use: Use, x: Array) -> Array:
    """Divided by the squares of the channels around."""
    size, channels = use["size"], x.shape[1]
    squares = np.stack(
        [np.square(x[:, max(0, c - (size - 1) // 2) : c + -(-(size - 1) // 2) + 1]).sum(1) for c in range(channels)],
        axis=1,
    )
    return (x / (use["bias"] + use["alpha"] / size * squares) ** use["beta"]).astype(x.dtype)


@meaning("LpNormalization")
def lp_normalization(use: Use, x: Array) -> Array:
    """Divided by the norm along one axis; 0 stays 0."""
    use.needs(use["p"] in (1, 2), f"p={use['p']}")
    use.needs(-x.ndim <= use["axis"] < x.ndim, f"axis {use['axis']} of rank {x.ndim}")
    norm = (np.abs(x) ** use["p"]).sum(use["axis"], keepdims=True) ** (1 / use["p"])
    return np.where(norm == 0, 0, x / norm).astype(x.dtype)


@meaning("Dropout", since=(1, 6))
def dropout(use: Use, x: Array) -> list[Array]:
    """The input in test mode, where the mask is not filled; otherwise it is random."""
    if not use["is_test"]:
        raise CannotJudgeError("what training drops is random")
    return [x]


@meaning("Upsample")
def upsample(use: Use, x: Array) -> Array:
    """Images by scales of 1 or more; nearest takes the pixel that the one in question falls into."""
    use.needs(x.ndim == 4, f"rank {x.ndim}")
    use.needs(use["mode"] in ("nearest", "bilinear"), f"mode {use['mode']}")
    for axis, scale in ((2, use["height_scale"]), (3, use["width_scale"])):
        use.needs(scale >= 1, f"scale {scale}")
        place = np.arange(int(np.floor(x.shape[axis] * scale))) / scale
        below = np.minimum(np.floor(place).astype(int), x.shape[axis] - 1)
        low = x.take(below, axis)
        if use["mode"] == "bilinear":
            # the text does not say where pixels lie; every runtime had output 0 on input 0
            part = (place - below).reshape(-1, *[1] * (3 - axis))
            low = low + (x.take(np.minimum(below + 1, x.shape[axis] - 1), axis) - low) * part
        x = low.astype(x.dtype)
    return x
