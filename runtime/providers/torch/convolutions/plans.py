"""What computes a convolution at one shape, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from entrepot.runtime.kernels import convolution as shared
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.backend import TORCH
from entrepot.runtime.providers.torch.epilogues import Activation


@dataclass(frozen=True)
class Fixed:
    """What a convolution has at every shape."""

    made: private.Convolution
    attributes: dict[str, Any]
    weights: Tensor
    bias: Tensor | None
    activation: Activation | None

    @property
    def post(self) -> private.Post | None:
        """The activation in oneDNN's words."""
        return None if self.activation is None else self.activation.post

    def ended(self, y: Tensor, residual: Tensor | None = None) -> Tensor:
        """A result to which ``residual`` is added, after the activation; it changes in place."""
        if residual is not None:
            y = y.add_(residual) if residual.shape == y.shape else y + residual
        if self.activation is not None:
            self.activation.change(y)
        return y


class Plan(Protocol):
    """A convolution at one shape.

    Attributes:
        worth: Elements of an input up to which a look at each of them costs less than ``is_bounded`` saves.
    """

    worth: int

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """The result after the activation, laid out channels last.

        Args:
            x: Of the shape that was planned for.
            residual: What is added before the activation.
            onto: Whether the result may take the memory of ``residual``.
            is_bounded: Whether there is certainly no NaN in the convolution's result.
        """


class OfNothing:
    """No input or no weights, which no packed kernel takes."""

    worth = 0

    def __init__(self, fixed: Fixed) -> None:
        self._fixed = fixed

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """The bias."""
        fixed = self._fixed
        return fixed.ended(shared.conv(TORCH, x, fixed.weights, fixed.bias, **fixed.attributes), residual)
