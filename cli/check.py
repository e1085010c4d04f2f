"""``entrepot check``: whether a model is valid, and who can run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.group import verb
from entrepot.cli.models import MODEL_OR_PACKAGE, Source, read_model
from entrepot.cli.output import Output, rows, stack

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.ir.model import Model


@verb("check")
@click.argument("model", type=MODEL_OR_PACKAGE)
@click.option("-p", "--provider", "providers", multiple=True, help="Who should run it; all installed by default.")
def command(output: Output, model: Source, providers: tuple[str, ...]) -> int:
    """Validate MODEL (structure, types, shapes) and show who can run it.

    MODEL may be the folder of a package: then every file in it is compared with what was saved. The exit status is 3
    for an invalid model and 4 for a valid one that no provider can run.
    """
    if model.folder is not None:
        from entrepot.cli.folders import check_package

        return check_package(output, model.folder, providers)
    from entrepot.ir.progress import reporter
    from entrepot.ir.validity import problem_of
    from entrepot.parity.verify import default_providers

    tell = reporter(output.progress)
    loaded = read_model(model, output)
    tell("checking it with onnx")
    problem = problem_of(loaded, model.readable)
    support = {}
    for name in providers or default_providers():
        tell(f"asking {name}")
        support[name] = reason_against(loaded, name)
    facts = {"path": str(model), "valid": not problem, "problem": problem, "providers": support}
    output.result(facts, lambda: _text(facts))
    if problem:
        return Exit.INVALID_MODEL
    return Exit.UNSUPPORTED if all(support.values()) else Exit.OK


def reason_against(model: Model, provider: str) -> str:
    """Empty, or why a provider does not run a model."""
    from entrepot.ir.errors import EntrepotError
    from entrepot.runtime.session import Session

    try:
        Session(model, providers=(provider,))
    except EntrepotError as error:
        return str(error)
    return ""


def _text(facts: dict[str, Any]) -> RenderableType:
    verdict = f"{facts['path']}: {'INVALID: ' + facts['problem'] if facts['problem'] else 'valid'}"
    table = [(name, "no" if reason else "yes", reason) for name, reason in facts["providers"].items()]
    return stack(rows("", cells=[(verdict,)]), rows("provider", "runs it", "", cells=table))
