"""A package as one graph that generates by itself: one ``Loop`` of the standard, whose first turn is the prompt."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.transformers.in_graph.asked import asked
from entrepot.exporters.transformers.in_graph.beams import BeamLoop
from entrepot.exporters.transformers.in_graph.greedy import Greedy
from entrepot.exporters.transformers.in_graph.step import Decoder
from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset import DEFAULT
from entrepot.ir.opset.convert import convert_opset
from entrepot.runtime.generation.package import Package

SEQUENCES = "sequences"
"""The one output: all tokens, as ``generate`` returns them."""


def looped(
    package: Package, *, num_beams: int, opset: int | None, penalty: bool = False, sample: bool | None = None
) -> Package:
    """The package as one graph.

    Args:
        package: What generates on the host.
        num_beams: How many beams are searched; 1 for a greedy choice.
        opset: Of the result.
        penalty: Whether there is an input for the repetition penalty.
        sample: Whether tokens are drawn; by default as the package does.

    Raises:
        ConversionError: Its steps cannot be turns of one loop.
    """
    manifest, settings, report = package.manifest, package.settings, package.report
    if not package.generates:
        raise ConversionError("the model does not generate, so there is no loop", hint="leave loop out")
    if manifest.anew:
        raise ConversionError(
            f"after {manifest.anew} tokens the model reads all of them anew, which no turn of a loop does",
            hint="leave loop out",
        )
    draws = settings.do_sample if sample is None else sample
    if draws and num_beams > 1:
        raise ConversionError("beams that are drawn are no loop in a graph", hint="leave num_beams or do_sample out")
    unheeded = {*_ON_THE_HOST, *(_OF_DRAWS if draws else ()), *(_OF_PROMPTS if "encoder" not in package.graphs else ())}
    if lost := sorted(unheeded & settings.as_dict().keys()):
        raise ConversionError(
            f"the model's generation_config sets {lost[0]}, which a loop in the graph does not heed",
            hint="leave loop out, or change model.generation_config",
        )
    package = Package(
        {role: _at_default(model) for role, model in package.graphs.items()}, manifest, files=package.files
    )
    build = Builder("generate")
    given = _inputs(build, package)
    said, defaults = asked(build, settings, penalty=penalty or settings.repetition_penalty != 1, sample=draws)
    constants = dict(given)
    if "encoder" in package.graphs:
        constants |= build.splice(package.graphs["encoder"].ir, given)
    prompt, mask = _prompt(build, package, given)
    prefill = None if manifest.prompt_from else package.graphs.get("prefill")  # padding decides, for each prompt
    decoder = Decoder(package.graphs["decoder"], manifest, constants, prefill)
    loop = BeamLoop(decoder, said, num_beams) if num_beams > 1 else Greedy(decoder, said)
    new = loop(build, prompt, mask)
    result = typed(build.op("Concat", prompt, new, axis=1), np.int64, ["batch", "length"])
    result.name = SEQUENCES
    model = build.model([result])
    for name, value in defaults.items():
        model.graph.initializers[name] = value
    whole = Model(model) if opset in (None, DEFAULT) else convert_opset(Model(model), opset)
    whole.report = report
    kind = dataclasses.replace(
        manifest, kind="loop", settings=dataclasses.replace(settings, num_beams=num_beams, do_sample=draws)
    )
    return Package({"loop": whole}, kind, files=package.files, report=report)


_ON_THE_HOST = (
    "sequence_bias",
    "encoder_repetition_penalty",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
    "renormalize_logits",
    "num_return_sequences",
)
_OF_DRAWS = ("top_h", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")
_OF_PROMPTS = ("forced_bos_token_id", "min_length")
"""What depends on the length of a prompt; elsewhere it is the one token that decoding begins with."""


def _at_default(model: Model) -> Model:
    """A graph at the opset of the nodes that are written around it."""
    return model if model.opset == DEFAULT else convert_opset(model, DEFAULT)


def _inputs(build: Builder, package: Package) -> dict[str, ir.Value]:
    encoder = "encoder" in package.graphs
    known = encoder and package.settings.decoder_start_token_id is not None
    specs = (spec for name, spec in package.inputs.items() if not (known and name == package.manifest.tokens))
    found = {}
    for spec in specs:
        graph = next(each for each in package.graphs.values() if spec.name in {one.name for one in each.inputs})
        value = next(one for one in graph.ir.graph.inputs if one.name == spec.name)
        of_text = spec.name in (package.manifest.tokens, package.manifest.mask)
        shape = _prompt_shape(spec.shape) if of_text else spec.shape
        found[spec.name] = build.input(spec.name, value.dtype, shape)
    return found


def _prompt_shape(shape: tuple[int | str | None, ...] | None) -> tuple[int | str | None, ...] | None:
    return None if shape is None else (shape[0], "sequence")


def _prompt(build: Builder, package: Package, given: Mapping[str, ir.Value]) -> tuple[ir.Value, ir.Value]:
    manifest = package.manifest
    if manifest.tokens in given:
        prompt = given[manifest.tokens]
        if manifest.mask in given:
            return prompt, build.cast(given[manifest.mask], np.int64)
    else:
        start = package.settings.decoder_start_token_id
        rows = build.op("Shape", given[manifest.source], start=0, end=1)
        prompt = build.op("Expand", np.array([[start]]), build.op("Concat", rows, np.array([1]), axis=0))
    return prompt, build.op("Expand", np.array(1, np.int64), build.op("Shape", prompt))
