"""``entrepot convert``: a model at another opset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from entrepot.cli.exit_codes import Exit, as_dict, one_line
from entrepot.cli.group import verb
from entrepot.cli.models import MODEL, TARGET, Source, Target, read_model
from entrepot.cli.output import Output
from entrepot.cli.proof import Asked, deliver, proof_options, prove

if TYPE_CHECKING:
    from entrepot.ir.errors import EntrepotError
    from entrepot.ir.model import Model


@verb("convert")
@click.argument("model", type=MODEL)
@click.option("--opset", type=click.IntRange(min=1), required=True, help="The ai.onnx version to convert to.")
@click.option("-o", "--output", "target", type=TARGET, help="The file to write; needed unless --explain is given.")
@click.option("--explain", is_flag=True, help="Only say whether it can be done, and what is in the way.")
@proof_options
def command(output: Output, model: Source, opset: int, target: Target | None, explain: bool, asked: Asked) -> int:
    """Convert MODEL to another opset, up or down, and prove that it still computes the same thing.

    MODEL and the file to write may be - for standard input and output.
    """
    from entrepot.ir.opset.convert import convert_opset

    loaded = read_model(model, output)
    if explain:
        return _explain(loaded, opset, output)
    if target is None:
        raise click.UsageError("missing option '-o': where should the result go?", click.get_current_context())
    converted = convert_opset(loaded, opset)
    proof = prove(loaded, converted, asked, output)
    facts = {"from": loaded.opsets, "to": converted.opsets}
    text = f"{target}: opset {loaded.opset} -> {converted.opset}"
    return deliver(converted, target, proof, asked, output, facts, lambda: text)


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
