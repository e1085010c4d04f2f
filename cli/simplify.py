"""``entrepot simplify``: the same model with fewer nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.group import verb
from entrepot.cli.info import describe
from entrepot.cli.models import MODEL, TARGET, Source, Target, read_model
from entrepot.cli.output import Output, rows
from entrepot.cli.proof import Asked, deliver, proof_options, prove
from entrepot.ir.passes.levels import LEVELS, Level
from entrepot.ir.printable import size_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.ir.model import Model


@verb("simplify")
@click.argument("model", type=MODEL)
@click.option("-o", "--output", "target", type=TARGET, required=True, help="The .onnx file to write.")
@click.option("--pass", "passes", multiple=True, metavar="NAME", help="A registered pass, run first; may be repeated.")
@click.option(
    "--level", type=click.Choice(LEVELS[1:]), default="basic", show_default=True, help="How far to go; see ep.optimize."
)
@proof_options
def command(output: Output, model: Source, target: Target, passes: tuple[str, ...], level: Level, asked: Asked) -> int:
    """Remove what MODEL does not need, and prove that it still computes the same thing.

    Constants are computed once, and repeated, idle and unused nodes are removed. Inputs, outputs and weights keep their
    names.
    """
    from entrepot.exporters.simplification import optimize, simplify
    from entrepot.ir.progress import reporter

    loaded = read_model(model, output)
    reporter(output.progress)("simplifying")
    result = simplify(loaded, verify=False, passes=passes)
    if level != "basic":
        result = optimize(result, level, verify=False)
    proof = prove(loaded, result, asked, output)
    facts = {"before": _counts(loaded), "after": _counts(result)}
    return deliver(result, target, proof, asked, output, facts, lambda: _table(facts, target))


def _counts(model: Model) -> dict[str, Any]:
    from entrepot.ir.io.write import nbytes

    known = describe(model)
    counts = {key: known[key] for key in ("nodes", "operators", "weights", "weight_bytes")}
    return counts | {"functions": len(known["functions"]), "bytes": nbytes(model.ir)}


def _table(facts: dict[str, Any], target: Target) -> RenderableType:
    """The totals, and under them every operator, the most frequent first."""
    before, after = facts["before"], facts["after"]
    cells = [
        ("nodes", before["nodes"], after["nodes"]),
        *((f"  {name}", count, after["operators"].get(name, 0)) for name, count in before["operators"].items()),
        ("functions", before["functions"], after["functions"]),
        ("weights", before["weights"], after["weights"]),
        ("bytes", size_text(before["bytes"]), size_text(after["bytes"])),
    ]
    shown = [row for row in cells if row[1:] != (0, 0)]
    return rows("", "before", "after", cells=shown, title=str(target))
