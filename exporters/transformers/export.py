"""From a model to its package, step by step."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters import pipeline
from entrepot.exporters.axes.groups import Axis
from entrepot.exporters.options import Options
from entrepot.exporters.torch.sources.module import ModuleSource
from entrepot.exporters.transformers.build import Building, check_heeded
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.forms import Forms
from entrepot.exporters.transformers.guesses import BATCH, LENGTH, Inputs, left_out, tokens
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.exporters.transformers.last_scores import with_last_scores
from entrepot.exporters.transformers.precision import Precision, check_close, narrowed
from entrepot.exporters.transformers.roles import Roles, Task
from entrepot.exporters.transformers.samples import roomy, sample_of
from entrepot.exporters.transformers.signature import generates, roles_of
from entrepot.exporters.transformers.stepwise import check_steps
from entrepot.exporters.transformers.tensor_scatter import with_tensor_scatter
from entrepot.exporters.transformers.trials import Trials
from entrepot.exporters.transformers.two_parts import called_in_steps
from entrepot.exporters.transformers.upstream import is_pretrained, versions, whole_windows
from entrepot.exporters.transformers.verify import check_reached, compared, verified
from entrepot.exporters.ways import FAILURES
from entrepot.ir.errors import ConversionError, EntrepotError, InputError, VerificationError
from entrepot.ir.model import Model
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package


@dataclass(frozen=True)
class Wishes:
    """What a caller of ``export_transformer`` asks for, beside what every graph is exported with.

    Attributes:
        task: What the model is for.
        roles: What its arguments are for.
        in_graph: Whether one graph generates by itself.
        beams: How many beams that graph searches.
        opset: Its opset.
        sample: Whether it draws tokens; ``None`` for what the model's configuration says.
        penalty: Whether it takes a repetition penalty.
        capacity: How many tokens caches have room for; 0 if they grow.
        precision: The type of its products, weights and caches.
    """

    task: Task = "auto"
    roles: Roles | None = None
    in_graph: bool = False
    beams: int = 1
    opset: int | None = None
    sample: bool | None = None
    penalty: bool = False
    capacity: int = 0
    precision: Precision = "float32"


def exported(model: torch.nn.Module, samples: Any, wishes: Wishes, options: Options) -> Package:
    """See ``export_transformer``."""
    roles = roles_of(model, wishes.roles)
    with _evaluating(model):
        decodes = generates(model, roles, wishes.task)
        options.tell("finding out how it is called")
        given = sample_of(model, roles, samples, generates=decodes)
        given = roomy(model, roles, given) if decodes else given
        trials = _trials(model, roles, dict(given), wishes, options) if decodes else None
        if trials is None:
            _check_asks_for_steps(wishes)
        package = _forward(model, given, options) if trials is None else _decoder(trials, wishes, options)
        if wishes.precision != "float32":
            options.tell(f"making it {wishes.precision}")
            package = _narrow(package, given, wishes.precision, verify=options.verify)
        if wishes.in_graph:
            options.tell("writing the loop")
            package = _with_loop(package, given, wishes, verify=options.verify)
        if samples is not None:
            check_reached(package.graphs, given)
        elif lost := left_out(model, given):
            note = f"made without {', '.join(lost)}, which it takes where the samples have them"
            package.manifest = dataclasses.replace(package.manifest, notes=(*package.notes, note))
    return package


def _check_asks_for_steps(wishes: Wishes) -> None:
    """Refuse what only a model that generates has.

    Raises:
        ConversionError: A loop or a cache of a fixed size is asked for.
    """
    for name, asked in {"loop": wishes.in_graph, "cache": wishes.capacity}.items():
        if asked:
            raise ConversionError(f"the model does not generate, so there is no {name}", hint=f"leave {name} out")


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


def _narrow(package: Package, inputs: Inputs, precision: Precision, *, verify: bool) -> Package:
    """The package in a narrower type, compared with itself in float32."""
    narrow = narrowed(package, precision)
    if verify:
        feeds = {name: value.numpy() for name, value in inputs.items() if name in package.inputs}
        check_close(narrow, package, feeds, precision)
    return narrow


def _with_loop(package: Package, inputs: Inputs, wishes: Wishes, *, verify: bool) -> Package:
    """The package as one graph, compared with what the host's loop generates."""
    whole = looped(package, num_beams=wishes.beams, opset=wishes.opset, penalty=wishes.penalty, sample=wishes.sample)
    if verify:
        compared(whole, package, inputs, wishes.beams)
    return whole


