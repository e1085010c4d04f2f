"""``export_transformer``: what is asked for is read once; torch is imported only when there is something to export."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from entrepot.exporters.options import Options
from entrepot.exporters.transformers.roles import Roles, Task
from entrepot.exporters.weight_store import WeightStore
from entrepot.ir.arguments import (
    IntegerLike,
    PathLike,
    as_choice,
    as_flag,
    as_integer,
    as_kind,
    as_opset,
    as_path,
    expected,
)
from entrepot.ir.collector import collector_sparing
from entrepot.ir.errors import InputError, MissingDependencyError
from entrepot.ir.progress import Progress, announcing, reporter
from entrepot.runtime import heap

if TYPE_CHECKING:
    import torch

    from entrepot.exporters.transformers.export import Wishes
    from entrepot.runtime.generation.package import Package


def export_transformer(
    model: torch.nn.Module | PathLike,
    samples: Any = None,
    task: Task = "auto",
    path: PathLike | None = None,
    *,
    roles: Roles | None = None,
    loop: Literal["host", "in_graph"] = "host",
    num_beams: IntegerLike = 1,
    do_sample: bool | None = None,
    repetition_penalty: bool = False,
    opset: IntegerLike | None = None,
    precision: Literal["float32", "float16", "bfloat16"] = "float32",
    cache: Literal["dynamic", "static"] = "dynamic",
    max_length: IntegerLike = 1024,
    verify: bool = True,
    progress: Progress = None,
) -> Package:
    """Turn a transformer into a package that generates without torch and transformers.

    Args:
        model: A model of transformers, or any module that takes tokens and a cache and returns scores and a cache; or
            the folder of a checkpoint (``config.json`` and safetensors), of which no code is run. The package keeps
            what else is in that folder, such as a tokenizer's files.
        samples: What it is called with for a prompt: a dict, or whatever ``export`` takes; made from its configuration
            if left out.
        task: ``"generate"`` or ``"forward"``; by default, whatever the model is for.
        path: Where to save the package, if anywhere.
        roles: What its arguments are for, where their names do not tell.
        loop: ``"host"``: graphs for single steps, which ``generate`` calls. ``"in_graph"``: one graph that generates by
            itself, in any runtime of the standard.
        num_beams: How many beams a loop in the graph searches; on the host, each call of ``generate`` says so.
        do_sample: Whether a loop in the graph draws tokens: ``temperature``, ``top_k``, ``top_p`` and ``seed`` are its
            inputs then. By default as the model's ``generation_config`` says.
        repetition_penalty: Whether a loop in the graph has an input of this name.
        opset: Opset of the graphs; by default what every current runtime loads.
        precision: The type of weights, products and caches; normalisations, softmax and scores are always float32.
        cache: ``"dynamic"``: caches grow with the tokens. ``"static"``: they have room for ``max_length`` tokens, and
            each step writes into them, so that no size changes from step to step.
        max_length: How many tokens a static cache has room for, the prompt's among them.
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
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingDependencyError("torch is needed to export this", hint="pip install 'entrepot[torch]'") from error
    from entrepot.exporters.transformers.checkpoint import described_by, files_of, opened
    from entrepot.exporters.transformers.export import Wishes, exported
    from entrepot.runtime.generation.inputs import as_files
    from entrepot.runtime.generation.writing import check_target

    given: Any = model
    if not isinstance(given, torch.nn.Module | str | os.PathLike):
        raise expected(
            "the model", "a torch.nn.Module, or the folder of a checkpoint", given, hint="ep.export takes anything else"
        )
    opset = None if opset is None else as_opset(opset)
    room = as_integer(max_length, "max_length", least=16)
    wishes = Wishes(
        task=as_choice(task, ("auto", "generate", "forward"), "task"),
        roles=None if roles is None else as_kind(roles, Roles, "roles"),
        in_graph=as_choice(loop, ("host", "in_graph"), "loop") == "in_graph",
        beams=as_integer(num_beams, "num_beams", least=1),
        opset=opset,
        sample=None if do_sample is None else as_flag(do_sample, "do_sample"),
        penalty=as_flag(repetition_penalty, "repetition_penalty"),
        precision=as_choice(precision, ("float32", "float16", "bfloat16"), "precision"),
        capacity=room if as_choice(cache, ("dynamic", "static"), "cache") == "static" else 0,
    )
    _check_loop(wishes)
    beside = None if path is None else check_target(path).parent
    options = Options(
        opset=None if wishes.in_graph else opset,
        verify=as_flag(verify, "verify"),
        tell=reporter(progress),
        store=WeightStore(beside),
    )
    with announcing(options.tell), collector_sparing(), heap.kept():
        if isinstance(given, torch.nn.Module):
            package = exported(given, samples, wishes, options)
            package.files = as_files(described_by(given))
        else:
            folder = as_path(given, "the model")
            options.tell("reading the checkpoint")
            package = exported(opened(folder), samples, wishes, options)
            package.files = as_files(files_of(folder))
        if path is not None:
            options.tell("saving")
            package.save(path)
    return package


def _check_loop(wishes: Wishes) -> None:
    """On the host, each call of ``generate`` says how it generates.

    Raises:
        InputError: What only a loop in the graph fixes is asked for without one.
    """
    asked = {
        "num_beams": wishes.beams > 1,
        "do_sample": wishes.sample is not None,
        "repetition_penalty": wishes.penalty,
    }
    for name in (name for name, given in asked.items() if given and not wishes.in_graph):
        raise InputError(
            f"{name} is for loop='in_graph', whose graph has it built in",
            hint=f"leave it out, and pass {name} to package.generate()",
        )
