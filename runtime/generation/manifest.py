"""What a package says of itself: its graphs, the state that goes round between them, and how it generates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from entrepot.ir.arguments import as_choice, as_integer, as_kind, expected
from entrepot.ir.errors import InputError, ModelFormatError
from entrepot.runtime.generation.settings import Settings

FORMAT = 1
"""The version of ``entrepot.json``."""

Kind = Literal["forward", "decoder", "encoder-decoder", "loop"]


@dataclass(frozen=True)
class State:
    """A tensor that a decoder takes and returns.

    Attributes:
        past: The input.
        present: The output, which is the next step's input.
        shape: Its shape before the first step; the batch axis is -1.
        dtype: Its element type.
    """

    past: str
    present: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def batch(self) -> int:
        """Which axis is the batch's."""
        return self.shape.index(-1)


@dataclass(frozen=True)
class Manifest:
    """A package without its graphs.

    Attributes:
        kind: ``"forward"``: one graph, run once. ``"decoder"``: tokens in, logits out, with a state.
            ``"encoder-decoder"``: the same after an encoder. ``"loop"``: one graph that generates by itself.
        tokens: The decoder's input for tokens.
        logits: Its output for their scores.
        mask: Its input that says which tokens count, if it has one.
        mask_of: Whether the mask is about all tokens so far or about new ones.
        source: What an encoder is given first of all, and how many rows there are.
        source_mask: The input that says which of it counts, if there is one; all of it, unless it is given.
        positions: Its input for the places of tokens, if it has one.
        first_scored: Its input that says from which of the new tokens on there are scores, if it has one; negative
            numbers count from the end.
        states: What goes from one step to the next; none if every step is given all tokens.
        capacity: How many tokens states have room for, where they are written in place; 0 if they grow.
        past_length: The input that says how many tokens there are in such states.
        anew: After how many tokens the states begin anew, from all tokens so far, as the model asks for; 0 for never.
        constants: Outputs of the encoder that the decoder takes at every step, with their batch axes.
        step: The most tokens that the decoder takes at once; 0 for any number. The prompt goes through ``prefill``
            where there is such a graph.
        prompt_from: From how many tokens on a prompt without padding behind a token goes through ``prefill``, where the
            decoder takes shorter ones, one token after the other; 0 if all go through it.
        settings: How it generates unless a call says otherwise.
        notes: What a user should know.
        versions: What it was made with.
    """

    kind: Kind = "forward"
    tokens: str = "input_ids"
    logits: str = "logits"
    mask: str = ""
    mask_of: Literal["all", "new"] = "all"
    source: str = ""
    source_mask: str = ""
    positions: str = ""
    first_scored: str = ""
    states: tuple[State, ...] = ()
    capacity: int = 0
    past_length: str = ""
    anew: int = 0
    constants: Mapping[str, int] = field(default_factory=dict)
    step: int = 0
    prompt_from: int = 0
    settings: Settings = field(default_factory=Settings)
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        mine = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        states = [dataclasses.asdict(state) for state in self.states]
        return mine | {"states": states, "settings": self.settings.as_dict()}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Manifest:
        """From a file.

        Raises:
            ModelFormatError: It does not say what a package has to say.
        """
        try:
            known = as_mapping(described, "the description")
            return cls(**{each.name: _READERS[each.name](known[each.name], each.name) for each in _given(cls, known)})
        except InputError as error:
            raise ModelFormatError(f"it is no description of a package: {error.message}") from error


def _given(cls: type[Any], known: Mapping[str, Any]) -> list[dataclasses.Field[Any]]:
    return [each for each in dataclasses.fields(cls) if each.name in known]


def as_mapping(given: Any, what: str) -> Mapping[str, Any]:
    """A mapping from names.

    Raises:
        InputError: It is something else.
    """
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return given
    raise expected(what, "a mapping from names", given)


def _items(given: Any, what: str) -> list[Any]:
    if isinstance(given, list | tuple):
        return list(given)
    raise expected(what, "a list", given)


def _text(given: Any, what: str) -> str:
    return as_kind(given, str, what)


def _texts(given: Any, what: str) -> tuple[str, ...]:
    return tuple(_text(each, f"an entry of {what}") for each in _items(given, what))


def _count(given: Any, what: str) -> int:
    return as_integer(given, what, least=0)


def _axes(given: Any, what: str) -> Mapping[str, int]:
    return {name: _count(axis, f"{what}['{name}']") for name, axis in as_mapping(given, what).items()}


def _versions(given: Any, what: str) -> Mapping[str, str]:
    return {name: _text(each, f"{what}['{name}']") for name, each in as_mapping(given, what).items()}


def _state(given: Any, what: str) -> State:
    known = as_mapping(given, what)
    missing = [each.name for each in dataclasses.fields(State) if each.name not in known]
    if missing:
        raise InputError(f"{what} has no {missing[0]}")
    shape = tuple(as_integer(size, f"a size of {what}", least=-1) for size in _items(known["shape"], "a shape"))
    if shape.count(-1) != 1:
        raise InputError(f"the shape of {what} is {shape}, expected one axis of the batch, -1")
    dtype = _text(known["dtype"], f"the type of {what}")
    if dtype not in TYPES:
        raise InputError(f"the type of {what} is {dtype!r}, expected {', '.join(TYPES)}")
    return State(_text(known["past"], f"past of {what}"), _text(known["present"], f"present of {what}"), shape, dtype)


def _states(given: Any, what: str) -> tuple[State, ...]:
    return tuple(_state(each, f"{what}[{at}]") for at, each in enumerate(_items(given, what)))


TYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
"""The element types of states."""

_READERS: dict[str, Callable[[Any, str], Any]] = {
    "kind": lambda given, what: as_choice(given, ("forward", "decoder", "encoder-decoder", "loop"), what),
    "mask_of": lambda given, what: as_choice(given, ("all", "new"), what),
    "capacity": _count,
    "anew": _count,
    "step": _count,
    "prompt_from": _count,
    "constants": _axes,
    "states": _states,
    "settings": lambda given, _: Settings.of(as_mapping(given, "settings")),
    "notes": _texts,
    "versions": _versions,
} | dict.fromkeys(
    ("tokens", "logits", "mask", "source", "source_mask", "positions", "first_scored", "past_length"), _text
)
