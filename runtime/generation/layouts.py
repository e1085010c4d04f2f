"""Folders that others read: the names of optimum and transformers.js, and the configuration of onnxruntime-genai."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.subgraphs import with_subgraphs
from entrepot.ir.typing.formula import Formula
from entrepot.runtime.generation.manifest import State
from entrepot.runtime.generation.merged import decoders, encoder_model

if TYPE_CHECKING:
    from entrepot.runtime.generation.package import Package

Layout = Literal["entrepot", "optimum", "genai"]
LAYOUTS: tuple[Layout, ...] = ("entrepot", "optimum", "genai")
_AXES_OF_ATTENTION = 4
_ROWS = "batch_size"
"""What transformers.js calls the axis of rows, by which it makes empty caches."""
_NO_LIMIT = 2**20
"""How many tokens genai is told there may be, where nothing says; it needs a number."""


def graphs_of(package: Package) -> dict[str, Model]:
    """The graphs of a package by the names of optimum's files, with its names of inputs and outputs.

    Raises:
        ConversionError: The layout has no place for what it is given.
    """
    if set(package.graphs) != {"encoder", "decoder"} or not package.manifest.states or package.manifest.capacity:
        return {"model": _rows_named(graph_of(package), package.manifest.tokens)}
    manifest = package.manifest
    inputs = {spec.name: spec for spec in package.graphs["decoder"].inputs}
    seen = tuple(State(name, "", inputs[name].shape or (), "") for name in manifest.constants)  # type: ignore[arg-type]
    names = _names(manifest.states, ".decoder") | _names(seen, ".encoder", grows=False)
    names |= {manifest.tokens: "input_ids", manifest.source_mask: "encoder_attention_mask"}
    found = decoders(package, names)
    for model in found.values():
        if manifest.first_scored:
            _score_all(model.ir.graph, manifest.first_scored)
    found = {role: _rows_named(model, "input_ids") for role, model in found.items()}
    return {"encoder_model": _rows_named(encoder_model(package), manifest.source), **found}


def data_file(role: str) -> str:
    """Where the weights of a graph are: beside it under its name, where readers look; those of all decoders in one."""
    return f"{'decoder_model_merged' if role.startswith('decoder') else role}.onnx_data"


def config_for_scripts(package: Package) -> bytes | None:
    """``config.json``, which tells transformers.js that weights are in files of their own; None if there is none."""
    config = _origin(package)
    told = {"transformers.js_config": {"use_external_data_format": True}}
    return json.dumps({**told, **config}, indent=1).encode() if config else None


def graph_of(package: Package) -> Model:
    """The one graph of a decoder, or of a model that does not generate, under the names of optimum.

    Raises:
        ConversionError: The layout has no place for what it is given.
    """
    if package.manifest.kind == "forward":
        return package.graphs["model"]
    if package.manifest.anew:
        raise ConversionError(
            f"after {package.manifest.anew} tokens the model reads all of them anew, unlike readers of this layout",
            hint="leave layout out",
        )
    if set(package.graphs) != {"decoder"} or not package.manifest.states:
        raise ConversionError(
            f"a package of {', '.join(package.graphs)} has no counterpart in this layout",
            hint="'optimum' is for caches of keys and values and models that do not generate, 'genai' for decoders",
        )
    model = package.graphs["decoder"].ir.clone()
    names = _names(package.manifest.states)
    for value in (*model.graph.inputs, *model.graph.outputs):
        value.name = names.get(value.name or "", value.name)
    if package.manifest.first_scored:
        _score_all(model.graph, package.manifest.first_scored)
    return Model(model)


def _rows_named(model: Model, first: str) -> Model:
    """A model whose axis of rows has the name that readers know: the first axis of what it is given first of all."""
    shape = next((value.shape for value in model.ir.graph.inputs if value.name == first), None)
    rows = shape[0].value if shape and isinstance(shape[0], ir.SymbolicDim) else None
    if not rows or rows == _ROWS:
        return model
    copy = model.ir.clone()
    for graph in with_subgraphs(copy.graph):
        for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
            if value.shape is not None:
                value.shape = ir.Shape([_renamed(dim, {rows: _ROWS}) for dim in value.shape])
    return Model(copy)


def _renamed(dim: int | ir.SymbolicDim, names: Mapping[str, str]) -> int | str | None:
    text = dim if isinstance(dim, int) else dim.value
    formula = Formula.of(text) if isinstance(text, str) else None
    return text if formula is None else formula.renamed(names).text


def _names(states: tuple[State, ...], of: str = "", *, grows: bool = True) -> dict[str, str]:
    """What states are called by number of layer and kind; keys and values of an encoder's results do not grow."""
    found: dict[str, str] = {}
    for number, pair in enumerate(zip(states[::2], states[1::2], strict=len(states) % 2 == 0)):
        for state, kind in zip(pair, ("key", "value"), strict=True):
            fits = len(state.shape) == _AXES_OF_ATTENTION and (state.shape[2] == 0 or not grows)
            if kind not in state.past.rpartition(".")[2] or not fits:
                raise ConversionError(f"'{state.past}' is no {kind} of an attention layer, which this layout asks for")
            found |= {state.past: f"past_key_values.{number}{of}.{kind}", state.present: f"present.{number}{of}.{kind}"}
    return found


