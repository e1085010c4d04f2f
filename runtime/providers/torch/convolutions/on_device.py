"""Convolutions of images on a device, with the addition and the Relu after them: one kernel, where cuDNN has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.providers.torch.native.convolution import conv

Fused = Callable[..., Tensor]


class ConvRelu:
    """It takes X, W and B like the operator, then what is added before Relu, if anything.

    Args:
        attributes: The operator's.
        library: What has ``cudnn_convolution_relu`` and ``cudnn_convolution_add_relu``: ``torch``.
        where: The kind of device that these are for.
    """

    def __init__(self, attributes: Mapping[str, Any], library: Any = torch, where: str = "cuda") -> None:
        self.__name__ = "conv"
        self._attributes, self._where = dict(attributes), where
        pads = tuple(attributes.get("pads") or (0, 0, 0, 0))
        self._steps = tuple(attributes.get("strides") or (1, 1))
        self._gaps = tuple(attributes.get("dilations") or (1, 1))
        self._around, self._group = pads[:2], attributes.get("group", 1)
        is_plain = attributes.get("auto_pad", "NOTSET") == "NOTSET" and pads[:2] == pads[2:]
        names = ("cudnn_convolution_relu", "cudnn_convolution_add_relu")
        found = [getattr(library, name, None) for name in names] if is_plain and torch.version.hip is None else []
        self._fused: list[Fused] = [each for each in found if each is not None]

    def __call__(self, X: Tensor, W: Tensor, B: Tensor | None = None, residual: Tensor | None = None) -> Tensor:
        """The largest of zero and the convolution with what is added."""
        if len(self._fused) == 2 and X.device.type == self._where and self._fits(X, W, residual):
            try:
                return self._at_once(X, W, B, residual)
            except RuntimeError:  # cuDNN has no kernel for this type and group
                self._fused = []
        y = conv(X, W, B, **self._attributes)
        return torch.relu_(y if residual is None else y + residual)

    def _at_once(self, x: Tensor, w: Tensor, b: Tensor | None, residual: Tensor | None) -> Tensor:
        window = (self._steps, self._around, self._gaps, self._group)
        alone, and_added = self._fused
        return alone(x, w, b, *window) if residual is None else and_added(x, w, residual, 1.0, b, *window)

    def _fits(self, x: Tensor, w: Tensor, residual: Tensor | None) -> bool:
        """Whether there are images, and what is added has the shape of the result, as was declared."""
        if x.ndim != 4 or w.ndim != 4 or not x.numel() or x.shape[1] != w.shape[1] * self._group:
            return False
        sizes = zip(x.shape[2:], w.shape[2:], self._steps, self._around, self._gaps, strict=True)
        shape = [(size + 2 * pad - gap * (width - 1) - 1) // step + 1 for size, width, step, pad, gap in sizes]
        return min(shape) > 0 and (residual is None or residual.shape == (x.shape[0], w.shape[0], *shape))
