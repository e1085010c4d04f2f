"""The eager module as one side of a comparison: numpy in, numpy out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from entrepot.exporters.torch.eager import Eager, EagerRefusal
from entrepot.parity.verify import SourceRefusal


class ModuleSource:
    """A module that parity can run.

    Args:
        eager: The module on flat tensors.
        input_names: Graph inputs, in the order of the flat tensors.
        output_names: Graph outputs, in the order of the flat results.
        name: How reports call it.
    """

    def __init__(self, eager: Eager, input_names: Sequence[str], output_names: Sequence[str], name: str) -> None:
        self._eager = eager
        self._inputs = list(input_names)
        self._outputs = list(output_names)
        self.name = name

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the module.

        Raises:
            SourceRefusal: The module does not take these feeds.
        """
        try:
            flat = self._eager([from_numpy(feeds[name]) for name in self._inputs])
        except EagerRefusal as refusal:
            raise SourceRefusal(str(refusal)) from refusal
        return dict(zip(self._outputs, map(to_numpy, flat.tensors), strict=True))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The same values as an array; types that numpy lacks come as those of ml_dtypes."""
    from torch.onnx.ops import _dtype_mappings  # noqa: F401

    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def from_numpy(array: np.ndarray) -> torch.Tensor:
    """The inverse of ``to_numpy``."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(np.ascontiguousarray(array).view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))  # a copy: the module may write to it
