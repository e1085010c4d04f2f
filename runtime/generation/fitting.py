"""Whether graphs are those that a description of a package speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from entrepot.ir.errors import ModelFormatError
from entrepot.ir.model import Model, ValueSpec
from entrepot.runtime.generation.manifest import Manifest, State

_ROLES = {
    "forward": ({"model"}, {"model"}),
    "loop": ({"loop"}, {"loop"}),
    "decoder": ({"decoder"}, {"decoder", "prefill", "encoder"}),
    "encoder-decoder": ({"decoder"}, {"decoder", "prefill", "encoder"}),
}
"""The graphs that a kind of package has, and those that it may have."""


def check_fits(manifest: Manifest, graphs: Mapping[str, Model]) -> None:
    """Refuse a description of other graphs: what it names would be looked for while tokens are generated.

    Raises:
        ModelFormatError: A graph is missing or too many, or has no input or output of a name, type or size.
    """
    least, most = _ROLES[manifest.kind]
    if not least <= graphs.keys() <= most:
        raise ModelFormatError(
            f"graphs are {', '.join(graphs) or 'none'}, kind '{manifest.kind}' has {', '.join(most)}"
        )
    if "decoder" not in graphs:
        return
    decoder = graphs["decoder"]
    takes, gives = ({spec.name: spec for spec in specs} for specs in (decoder.inputs, decoder.outputs))
    named = (manifest.mask, manifest.positions, manifest.first_scored, manifest.past_length, *manifest.constants)
    pasts, presents = ([getattr(state, name) for state in manifest.states] for name in ("past", "present"))
    inputs = [manifest.tokens, *(name for name in named if name), *pasts]
    _check_names(inputs, takes, "input")
    _check_names([manifest.logits, *presents], gives, "output")
    _check_told(manifest, graphs, takes.keys() - inputs)
    for state in manifest.states:
        _check_state(state, takes[state.past])
    _check_widths(manifest, takes)


def _check_told(manifest: Manifest, graphs: Mapping[str, Model], others: Iterable[str]) -> None:
    """Refuse inputs of the decoder that nobody would give, and sources that there are not."""
    elsewhere = {spec.name for role, model in graphs.items() if role != "decoder" for spec in model.inputs}
    lost = sorted(others) if not elsewhere else []
    if lost:
        raise ModelFormatError(f"the decoder takes '{lost[0]}', and nothing says what that is")
    for name in filter(None, (manifest.source, manifest.source_mask)):
        if name not in elsewhere | {*others, manifest.tokens}:
            raise ModelFormatError(f"no graph takes '{name}'")


def _check_widths(manifest: Manifest, takes: Mapping[str, ValueSpec]) -> None:
    """Refuse a mask of other tokens than the decoder is given one for, and room that its cache does not have."""
    if bool(manifest.capacity) != bool(manifest.past_length):
        raise ModelFormatError(f"capacity is {manifest.capacity}, past_length is '{manifest.past_length}'")
    new = _width(takes[manifest.tokens])
    if new == 1 and manifest.step != 1:
        raise ModelFormatError(f"step is {manifest.step}, the decoder takes one token at a time")
    if not (manifest.mask and manifest.states):
        return
    width = _width(takes[manifest.mask])
    if manifest.capacity and isinstance(width, int) and manifest.mask_of == "all" and width != manifest.capacity:
        raise ModelFormatError(f"capacity is {manifest.capacity}, the mask has {width} places")
    if new is not None and width is not None and (width == new) != (manifest.mask_of == "new"):
        raise ModelFormatError(
            f"mask_of is '{manifest.mask_of}', the mask has {width} places where there are {new} new tokens"
        )


def _width(spec: ValueSpec) -> int | str | None:
    """How many tokens an input is about: a number, or what that is called."""
    return spec.shape[1] if spec.shape is not None and len(spec.shape) > 1 else None


def _check_names(names: list[str], known: Iterable[str], what: str) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        raise ModelFormatError(f"the decoder has no {what} '{missing[0]}'", hint=f"it has {', '.join(known)}")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ModelFormatError(f"{what} '{twice[0]}' of the decoder stands for two things")


def _check_state(state: State, spec: ValueSpec) -> None:
    if spec.dtype is not None and state.dtype != spec.dtype:
        raise ModelFormatError(f"state '{state.past}' is {state.dtype}, the decoder takes {spec.dtype}")
    if spec.shape is None:
        return
    same = len(state.shape) == len(spec.shape) and all(
        size == dim if isinstance(dim, int) else size <= _MOST
        for size, dim in zip(state.shape, spec.shape, strict=True)
    )
    if not same:
        raise ModelFormatError(f"state '{state.past}' has shape {state.shape}, the decoder takes {spec.shape}")


_MOST = 1 << 20
"""Tokens that a state may have before the first one."""
