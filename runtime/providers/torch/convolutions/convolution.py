"""Convolutions of one or two axes by constant float32 weights, with what follows them."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor

from entrepot.ir.errors import InputError, ResourceLimitError
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.constants import constant, float_constant, is_given
from entrepot.runtime.providers.torch.convolutions.planner import Planner
from entrepot.runtime.providers.torch.convolutions.plans import Fixed
from entrepot.runtime.providers.torch.convolutions.reach import LIMIT, UNKNOWN, Reach, tell
from entrepot.runtime.providers.torch.dtypes import tensor_of
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.providers.torch.measuring.chooser import Chooser


def conv_with(
    node: NodeView,
    activation: Activation | None,
    *,
    is_told: tuple[bool, bool] = (False, False),
    chooser: Chooser | None = None,
) -> Convolution | None:
    """A convolution that ends in ``activation``, or ``None`` where its weights or bias are not constant float32.

    Args:
        node: The convolution.
        activation: Its end.
        is_told: Whether its input, and what is added to its result, are results of such convolutions as they left them.
        chooser: Measures which kernel is fastest; by default sizes decide.
    """
    weights, bias = float_constant(node, 1), constant(node, 2)
    is_fitting = bias is None or weights is None or bias.shape == weights.shape[:1]
    if weights is None or weights.ndim not in (3, 4) or (bias is None and is_given(node, 2)) or not is_fitting:
        return None
    made = private.convolution()
    if made is None:
        return None
    attributes = {key: tuple(value) if isinstance(value, list) else value for key, value in node.attributes.items()}
    fixed = Fixed(made, attributes, tensor_of(weights), None if bias is None else tensor_of(bias), activation)
    planner = Planner(fixed, chooser)
    if chooser is not None:
        _plan_ahead(planner, node)
    return Convolution(planner, Reach(fixed.weights, fixed.bias, is_told), activation)


def _plan_ahead(planner: Planner, node: NodeView) -> None:
    """Measure now where sizes are declared; what is declared wrong is for the run to say, if it gets there."""
    given = node.inputs[0]
    shape = () if given is None or given.shape is None else given.shape
    sizes = [size for size in shape if isinstance(size, int)]
    if sizes and len(sizes) == len(shape):
        with torch.inference_mode(), contextlib.suppress(InputError, ResourceLimitError):
            planner.at(torch.Size(sizes))


class Convolution:
    """It takes X, W and B like the operator, then what is added before the activation, if anything.

    What is added should have the shape of the result.
    """

    def __init__(self, planner: Planner, reach: Reach, activation: Activation | None, *, onto: bool = False) -> None:
        self.__name__ = "conv"
        self._planner, self._reach, self._activation, self._onto = planner, reach, activation, onto
        self._is_known = activation is None or activation.post is not None
        self._most = activation.most if activation is not None else LIMIT

    def over_last(self) -> Convolution:
        """The same, whose result may take the memory of what is added."""
        over = Convolution(self._planner, self._reach, self._activation, onto=True)
        over.__name__ = self.__name__
        return over

    def __call__(
        self, X: Tensor, W: Tensor | None = None, B: Tensor | None = None, residual: Tensor | None = None
    ) -> Tensor:
        """The result, which is memory of its own, or that of ``residual``."""
        plan = self._planner.at(X.shape)
        if torch.compiler.is_compiling():
            return plan(X, residual, self._onto, False)
        reach = self._reach.by_notes(X, residual)
        if not reach < LIMIT and X.numel() <= plan.worth:
            reach = self._reach.by_measure(X, residual)
        y = plan(X, residual, self._onto, reach < LIMIT)
        tell(y, min(reach, self._most) if self._is_known and reach < LIMIT else UNKNOWN)
        return y
