"""A part as torch's compiler makes it, once for each choice of shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from entrepot.runtime.providers.torch.graphs import signature_of

_MOST = 8
"""Choices of shapes that are compiled, which takes seconds for each; others are run step by step."""

Run = Callable[..., tuple[Any, ...]]


class CompiledByShapes:
    """A part whose operators on tensors are written down as it runs, and compiled without the Python around them.

    What the part does with shapes, and with arrays of the host, is done once for each choice of them.

    Args:
        run: The part, on tensors; and on NumPy arrays where it takes sizes from the host.
        backend: As ``torch.compile`` knows it.
        reason: Why operators cannot be written down; empty if they can.
    """

    def __init__(self, run: Run, backend: str, reason: str) -> None:
        self._plain = run
        self._backend = backend
        self._reason = reason
        self._runs: dict[tuple[Any, ...], Run] = {}
        self._reasons: list[str] = []

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The part's outputs."""
        signature = None if self._reason else signature_of(inputs)
        if signature is None:
            return self._plain(*inputs)
        if signature not in self._runs:
            if len(self._runs) == _MOST:
                return self._plain(*inputs)
            self._runs[signature] = self._compiled(inputs)
        return self._runs[signature](*inputs)

    def _compiled(self, inputs: Sequence[Any]) -> Run:
        """The part for inputs of these shapes; what cannot be compiled is run as it is."""
        at_tensors = [at for at, each in enumerate(inputs) if isinstance(each, Tensor)]
        results: list[Any] = []

        def of_tensors(*tensors: Tensor) -> list[Tensor]:
            given = list(inputs)
            for at, tensor in zip(at_tensors, tensors, strict=True):
                given[at] = tensor
            results[:] = self._plain(*given)
            return [each for each in results if isinstance(each, Tensor)]

        # fake tensors have no elements, so that nothing that is done with elements outside of torch goes unnoticed
        write_down = make_fx(of_tensors, tracing_mode="fake", _allow_non_fake_inputs=True)
        try:
            with torch.inference_mode(mode=False), torch.no_grad():
                graph = write_down(*[_plain_strides(inputs[at]) for at in at_tensors])
        except (NotImplementedError, RuntimeError) as error:
            self._reasons.append((str(error) or type(error).__name__).splitlines()[0])
            return self._plain
        if not all(isinstance(each, Tensor | np.ndarray) for each in results):
            self._reasons.append("it returns a sequence or an optional")
            return self._plain
        compiled = torch.compile(graph, backend=self._backend, dynamic=False)
        known = [None if isinstance(each, Tensor) else each for each in results]

        def run(*inputs: Any) -> tuple[Any, ...]:
            made = iter(compiled(*[_plain_strides(inputs[at]) for at in at_tensors]))
            return tuple(next(made) if each is None else each.copy() for each in known)

        return run

    def remark(self) -> str:
        """Why it is not compiled, or not for all shapes; empty if it is."""
        reasons = [f"not compiled: {each}" for each in dict.fromkeys([self._reason, *self._reasons]) if each]
        if len(self._runs) == _MOST:
            reasons.append(f"compiled for the first {_MOST} choices of shapes, others run step by step")
        return "; ".join(reasons)


def _plain_strides(tensor: Tensor) -> Tensor:
    """The same tensor; along axes of one element with the stride that torch gives a new one, on which it compiles."""
    return tensor.view(tensor.shape)
