"""Resizing images by torch's own interpolation, at shapes where it does what the node says.

Frameworks differ in where points lie and how coordinates are rounded, and these rules are not worth repeating here:
at each new shape torch's function is run on the unit vectors of an axis, which gives the weights that it would use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from entrepot.runtime.kernels import resize as shared
from entrepot.runtime.kernels.resample import Sampling, Span, Taps, resized_spans, taps
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.constants import HostArray, is_given
from entrepot.runtime.providers.torch.table import prepared
from entrepot.runtime.room import claim

Image: TypeAlias = Callable[[Tensor], Tensor]

_CANDIDATES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "nearest": ({"mode": "nearest"}, {"mode": "nearest-exact"}),
    "linear": ({"mode": "bilinear", "align_corners": False}, {"mode": "bilinear", "align_corners": True}),
    "cubic": ({"mode": "bicubic", "align_corners": False}, {"mode": "bicubic", "align_corners": True}),
}

_MOST = 1 << 20
"""Entries of the matrix of weights; larger ones are not looked at."""

_CLOSE = 1e-6
_SHAPES_KEPT = 64


@prepared("Resize", 19)
def resize(node: NodeView) -> Callable[..., Tensor] | None:
    """Two last axes of four, of float32, without antialiasing or a region."""
    x, given = node.inputs[0], node.attributes
    if x is None or x.dtype != np.float32 or x.shape is None or len(x.shape) != 4 or given.get("antialias"):
        return None
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize" or is_given(node, 1):
        return None
    kept: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    sampling = Sampling(
        kept.get("mode", "nearest"), kept.get("coordinate_transformation_mode", "half_pixel"),
        kept.get("nearest_mode", "round_prefer_floor"), kept.get("cubic_coeff_a", -0.75), False,
        bool(kept.get("exclude_outside", 0)),
    )  # fmt: skip
    plans: dict[Any, Image | None] = {}

    def run(
        X: Tensor, roi: HostArray | None = None, scales: HostArray | None = None, sizes: HostArray | None = None
    ) -> Tensor:
        factors, lengths = _key(scales), _key(sizes)
        key = (X.shape, factors, lengths)
        if key not in plans:
            if len(plans) >= _SHAPES_KEPT:
                plans.clear()
            plans[key] = _image(X, scales if factors else None, sizes if lengths else None, kept, sampling)
        image = plans[key]
        return shared.resize(TorchBackend(X.device), X, roi, scales, sizes, **kept) if image is None else image(X)

    return run


def _key(values: HostArray | None) -> tuple[float, ...]:
    return () if values is None else tuple(values.tolist())


def _image(
    x: Tensor, scales: HostArray | None, sizes: HostArray | None, given: Mapping[str, Any], sampling: Sampling
) -> Image | None:
    """Torch's function for one shape; ``None`` where it has none that does the same."""
    if x.ndim != 4 or not x.numel():
        return None
    policy = given.get("keep_aspect_ratio_policy", "stretch")
    spans = resized_spans(x.shape, scales, sizes, None, given.get("axes"), policy)
    if not spans or not set(spans) <= {2, 3}:
        return None
    target = tuple(spans[axis].target if axis in spans else x.shape[axis] for axis in (2, 3))
    if not all(target) or max(size * wanted for size, wanted in zip(x.shape[2:], target, strict=True)) > _MOST:
        return None
    claim((*x.shape[:2], *target), 4)
    for candidate in _CANDIDATES.get(sampling.mode, ()):
        image = partial(interpolate, size=target, **candidate)
        if all(
            _is_alike(image, axis, torch.eye(x.shape[axis], device=x.device), target[axis - 2], spans, sampling)
            for axis in (2, 3)
        ):
            return image
    return None


def _is_alike(
    image: Callable[..., Tensor], axis: int, units: Tensor, target: int, spans: Mapping[int, Span], sampling: Sampling
) -> bool:
    """Whether torch's weights along one axis are those of the node."""
    source = len(units)
    wanted = _matrix(taps(spans[axis], sampling), source) if axis in spans else np.eye(source)
    placed, size = (units[:, None, :, None], (target, 1)) if axis == 2 else (units[:, None, None, :], (1, target))
    own = image(placed, size=size).reshape(source, target).T.double().cpu().numpy()
    return wanted is not None and bool(np.abs(own - wanted).max() <= _CLOSE)


def _matrix(taps: Taps, source: int) -> np.ndarray[Any, Any] | None:
    """The weight of each point of the source for each of the target; ``None`` if some lie outside."""
    if taps.outside is not None and taps.outside.any():
        return None
    matrix = np.zeros((len(taps.indices), source))
    weights = np.ones_like(taps.indices, float) if taps.weights is None else taps.weights
    np.add.at(matrix, (np.arange(len(matrix))[:, None], taps.indices), weights)
    return matrix