def _forward(model: torch.nn.Module, given: Inputs, options: Options) -> Package:
    source = ModuleSource(model, dict(given))
    source.spared = _sides_of_pictures(given, source.call.names)
    graph = pipeline.export(source, options)
    return Package({"model": graph}, Manifest(versions=versions()), report=graph.report)


def _sides_of_pictures(given: Inputs, names: Sequence[str]) -> set[Axis]:
    """Heights and widths, which vary where that is easily had.

    A model that cuts pictures into windows has a path for each way to pad them, which takes minutes to follow.
    """
    pictures = {name: value for name, value in given.items() if value.is_floating_point() and value.dim() >= _PICTURES}
    return {(names.index(name), value.dim() - side) for name, value in pictures.items() for side in (1, 2)}


_PICTURES = 4
"""The rank of pictures; films have more."""


def _trials(model: torch.nn.Module, roles: Roles, given: Inputs, wishes: Wishes, options: Options) -> Trials | None:
    """The model with its sample, to be tried as a decoder; ``None`` if it turns out to be none."""
    prompt = given.pop(roles.tokens, None)
    given.pop(roles.mask, None)
    if prompt is None:
        rows = next((len(value) for value in given.values()), BATCH)
        prompt = tokens(model, rows, LENGTH)
    if wishes.task == "auto" and (prompt.is_floating_point() or prompt.dim() != _ROWS_OF_TOKENS):
        options.tell("it is given no tokens, so it does not generate one after the other")
        return None
    try:
        trials = Trials(called_in_steps(Called(model, roles), given | {roles.tokens: prompt}), prompt, given)
    except InputError:
        if wishes.task != "auto" or wishes.roles is not None or is_pretrained(model):
            raise
        options.tell("its results are no scores of tokens, so it does not generate")
        return None
    if wishes.task == "auto" and not trials.takes_what_it_scores():
        options.tell("it scores tokens that it does not take, so it does not generate one after the other")
        return None
    if wishes.task == "auto" and not Forms(trials).is_causal():
        options.tell("scores of tokens depend on later ones, so it does not generate")
        return None
    return trials


_ROWS_OF_TOKENS = 2
"""The rank of tokens."""


def _packed(building: Building, graphs: Mapping[str, Model]) -> Package:
    """The package of graphs."""
    manifest = building.manifest(graphs)
    if not building.form.capacity:
        return with_last_scores(Package(graphs, manifest))
    decoder = with_tensor_scatter(graphs["decoder"], manifest.states, manifest.past_length)
    return with_last_scores(Package({**graphs, "decoder": decoder}, manifest))


@whole_windows()
def _decoder(trials: Trials, wishes: Wishes, options: Options) -> Package:
    check_heeded(trials.called.whole)
    first: EntrepotError | None = None
    forms = Forms(trials)
    encoders: dict[Any, Model | EntrepotError] = {}
    for growing in forms:
        form = growing
        try:
            form = forms.fixed(growing, wishes.capacity) if wishes.capacity else growing
            check_steps(trials, form)
            building = Building(trials, form, options, why=first, encoders=encoders)
            graphs = building.graphs()
            package = _packed(building, graphs)
            if not options.verify:
                return package
            try:
                return verified(package, building)
            except VerificationError as error:
                if not package.manifest.prompt_from:
                    raise
                options.tell(f"prompts go token by token: {error.message.splitlines()[0]}")
            return verified(_packed(building, {"decoder": graphs["decoder"]}), building)
        except FAILURES as error:
            first = first or error
            options.tell(f"{form.describe()}: {error.message.splitlines()[0]}")
    raise first or ConversionError(
        "no way was found to call it with its cache that gives what it gives without",
        hint="export its forward alone: task='forward'",
    )
