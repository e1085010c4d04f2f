"""``entrepot compare``: whether two models compute the same thing."""

from __future__ import annotations

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.group import verb
from entrepot.cli.inputs import input_options, read_inputs
from entrepot.cli.models import MODEL, TARGET, Source, Target, read_model
from entrepot.cli.output import Output


@verb("compare")
@click.argument("expected", type=MODEL)
@click.argument("actual", type=MODEL)
@input_options
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance; 0 when only --rtol is given.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance; 0 when only --atol is given.")
@click.option("-p", "--provider", "providers", multiple=True, help="Who runs ACTUAL; by default cpu and onnxruntime.")
@click.option("--source-provider", help="Who runs EXPECTED; by default onnxruntime, or whoever else can be trusted.")
@click.option("--only-sample", is_flag=True, help="Do not try other sizes and values.")
@click.option("--html", type=TARGET, help="Also write the report as a web page.")
def command(
    output: Output,
    expected: Source,
    actual: Source,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
    atol: float | None,
    rtol: float | None,
    providers: tuple[str, ...],
    source_provider: str | None,
    only_sample: bool,
    html: Target | None,
) -> int:
    """Run ACTUAL beside EXPECTED and compare all outputs: |actual - expected| <= atol + rtol * |expected|.

    Both run on the given or random inputs, then on other values and at other sizes of every dynamic axis.
    """
    from entrepot.exporters.options import Judging
    from entrepot.exporters.proof.judge import judge_of
    from entrepot.exporters.proof.prove import prove
    from entrepot.ir.progress import reporter
    from entrepot.parity.compare import Tolerance
    from entrepot.parity.report.json import as_dict
    from entrepot.parity.sources import ModelSource

    first, second = read_model(expected, output), read_model(actual, output)
    feeds, made_up = read_inputs(first, inputs, dims, seed)
    for name in made_up:
        output.note(f"input '{name}' is random: {feeds[name].dtype}{list(feeds[name].shape)}")
    tolerance = None if atol is None and rtol is None else Tolerance(atol or 0.0, rtol or 0.0)
    judging = Judging(providers or None, tolerance, reporter(output.progress))
    source = judge_of(first, feeds) if source_provider is None else ModelSource(first, source_provider)
    report = prove(source, second, feeds, judging, only_sample=only_sample)
    if html is not None:
        report.to_html(html)
    output.result(as_dict(report), lambda: report)
    return Exit.OK if report.ok else Exit.DIFFERS
