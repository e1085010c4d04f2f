"""Packages named on the command line: what is in them, and whether it is what was saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.output import Output, rows, stack

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.runtime.generation.package import Package


def check_package(output: Output, folder: Path, providers: tuple[str, ...]) -> int:
    """Compare the files of a package with what was saved, and ask who runs its graphs.

    Raises:
        EntrepotError: It cannot be read.
    """
    from entrepot.cli.check import reason_against
    from entrepot.ir.progress import reporter
    from entrepot.parity.verify import default_providers
    from entrepot.runtime.generation.folder import check, load

    tell = reporter(output.progress)
    tell("reading every file")
    damaged = check(folder)
    problem = f"missing, or not what was saved: {', '.join(damaged)}" if damaged else ""
    support: dict[str, str] = {}
    if not damaged:
        package = load(folder)
        for name in providers or default_providers():
            tell(f"asking {name}")
            reasons = ((role, reason_against(model, name)) for role, model in package.graphs.items())
            support[name] = next((f"{role}: {reason}" for role, reason in reasons if reason), "")
    facts = {"path": str(folder), "valid": not problem, "problem": problem, "providers": support}
    output.result(facts, lambda: _verdict(facts))
    if problem:
        return Exit.INVALID_MODEL
    return Exit.UNSUPPORTED if all(support.values()) else Exit.OK


def _verdict(facts: dict[str, Any]) -> RenderableType:
    verdict = f"{facts['path']}: {'INVALID: ' + facts['problem'] if facts['problem'] else 'valid'}"
    if not facts["providers"]:
        return rows("", cells=[(verdict,)])
    table = [(name, "no" if reason else "yes", reason) for name, reason in facts["providers"].items()]
    return stack(rows("", cells=[(verdict,)]), rows("provider", "runs them", "", cells=table))


def show_package(output: Output, folder: Path, *, with_nodes: bool) -> None:
    """Show what a package takes, its graphs, and how it generates.

    Raises:
        UsageError: Nodes are asked for, which are those of a graph.
        EntrepotError: It cannot be read.
    """
    from entrepot.runtime.generation.folder import load

    if with_nodes:
        raise click.UsageError(f"--nodes is for a graph, such as one of the .onnx files in '{folder}'")
    package = load(folder)
    facts = describe(package, folder)
    output.result(facts, lambda: _text(package, facts))


def describe(package: Package, folder: Path) -> dict[str, Any]:
    """What a package says of itself."""
    from entrepot.cli.info import describe as describe_model

    return {
        "path": str(folder),
        "kind": package.manifest.kind,
        "inputs": [str(spec) for spec in package.inputs.values()],
        "graphs": {role: describe_model(model) for role, model in package.graphs.items()},
        "settings": package.settings.as_dict(),
        "files": sorted(package.files),
        "versions": dict(package.manifest.versions),
        "notes": list(package.notes),
        "bytes": sum(each.stat().st_size for each in folder.iterdir() if each.is_file()),
    }


def _text(package: Package, facts: dict[str, Any]) -> RenderableType:
    from entrepot.ir.printable import size_text

    cells = [("kind", facts["kind"]), ("size", size_text(facts["bytes"]))]
    cells += [("input", each) for each in facts["inputs"]]
    for role, graph in facts["graphs"].items():
        weights = f"{graph['weights']} weights, {size_text(graph['weight_bytes'])}"
        cells.append(("graph", f"{role}.onnx, opset {package.graphs[role].opset}, {graph['nodes']} nodes, {weights}"))
    cells += [("setting", f"{name}: {value}") for name, value in facts["settings"].items()]
    cells += [("file", name) for name in facts["files"]]
    cells += [("made with", f"{name} {version}") for name, version in facts["versions"].items()]
    cells += [("note", note) for note in facts["notes"]]
    return rows("", "", cells=cells)
