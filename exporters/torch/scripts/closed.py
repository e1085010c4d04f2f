"""A ScriptModule that is called with tensors alone: torch.onnx (2.13) refuses one with None or numbers among them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir
import torch

from entrepot.exporters.sample import Sample

_PREFIX = "module."
_LITERALS = bool | int | float | str | None


def closed(module: torch.jit.ScriptModule, sample: Sample) -> torch.jit.ScriptModule:
    """The module itself if it takes tensors alone; else one that calls it with the sample's other arguments.

    Args:
        module: Its parameters get a prefix in the graph: see ``without_prefix``.
        sample: What it is called with; defaults are added.
    """
    schema: Any = module.forward.schema  # type: ignore[attr-defined]
    arguments = schema.arguments[1:]
    defaults = {each.name: each.default_value for each in arguments if each.has_default_value()}
    given = defaults | dict(zip((each.name for each in arguments), sample.args, strict=False)) | dict(sample.kwargs)
    open_ = [each.name for each in arguments if isinstance(given.get(each.name), torch.Tensor | np.ndarray)]
    others = {name: value for name, value in given.items() if name not in open_}
    if not others or not all(map(_is_literal, others.values())):
        return module
    passed = ", ".join(each.name if each.name in open_ else repr(others[each.name]) for each in arguments)
    return _calling(module, f"def forward(self, {', '.join(open_)}):\n    return self.module.forward({passed})\n")


def _calling(module: torch.jit.ScriptModule, source: str) -> torch.jit.ScriptModule:
    class Closed(torch.jit.ScriptModule):  # a class of its own each time, since instances of one share what is defined
        def __init__(self) -> None:
            super().__init__()
            self.module = module
            self.define(source)

    return Closed()


def without_prefix(graph: onnx_ir.Graph) -> None:
    """Give the parameters of what ``closed`` has made their own names again."""
    for name, value in list(graph.initializers.items()):
        value.name = name.removeprefix(_PREFIX)


def _is_literal(value: Any) -> bool:
    return isinstance(value, _LITERALS) and not (isinstance(value, float) and not math.isfinite(value))