def _score_all(graph: ir.Graph, name: str) -> None:
    """Compute the scores of all tokens: there is no input that says otherwise."""
    at = next(index for index, value in enumerate(graph.inputs) if value.name == name)
    value = graph.inputs[at]
    del graph.inputs[at]
    value.const_value = ir.tensor(np.zeros(1, np.int64), name=name)
    graph.register_initializer(value)


def genai_config(package: Package) -> bytes:
    """``genai_config.json``, as far as the package and its ``config.json`` tell.

    Raises:
        ConversionError: It is no decoder.
    """
    states, settings = package.manifest.states, package.settings
    if package.manifest.kind != "decoder" or not states:
        raise ConversionError(
            "genai's layout is for decoders", hint="layout='optimum' takes models that do not generate"
        )
    config = _config(package)
    inputs = {"input_ids": package.manifest.tokens, "attention_mask": package.manifest.mask}
    inputs |= {"position_ids": package.manifest.positions}
    pasts = {"past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"}
    presents = {"present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}
    heads = states[0].shape[1]
    decoder = {
        "session_options": {"provider_options": []},
        "filename": "model.onnx",
        "head_size": states[0].shape[3],
        "hidden_size": _first(config, "hidden_size", "n_embd", "d_model"),
        "num_attention_heads": _first(config, "num_attention_heads", "n_head", "num_heads") or heads,
        "num_hidden_layers": len(states) // 2,
        "num_key_value_heads": heads,
        "inputs": {name: value for name, value in inputs.items() if value} | pasts,
        "outputs": {"logits": package.manifest.logits} | presents,
    }
    model = {
        "type": "decoder",  # its readers know others by their names, whose graphs they expect to differ from this one
        "bos_token_id": config.get("bos_token_id"),
        "eos_token_id": list(settings.eos_token_id),
        "pad_token_id": settings.pad,
        "vocab_size": config.get("vocab_size"),
        "context_length": _first(config, "max_position_embeddings", "n_positions", "n_ctx") or _NO_LIMIT,
        "decoder": {name: value for name, value in decoder.items() if value is not None},
    }
    search = {name: getattr(settings, name) for name in _SEARCHED} | {"past_present_share_buffer": False}
    written = {"model": {name: value for name, value in model.items() if value is not None}, "search": search}
    return json.dumps(written, indent=1).encode()


_SEARCHED = ("do_sample", "num_beams", "temperature", "top_k", "top_p", "repetition_penalty", "length_penalty")


def _origin(package: Package) -> Mapping[str, Any]:
    origin = package.files.get("config.json")
    if origin is None:
        return {}
    found: Mapping[str, Any] = json.loads(origin if isinstance(origin, bytes) else Path(origin).read_bytes())
    return found


def _config(package: Package) -> Mapping[str, Any]:
    found = _origin(package)
    return found.get("text_config", found)


def _first(config: Mapping[str, Any], *names: str) -> Any:
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)
