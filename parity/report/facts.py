"""What a report says about the model it judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from entrepot.ir.arguments import expected
from entrepot.ir.model import Model, ValueSpec
from entrepot.ir.printable import counted, size_text

REFUSED = "the module refuses other sizes"
"""Why an axis is fixed that could not vary in the source either: every other reason is the export's own."""


@dataclass(frozen=True)
class ModelFacts:
    """A model in a few lines.

    Attributes:
        inputs: What must be fed.
        outputs: What comes out.
        opsets: Domain to version.
        nodes: How many nodes the main graph has.
        weights: How many initializers it has.
        weight_bytes: Their size.
        fixed_axes: Axes that an exporter had to fix at the sample's size, each with the reason.
        conditions: What must hold for the sizes of the inputs.
        notes: Whatever else the exporter found worth saying.
    """

    inputs: tuple[ValueSpec, ...]
    outputs: tuple[ValueSpec, ...]
    opsets: Mapping[str, int]
    nodes: int
    weights: int
    weight_bytes: int
    fixed_axes: Mapping[str, str]
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Model) -> ModelFacts:
        """The facts about a model, from its graph and its metadata.

        Raises:
            InputError: It is no ``Model``.
        """
        if not isinstance(model, Model):
            raise expected("model", "a Model", model)
        graph = model.ir.graph
        weights = [value.const_value for value in graph.initializers.values() if value.const_value is not None]
        return cls(
            inputs=model.inputs,
            outputs=model.outputs,
            opsets={domain or "ai.onnx": version for domain, version in model.opsets.items()},
            nodes=len(graph),
            weights=len(weights),
            weight_bytes=sum(weight.nbytes for weight in weights),
            fixed_axes={axis: _line(why) for axis, why in _stated(model, "entrepot.fixed_axes", dict).items()},
            conditions=tuple(map(_line, _stated(model, "entrepot.conditions", list))),
            notes=tuple(map(_line, _stated(model, "entrepot.notes", list))),
        )

    def groups(self) -> dict[str, list[str]]:
        """The same as lines of text under headings, leaving out empty ones and notes that repeat the fixed axes."""
        groups = {
            "inputs": [str(spec) for spec in self.inputs],
            "outputs": [str(spec) for spec in self.outputs],
            "opset": [", ".join(f"{domain} {version}" for domain, version in self.opsets.items())],
            "size": [
                f"{counted(self.nodes, 'node')}, {counted(self.weights, 'weight')} ({size_text(self.weight_bytes)})"
            ],
            "fixed axes": [f"{axis}: {reason}" for axis, reason in self.fixed_axes.items()],
            "conditions": list(self.conditions),
            "notes": [note for note in self.notes if not (self.fixed_axes and note.startswith("fixed: "))],
        }
        return {heading: lines for heading, lines in groups.items() if any(lines)}


def _stated(model: Model, key: str, kind: type) -> Any:
    """What an exporter left in the metadata; a file may hold anything under that key."""
    try:
        found = json.loads(model.metadata.get(key, "null"))
    except (ValueError, RecursionError):
        return kind()
    return found if isinstance(found, kind) else kind()


def _line(text: Any) -> str:
    """On one line, though a reason may quote an error of several."""
    return " ".join(str(text).split())
