"""Checkpoints in folders: a model from ``config.json`` and safetensors. No pickle is read, no code of theirs is run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from entrepot.exporters.torch.running.guard import quiet
from entrepot.ir.errors import MissingDependencyError, MissingFileError, ModelFormatError

CONFIG = "config.json"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_FAILURES = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError)
"""What transformers raises about a configuration or weights that do not fit."""

_DESCRIPTIVE = (".json", ".txt", ".model", ".spm", ".tiktoken", ".jinja", ".vocab", ".bpe")
"""How files end that say how to read and write text, pictures and sound."""


def opened(path: str | os.PathLike[str]) -> torch.nn.Module:
    """The model of a checkpoint, in float32.

    Raises:
        MissingFileError: There is no such folder, or a file of it is missing.
        ModelFormatError: It is not complete, or of a kind that cannot be read without running code of its own.
        MissingDependencyError: transformers is not installed.
    """
    folder = Path(path)
    described = _described(folder)
    _check_weights(folder)
    cls = _class_of(described, folder)
    from safetensors import SafetensorError

    with quiet():
        try:
            model, found = cls.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                dtype=torch.float32,
            )
        except (SafetensorError, *_FAILURES) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelFormatError(f"{cls.__name__} cannot be made of it: {first}", path=folder) from error
    _check_complete(found, cls, folder)
    result: torch.nn.Module = model.eval()
    return result


def files_of(path: str | os.PathLike[str]) -> dict[str, Path]:
    """What belongs to a model beside its weights, by name: files of its tokenizer and processor, its configuration."""
    return {
        each.name: each
        for each in sorted(Path(path).iterdir())
        if each.is_file() and each.suffix in _DESCRIPTIVE and not each.name.endswith(".index.json")
        if not each.name.startswith(".") and each.name != "entrepot.json"
    }


def _described(folder: Path) -> Mapping[str, Any]:
    if not os.path.isdir(folder):  # names that are too long are no folders either
        raise MissingFileError(f"folder '{folder}' does not exist", path=folder)
    if not (folder / CONFIG).is_file():
        raise MissingFileError(
            f"the folder has no {CONFIG}", path=folder, hint="save a checkpoint with model.save_pretrained(folder)"
        )
    try:
        described = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"it is not JSON: {error}", path=folder / CONFIG) from error
    if not isinstance(described, dict):
        raise ModelFormatError("it is not a JSON object", path=folder / CONFIG)
    if described.get("quantization_config"):
        raise ModelFormatError(
            "its weights are quantized in a way of its own", path=folder, hint="export the model before quantization"
        )
    return described


def _check_weights(folder: Path) -> None:
    names = [each.name for each in folder.iterdir()]
    if any(name.endswith(".safetensors") for name in names):
        return
    pickled = sorted(name for name in names if name.endswith(_PICKLED))
    if pickled:
        raise ModelFormatError(
            f"'{pickled[0]}' is a pickle, which may run code when it is read",
            path=folder,
            hint="save the checkpoint with model.save_pretrained(folder), which writes safetensors",
        )
    raise MissingFileError("the folder has no weights (*.safetensors)", path=folder)


def _class_of(described: Mapping[str, Any], folder: Path) -> Any:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "transformers is needed to read a checkpoint", hint="pip install transformers"
        ) from error
    named = described.get("architectures")
    names = named if isinstance(named, list) and named else []
    found = (getattr(transformers, name, None) for name in names if isinstance(name, str))
    classes = (each for each in found if isinstance(each, type) and issubclass(each, transformers.PreTrainedModel))
    chosen = next(classes, None)
    if chosen is not None:
        return chosen
    if not names:
        raise ModelFormatError(
            "config.json names no architectures", path=folder, hint="give the model itself to ep.export_transformer"
        )
    own = "auto_map" in described
    raise ModelFormatError(
        f"transformers {transformers.__version__} has no model {names[0]!r}",
        path=folder,
        hint="its code is in the folder, and is not run: build the model yourself, and give it to ep.export_transformer"
        if own
        else "another version of transformers may have it",
    )


def _check_complete(found: Mapping[str, Any], cls: type, folder: Path) -> None:
    missing = sorted(found.get("missing_keys") or ())
    if missing:
        raise ModelFormatError(
            f"{len(missing)} weights of {cls.__name__} are not in the checkpoint, such as '{missing[0]}'", path=folder
        )
    others = sorted(str(each) for each in found.get("mismatched_keys") or ())
    if others:
        raise ModelFormatError(f"weights have other shapes than config.json says: {others[0]}", path=folder)


def described_by(model: torch.nn.Module) -> dict[str, bytes]:
    """The configuration of a model of transformers, as files by name."""
    found: dict[str, bytes] = {}
    for name, config in ((CONFIG, "config"), ("generation_config.json", "generation_config")):
        text = getattr(getattr(model, config, None), "to_json_string", None)
        if text is not None:
            found[name] = str(text()).encode()
    return found
