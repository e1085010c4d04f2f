"""``export_transformer``: a model that generates, or any other of transformers, as a package."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

import torch

from entrepot.exporters import pipeline
from entrepot.exporters.options import Options
from entrepot.exporters.torch.sources.module import ModuleSource
from entrepot.exporters.transformers.build import Building
from entrepot.exporters.transformers.forms import Trials
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.exporters.transformers.roles import Called, Roles, Task, generates, roles_of
from entrepot.exporters.transformers.samples import BATCH, LENGTH, Inputs, sample_of, tokens
from entrepot.exporters.transformers.upstream import versions, whole_windows
from entrepot.exporters.transformers.verify import check_reached, compared, verified
from entrepot.ir.arguments import IntegerLike, PathLike, as_choice, as_flag, as_integer, as_kind, as_opset
from entrepot.ir.errors import ConversionError
from entrepot.ir.progress import Progress, announcing, reporter
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package

if TYPE_CHECKING:
    from collections.abc import Iterator


def export_transformer(
    model: torch.nn.Module,
    samples: Any = None,
    task: Task = "auto",
    path: PathLike | None = None,
    *,
    roles: Roles | None = None,
    loop: Literal["host", "in_graph"] = "host",
    num_beams: IntegerLike = 1,
    opset: IntegerLike | None = None,
    verify: bool = True,
    progress: Progress = None,
) -> Package:
    """Turn a transformer into a package that generates without torch and transformers.

    Args:
        model: A model of transformers, or any module that takes tokens and a cache and returns scores and a cache.
        samples: What it is called with for a prompt: a dict, or whatever ``export`` takes; made from its configuration
            if left out.
        task: ``"generate"`` or ``"forward"``; by default, whatever the model is for.
        path: Where to save the package, if anywhere.
        roles: What its arguments are for, where their names do not tell.
        loop: ``"host"``: graphs for single steps, which ``generate`` calls. ``"in_graph"``: one graph that generates by
            itself, in any runtime of the standard.
        num_beams: How many beams a loop in the graph searches; on the host, each call says so.
        opset: Opset of the graphs; by default what every current runtime loads.
        verify: Run the graphs beside the model at several sizes, and compare what both generate.
        progress: See ``export``.

    Returns:
        The package.

    Raises:
        InputError: The model or an argument is none of the things above.
        ConversionError: It cannot be expressed as graphs.
        UnsupportedOpError: An operator has no counterpart.
        VerificationError: The result does not compute the same thing; the error carries the report.
    """
    as_kind(model, torch.nn.Module, "the model", hint="ep.export takes anything else")
    task = as_choice(task, ("auto", "generate", "forward"), "task")
    wanted = None if opset is None else as_opset(opset)
    options = Options(
        opset=wanted if loop != "in_graph" else None, verify=as_flag(verify, "verify"), tell=reporter(progress)
    )
    loop, beams = as_choice(loop, ("host", "in_graph"), "loop"), as_integer(num_beams, "num_beams", least=1)
    found = roles_of(model, None if roles is None else as_kind(roles, Roles, "roles"))
    with announcing(options.tell), _evaluating(model), whole_windows():
        decodes = generates(model, found, task)
        options.tell("finding out how it is called")
        given = sample_of(model, found, samples, generates=decodes)
        inputs = dict(given)
        package = (_decoder if decodes else _forward)(model, found, given, options)
        if loop == "in_graph":
            options.tell("writing the loop")
            package = with_loop(package, inputs, opset=wanted, num_beams=beams, verify=options.verify)
        if samples is not None:
            check_reached(package.graphs, inputs)
        if path is not None:
            options.tell("saving")
            package.save(path)
    return package


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, for as long as it takes."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def with_loop(package: Package, inputs: Inputs, *, opset: int | None, num_beams: int, verify: bool) -> Package:
    """The package as one graph, compared with what the host's loop generates."""
    whole = looped(package, num_beams=num_beams, opset=opset)
    if verify:
        compared(whole, package, inputs, num_beams)
    return whole


def _forward(model: torch.nn.Module, roles: Roles, given: Inputs, options: Options) -> Package:
    graph = pipeline.export(ModuleSource(model, dict(given)), options)
    return Package({"model": graph}, Manifest(versions=versions()), report=graph.report)


def _decoder(model: torch.nn.Module, roles: Roles, given: Inputs, options: Options) -> Package:
    prompt = given.pop(roles.tokens, None)
    given.pop(roles.mask, None)
    if prompt is None:
        prompt = tokens(model, BATCH, LENGTH)
    trials = Trials(Called(model, roles), prompt, given)
    building = Building(trials, trials.form(), options)
    try:
        graphs = building.graphs()
    except ConversionError as error:
        if building.form.new == 1:
            raise
        options.tell(f"one token at a time, because several are refused: {error.message.splitlines()[0]}")
        building = Building(trials, trials.form(sizes=(1,)), options)
        graphs = building.graphs()
    package = Package(graphs, building.manifest(graphs))
    return verified(package, building) if options.verify else package
