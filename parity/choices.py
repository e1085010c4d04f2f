"""The places that a provider chooses as it runs a model: the source can be asked what follows from these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir

from entrepot.ir.copying import copy_graphs
from entrepot.ir.model import Model
from entrepot.parity.untouched import opened


class Choices:
    """What one provider chooses in a model.

    Args:
        model: The model; it is left as it is.
        provider: Who runs it.

    Raises:
        EntrepotError: It cannot be run so.
    """

    def __init__(self, model: Model, provider: str) -> None:
        graphs = copy_graphs(model.ir)
        returned = {str(value.name) for value in graphs.graph.outputs}
        chosen = [node.outputs[1] for node in graphs.graph if is_choice(node)]
        self._names = [str(value.name) for value in chosen]
        for value in chosen:
            if value.name not in returned:
                value.type = onnx_ir.TensorType(onnx_ir.DataType.INT64)
                graphs.graph.outputs.append(value)
        self._runner = opened(Model(graphs), provider) if chosen else None

    def run(self, feeds: Mapping[str, Any]) -> list[np.ndarray]:
        """The places, in the order in which they are chosen.

        Raises:
            EntrepotError: The provider fails.
        """
        if self._runner is None:
            return []
        found = self._runner.run(feeds)
        return [found[name] for name in self._names]


def is_choice(node: onnx_ir.Node) -> bool:
    """Whether a node chooses places that a source can be told to choose as well."""
    return node.op_type == "TopK" and not node.domain and bool(node.outputs[1].name)
