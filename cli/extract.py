"""``entrepot extract``: a part of a model as a model of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.group import verb
from entrepot.cli.models import MODEL, TARGET, Source, Target, read_model
from entrepot.cli.output import Output, rows, stack

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.ir.model import Model


@verb("extract")
@click.argument("model", type=MODEL)
@click.option("--from", "inputs", multiple=True, metavar="NAMES", help="Values that become inputs: a,b.")
@click.option("--to", "outputs", multiple=True, metavar="NAMES", help="Values that become outputs: c,d.")
@click.option("-o", "--output", "target", type=TARGET, required=True, help="The .onnx file to write.")
def command(output: Output, model: Source, inputs: tuple[str, ...], outputs: tuple[str, ...], target: Target) -> int:
    """Write the part of MODEL that computes some values from others.

    NAMES are separated by commas, or the option is repeated; 'entrepot info --nodes' lists them. Without --from the
    inputs of the model that are needed stay inputs; without --to its outputs stay outputs.
    """
    from entrepot.ir.extract import extract, unused_inputs
    from entrepot.ir.progress import reporter

    loaded = read_model(model, output)
    reporter(output.progress)("cutting and checking")
    names = {spec.name for spec in (*loaded.inputs, *loaded.outputs)}
    part = extract(loaded, _names(inputs, names), _names(outputs, names))
    idle = unused_inputs(part)
    for name in idle:
        output.note(f"input '{name}' is not needed for the outputs")
    part.save(target)
    facts = _facts(loaded, part) | {"path": str(target), "unused_inputs": list(idle)}
    output.result(facts, lambda: _text(facts))
    return Exit.OK


def _names(given: tuple[str, ...], known: set[str]) -> list[str] | None:
    """The names in the options; one that contains a comma is recognised if it is an input or output."""
    names = [name for text in given for name in ([text] if text in known else text.split(","))]
    return [name.strip() for name in names if name.strip()] if given else None


def _facts(whole: Model, part: Model) -> dict[str, Any]:
    return {
        "inputs": [str(spec) for spec in part.inputs],
        "outputs": [str(spec) for spec in part.outputs],
        "nodes": len(part.ir.graph),
        "of_nodes": len(whole.ir.graph),
        "weights": len(part.ir.graph.initializers),
        "of_weights": len(whole.ir.graph.initializers),
    }


def _text(facts: dict[str, Any]) -> RenderableType:
    cells = [
        *(("input", text) for text in facts["inputs"]),
        *(("output", text) for text in facts["outputs"]),
        ("nodes", f"{facts['nodes']} of {facts['of_nodes']}"),
        ("weights", f"{facts['weights']} of {facts['of_weights']}"),
    ]
    return stack(rows("", "", cells=cells), f"written to {facts['path']}")
