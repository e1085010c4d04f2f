"""``entrepot export``: a framework's model becomes a verified file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.group import verb
from entrepot.cli.models import PLACE, TARGET, Target
from entrepot.cli.objects import load_object
from entrepot.cli.output import Output, rows, show, stack
from entrepot.cli.packaged import TASKS, Asked, as_package, check_only_file, package_options
from entrepot.ir.passes.levels import LEVELS, Level

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.exporters.transformers.roles import Task
    from entrepot.ir.errors import EntrepotError, VerificationError
    from entrepot.ir.model import Model
    from entrepot.parity.report import Report


_SAMPLE_HINT = "add --sample package.module:attribute: the inputs to call the model with, or a function that makes them"


@verb("export")
@click.argument("source")
@click.option("--sample", help="package.module:attribute of the sample inputs, or of a function that makes them.")
@click.option(
    "-o", "--output", "target", type=PLACE, required=True, help="The .onnx file to write; with --task, the folder."
)
@click.option("--task", type=click.Choice(TASKS), help="Make a package of a transformer; SOURCE may be a checkpoint.")
@package_options
@click.option("--opset", type=click.IntRange(min=1), help="The ai.onnx version to write.")
@click.option(
    "--dynamic/--static", default=True, show_default=True, help="Let every axis vary that the model allows to vary."
)
@click.option("--optimize", type=click.Choice(LEVELS), default="basic", show_default=True, help="How far to clean up.")
@click.option("--cut-strings", is_flag=True, help="Begin behind operations on text that ONNX does not have.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Compare with the source.")
@click.option("--require-proof", is_flag=True, help="Without a proof, write nothing and exit with 1.")
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance; 0 when only --rtol is given.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance; 0 when only --atol is given.")
@click.option("--html", type=TARGET, help="Also write the verification as a web page.")
def command(
    output: Output,
    source: str,
    sample: str | None,
    target: Target,
    task: Task | None,
    opset: int | None,
    dynamic: bool,
    optimize: Level,
    cut_strings: bool,
    verify: bool,
    require_proof: bool,
    atol: float | None,
    rtol: float | None,
    html: Target | None,
    asked: Asked,
) -> int:
    """Export SOURCE, verify the result against the framework, and write it.

    SOURCE is package.module:attribute (a model, or a function or class that makes one), or a file of the framework;
    of a SavedModel, a signature may follow: folder#name.
    With --task, it may be the folder of a checkpoint: config.json and safetensors, and no code in it is run.
    """
    if task is not None:
        return as_package(output, source, sample, target, asked, task=task, opset=opset, verify=verify)
    _check_file(source, target)
    from entrepot.exporters.api import export
    from entrepot.ir.errors import ConversionError, InputError, UnsupportedOpError, VerificationError
    from entrepot.parity.compare import Tolerance

    if require_proof and not verify:
        raise click.UsageError("--require-proof and --no-verify exclude each other", click.get_current_context())
    is_object = ":" in source and not os.path.exists(source)
    built = load_object(source) if is_object else Path(source)  # which may be folder#signature
    try:
        model = export(
            built,
            None if sample is None else load_object(sample),
            opset=opset,
            dynamic="auto" if dynamic else False,
            optimize=optimize,
            strings="cut" if cut_strings else "refuse",
            verify=verify,
            tolerance=None if atol is None and rtol is None else Tolerance(atol or 0.0, rtol or 0.0),
            progress=output.progress,
        )
    except VerificationError as error:
        _show_failure(error, html, output)
        raise
    except (ConversionError, InputError, UnsupportedOpError) as error:
        error.hint = _hint(error, sample)
        raise
    if html is not None and model.report is not None:
        model.report.to_html(html)
    if require_proof and not _is_proved(model):
        output.result(_facts(model, None), lambda: stack("nothing is written", *_verdict(model)))
        return Exit.DIFFERS
    model.save(target)
    for note in model.notes:
        output.note(f"note: {note}")
    output.result(_facts(model, target), lambda: _text(model, target))
    return Exit.OK


def _check_file(source: str, target: Target) -> None:
    context = click.get_current_context()
    from entrepot.ir.io.foreign import recognised

    if os.path.isfile(os.path.join(source, "config.json")) and recognised(Path(source)) is None:
        raise click.UsageError(f"'{source}' is a checkpoint of a transformer: add --task auto", context)
    check_only_file(context)
    if isinstance(target, Path) and target.is_dir():
        raise click.UsageError(f"'{target}' is a directory: name the .onnx file to write", context)


def _hint(error: EntrepotError, sample: str | None) -> str | None:
    """What to do about a refusal, in words of the command line."""
    from entrepot.exporters.cutting import may_be_cut

    if may_be_cut(error):
        return "--cut-strings exports what follows it, with its result as an input"
    return _SAMPLE_HINT if sample is None and "needs a sample" in error.message else error.hint


def _show_failure(error: VerificationError, html: Target | None, output: Output) -> None:
    """The whole report; with ``--json`` it is part of the error."""
    from entrepot.parity.report import Report

    if not isinstance(error.report, Report):
        return
    if html is not None:
        error.report.to_html(html)
    if not (output.as_json or output.quiet):
        show(error.report)


def _report_of(model: Model) -> Report | None:
    from entrepot.parity.report import Report

    return model.report if isinstance(model.report, Report) else None


def _is_proved(model: Model) -> bool:
    """Whether nothing was made that needs a proof, or it has one: an ONNX file at the same opset is only copied."""
    return model.report is None or model.report.ok


def _facts(model: Model, target: Target | None) -> dict[str, Any]:
    from entrepot.parity.report.json import as_dict

    report = _report_of(model)
    return {
        "path": None if target is None else str(target),
        "opset": model.opset,
        "inputs": [str(spec) for spec in model.inputs],
        "outputs": [str(spec) for spec in model.outputs],
        "notes": list(model.notes),
        "report": None if report is None else as_dict(report),
    }


def _text(model: Model, target: Target) -> RenderableType:
    cells = [("input", str(spec)) for spec in model.inputs] + [("output", str(spec)) for spec in model.outputs]
    return stack(rows("", "", cells=cells), *_verdict(model), f"written to {target}, opset {model.opset}")


def _verdict(model: Model) -> list[RenderableType]:
    report = _report_of(model)
    return [] if report is None else [replace(report, facts=None)]  # they are printed already
