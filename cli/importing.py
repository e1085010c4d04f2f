"""``entrepot import``: a model as source over a framework, in a folder of its own."""

from __future__ import annotations

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.group import verb
from entrepot.cli.inputs import input_options, read_inputs
from entrepot.cli.models import MODEL, Source, read_model
from entrepot.cli.output import Output


@verb("import")
@click.argument("model", type=MODEL)
@click.option("--to", "framework", type=click.Choice(["torch", "numpy"]), required=True, help="What to make of it.")
@click.option("-o", "--output", "folder", type=click.Path(file_okay=False), required=True,
              help="The folder to write, made if it is missing.")  # fmt: skip
@click.option("--verify/--no-verify", default=True, show_default=True, help="Run both and compare, then write (torch).")
@input_options
def command(
    output: Output, model: Source, framework: str, folder: str, verify: bool, inputs: tuple[str, ...],
    dims: tuple[str, ...], seed: int,
) -> int:  # fmt: skip
    """Write MODEL as Python source with its weights, which needs nothing but the framework.

    A folder for torch has model.py, model.safetensors and requirements.txt; one for numpy has model.py and weights.npz.
    """
    loaded = read_model(model, output)
    facts: dict[str, object] = {"path": folder, "framework": framework}
    verdict = ""
    if framework == "numpy":
        from entrepot.importers.numpy.convert import to_numpy

        to_numpy(loaded, source=folder)
    else:
        from entrepot.importers.torch.convert import to_torch

        given, _ = read_inputs(loaded, inputs, dims, seed) if inputs or dims else (None, ())
        module = to_torch(loaded, source=folder, verify=verify, sample=given)
        report = getattr(module, "report", None)
        facts |= {"verified": bool(report)}
        verdict = "" if report is None else f"; {report.summary()}"
    output.result(facts, lambda: f"{folder}: written for {framework}{verdict}")
    return Exit.OK
