"""``entrepot convert``: a model at another opset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.exit_codes import Exit, as_dict, one_line
from entrepot.cli.group import verb
from entrepot.cli.inputs import input_options, read_inputs
from entrepot.cli.models import MODEL, TARGET, read_model
from entrepot.cli.output import Output

if TYPE_CHECKING:
    from entrepot.ir.errors import EntrepotError
    from entrepot.ir.model import Model
    from entrepot.parity.report import Report


@verb("convert")
@click.argument("model", type=MODEL)
@click.option("--opset", type=click.IntRange(min=1), required=True, help="The ai.onnx version to bring it to.")
@click.option("-o", "--output", "target", type=TARGET, help="The file to write; needed unless --explain is given.")
@click.option("--explain", is_flag=True, help="Only tell whether it can be done, and what is in the way.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Run both and compare before writing.")
@input_options
def command(
    output: Output,
    model: Path,
    opset: int,
    target: Path | None,
    explain: bool,
    verify: bool,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
) -> int:
    """Bring MODEL to another opset, up or down, and prove that it still computes the same."""
    from entrepot.ir.opset.convert import convert_opset

    loaded = read_model(model, output)
    if explain:
        return _explain(loaded, opset, output)
    if target is None:
        raise click.UsageError("missing option '-o': where should the result go?", click.get_current_context())
    converted = convert_opset(loaded, opset)
    report, reason = _verify(loaded, converted, (inputs, dims, seed), output) if verify else (None, "--no-verify")
    facts = {
        "from": loaded.opsets,
        "to": converted.opsets,
        "path": str(target),
        "verified": report is not None and report.ok,
        "not_verified_because": reason or None,
    }
    if report is not None and not report.ok:
        output.result(facts | {"path": None, "report": report.summary()}, lambda: report)
        return Exit.DIFFERS
    converted.save(target)
    verdict = report.summary() if report is not None else f"not verified: {reason}"
    output.result(facts, lambda: f"{target}: opset {loaded.opset} -> {converted.opset}, {verdict}")
    return Exit.OK


def _explain(model: Model, opset: int, output: Output) -> int:
    from entrepot.ir.opset.convert import can_convert

    blockers = can_convert(model, opset)
    facts = {"from": model.opset, "to": opset, "possible": not blockers, "blockers": [as_dict(b) for b in blockers]}
    output.result(facts, lambda: _explanation(model.opset, opset, blockers))
    return Exit.UNSUPPORTED if blockers else Exit.OK


def _explanation(have: int, opset: int, blockers: tuple[EntrepotError, ...]) -> str:
    if not blockers:
        return f"opset {have} -> {opset}: possible"
    return "\n  - ".join([f"opset {have} -> {opset}: not possible", *map(one_line, blockers)])


def _verify(model: Model, converted: Model, spelled: tuple[Any, Any, Any], output: Output) -> tuple[Report | None, str]:
    """The report, or why there is none: a model that cannot be run here can still be converted."""
    from entrepot.exporters.conversion_proof import prove_conversion
    from entrepot.ir.errors import EntrepotError
    from entrepot.ir.progress import reporter

    feeds, made_up = read_inputs(model, *spelled)
    try:
        return prove_conversion(model, converted, feeds, progress=reporter(output.progress)), ""
    except EntrepotError as error:
        if not made_up:
            raise
        return None, f"{one_line(error)}; give its inputs with --input or --dim"
