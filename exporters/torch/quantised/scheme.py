"""What a quantised tensor is made of, and how one is told from others while a module is captured.

No graph has quantised tensors. What stands for one is the tensor of the numbers that it means, with a ``Scheme``
attached: the graph quantises and dequantises again wherever torch rounds to steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.torch.translations.quantisation import dequantise, parameter, quantise
from entrepot.ir.errors import UnsupportedOpError

KINDS = {torch.quint8: torch.uint8, torch.qint8: torch.int8}
"""Plain element types by quantised ones."""


@dataclass(frozen=True)
class Scheme:
    """How numbers are quantised.

    Attributes:
        scale: The step: a number, or a tensor of one, or of one for each index along ``axis``.
        zero_point: What stands for zero, likewise.
        kind: torch's element type.
        axis: Where there is more than one scale.
    """

    scale: Any
    zero_point: Any
    kind: torch.dtype
    axis: int = 0

    @property
    def limits(self) -> torch.iinfo:
        """The smallest and largest step."""
        return torch.iinfo(self.plain)

    @property
    def plain(self) -> torch.dtype:
        """The element type in ONNX.

        Raises:
            UnsupportedOpError: There is none.
        """
        if self.kind not in KINDS:
            raise UnsupportedOpError(
                f"tensors of {self.kind} cannot be exported", hint="quantise to torch.qint8 or torch.quint8"
            )
        return KINDS[self.kind]


def scheme_of(value: Any) -> Scheme | None:
    """How a tensor is quantised, if it stands for one that is."""
    return getattr(value, "_entrepot_scheme", None) if isinstance(value, torch.Tensor) else None


def steps_of(tensor: torch.Tensor, scheme: Scheme) -> torch.Tensor:
    """The integers of a tensor."""
    return quantise(tensor, scheme.scale, scheme.zero_point, scheme.plain, scheme.axis)


def rounded(tensor: torch.Tensor, scheme: Scheme) -> torch.Tensor:
    """A tensor rounded to the steps of a scheme, and marked with it."""
    scale = parameter(scheme.scale, torch.float32)
    zero_point = parameter(scheme.zero_point, scheme.plain)
    steps = quantise(tensor, scale, zero_point, scheme.plain, scheme.axis)
    return marked(dequantise(steps, scale, zero_point, scheme.axis), scheme)


def marked(tensor: torch.Tensor, scheme: Scheme) -> torch.Tensor:
    """A tensor whose numbers are steps of a scheme already."""
    tensor._entrepot_scheme = scheme  # type: ignore[attr-defined] # noqa: SLF001 - our own mark
    return tensor
