"""What a caller of a generating graph says, as its inputs, and what that does to scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.transformers.in_graph.draw import Draw, draw_inputs
from entrepot.exporters.transformers.in_graph.words import NEVER, penalised, without_repeats, without_words
from entrepot.runtime.generation.readers import Words
from entrepot.runtime.generation.settings import Settings, padded_ends


@dataclass(frozen=True)
class Asked:
    """Inputs of a graph that generates; each has a default.

    Attributes:
        most: ``max_new_tokens``.
        least: ``min_new_tokens``.
        ends: ``eos_token_id``, as many as ``ENDS``; -1 stands for none.
        pad: ``pad_token_id``.
        settings: Of the package: tokens that are forbidden stay so.
        penalty: ``repetition_penalty``; ``None`` for a graph that heeds none.
        draw: How tokens are drawn; ``None`` for the most likely ones.
    """

    most: ir.Value
    least: ir.Value
    ends: ir.Value
    pad: ir.Value
    settings: Settings
    penalty: ir.Value | None = None
    draw: Draw | None = None

    @property
    def looks_back(self) -> bool:
        """Whether scores depend on the tokens so far."""
        return self.penalty is not None or bool(self.settings.no_repeat_ngram_size or self.runs)

    @property
    def runs(self) -> Words:
        """The words of several tokens that may not occur."""
        return tuple(word for word in self.settings.bad_words_ids if len(word) > 1)


def asked(build: Builder, settings: Settings, *, penalty: bool, sample: bool) -> tuple[Asked, dict[str, ir.Value]]:
    """Inputs with the settings for defaults, and these by name."""
    defaults = {
        "max_new_tokens": np.array(settings.max_new_tokens or settings.most(1), np.int64),
        "min_new_tokens": np.array(settings.least(1), np.int64),
        "eos_token_id": padded_ends(settings.eos_token_id),
        "pad_token_id": np.array(settings.pad, np.int64),
    }
    if penalty:
        defaults["repetition_penalty"] = np.array(settings.repetition_penalty, np.float32)
    drawing = draw_inputs(settings) if sample else {}
    defaults |= drawing
    made = {name: build.input(name, value.dtype, value.shape) for name, value in defaults.items()}
    for name, value in defaults.items():
        made[name].const_value = ir.tensor(value, name=name)
    most, least, ends, pad = (made[name] for name in list(defaults)[:4])
    draw = Draw(**{name: made[name] for name in drawing}) if sample else None
    return Asked(most, least, ends, pad, settings, made.get("repetition_penalty"), draw), made


def among(build: Builder, tokens: ir.Value, ends: ir.Value) -> ir.Value:
    """Which tokens are one of some, an empty list of which none is."""
    last = build.op("Unsqueeze", tokens, np.array([-1]))
    same = build.cast(build.op("Equal", last, ends), np.int32)
    return build.cast(build.op("ReduceSum", same, np.array([-1]), keepdims=0), np.bool_)


def adjusted(
    build: Builder, what: Asked, scores: ir.Value, turn: ir.Value, history: ir.Value | None, mask: ir.Value
) -> ir.Value:
    """Scores of shape ``(rows, vocabulary)`` with everything applied that was asked for."""
    if history is not None:
        scores = _by_words(build, what, scores, history, mask)
    size = build.op("Shape", scores, start=1, end=2)
    every = build.op("Range", np.array(0, np.int64), build.op("Squeeze", size), np.array(1, np.int64))
    every = typed(every, np.int64, None)
    if single := [word[0] for word in what.settings.bad_words_ids if len(word) == 1]:
        no_end = build.op("Not", among(build, every, what.ends))  # which transformers does not forbid so
        scores = _without(build, scores, build.op("And", among(build, every, build.constant(single)), no_end))
    early = build.op("Less", turn, what.least)
    scores = _without(build, scores, build.op("And", among(build, every, what.ends), early))
    return _settled(build, what, scores, turn, every)


def _by_words(build: Builder, what: Asked, scores: ir.Value, history: ir.Value, mask: ir.Value) -> ir.Value:
    """What depends on the tokens that occurred."""
    if what.penalty is not None:
        scores = penalised(build, scores, history, mask, what.penalty)
    if what.settings.no_repeat_ngram_size:
        scores = without_repeats(build, scores, history, what.settings.no_repeat_ngram_size)
    return without_words(build, scores, history, what.runs)


def _settled(build: Builder, what: Asked, scores: ir.Value, turn: ir.Value, every: ir.Value) -> ir.Value:
    """What the settings of the package force and forbid, in the order in which the host does it."""
    settings = what.settings
    first = () if settings.forced_bos_token_id is None else (settings.forced_bos_token_id,)
    for tokens, when in ((first, 0), (settings.forced_eos_token_id, build.op("Sub", what.most, 1))):
        if tokens:
            others = build.op("Not", among(build, every, build.constant(list(tokens))))
            only = build.op("Where", others, NEVER, np.array(0, np.float32))
            scores = build.op("Where", build.op("Equal", turn, when), only, scores)
    if settings.suppress_tokens:
        scores = _without(build, scores, among(build, every, build.constant(list(settings.suppress_tokens))))
    if settings.begin_suppress_tokens:
        listed = among(build, every, build.constant(list(settings.begin_suppress_tokens)))
        scores = _without(build, scores, build.op("And", listed, build.op("Equal", turn, len(first))))
    return typed(scores, np.float32, None)


def _without(build: Builder, scores: ir.Value, forbidden: ir.Value) -> ir.Value:
    return typed(build.op("Where", forbidden, NEVER, scores), np.float32, None)
