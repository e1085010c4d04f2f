"""How tokens are chosen and when to stop: the defaults of a package, and what a call says instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from entrepot.ir.arguments import as_integer, expected
from entrepot.ir.errors import InputError
from entrepot.runtime.generation.readers import READERS, Biases, Words, read


@dataclass(frozen=True)
class Settings:
    """Everything that a call of ``generate`` may choose; names and meanings are those of ``generation_config.json``.

    Attributes:
        max_new_tokens: The most tokens per row; ``None`` for what ``max_length`` leaves, else 20.
        max_length: The same with the prompt counted.
        min_new_tokens: No row ends before it has as many.
        min_length: The same with the prompt counted.
        num_beams: Sequences that are followed side by side; 1 for a greedy choice, or a sample.
        num_return_sequences: How many sequences there are for each prompt: the best beams, or as many samples.
        do_sample: Draw tokens instead of taking the most likely ones.
        temperature: What logits are divided by before a token is drawn.
        top_k: How many of the most likely tokens may be drawn; 0 for all.
        top_p: The least probability that the tokens which may be drawn have together.
        top_h: The share of the entropy of the most likely tokens that those which may be drawn have; 1 for all.
        min_p: The least probability of a token that may be drawn, as a share of the largest one.
        typical_p: The least probability that the most typical tokens, which may be drawn, have together.
        epsilon_cutoff: The least probability of a token that may be drawn.
        eta_cutoff: The same, lower where many tokens are likely.
        seed: Where random numbers start; ``None`` for anywhere.
        repetition_penalty: What the scores of tokens that occurred are divided by.
        encoder_repetition_penalty: What the scores of tokens of the encoder's text or of the prompt are multiplied by.
        no_repeat_ngram_size: The length of runs of tokens that may occur once only; 0 for none.
        encoder_no_repeat_ngram_size: The length of runs of tokens of the encoder's text, or of the prompt, that may not
            occur again.
        bad_words_ids: Runs of tokens that may not occur.
        sequence_bias: What is added to the score of the last token of a run, by run.
        eos_token_id: Tokens that end a row.
        pad_token_id: What fills rows that have ended; ``None`` for the first that ends one.
        length_penalty: The power of its length by which the score of a beam is divided.
        early_stopping: Whether beams end as soon as there are enough finished ones; ``"never"`` looks furthest.
        forced_bos_token_id: The first new token.
        forced_eos_token_id: The last token, where ``max_length`` is reached.
        suppress_tokens: Tokens that are never chosen.
        begin_suppress_tokens: Tokens that are not chosen first.
        exponential_decay_length_penalty: After how many new tokens the end of a row gets more likely, and by which
            factor with each token.
        remove_invalid_values: Whether scores that are no numbers are replaced.
        renormalize_logits: Whether scores are logarithms of probabilities again, after all of this.
        decoder_start_token_id: What decoders of encoder-decoders begin with.
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int | None = None
    min_length: int = 0
    num_beams: int = 1
    num_return_sequences: int = 1
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    top_h: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    seed: int | None = None
    repetition_penalty: float = 1.0
    encoder_repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    encoder_no_repeat_ngram_size: int = 0
    bad_words_ids: Words = ()
    sequence_bias: Biases = ()
    eos_token_id: tuple[int, ...] = ()
    pad_token_id: int | None = None
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    forced_bos_token_id: int | None = None
    forced_eos_token_id: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    begin_suppress_tokens: tuple[int, ...] = ()
    exponential_decay_length_penalty: tuple[int, float] | None = None
    remove_invalid_values: bool = False
    renormalize_logits: bool = False
    decoder_start_token_id: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Settings:
        """Settings by name; ``None`` stands for the default.

        Raises:
            InputError: There is no such setting, or it cannot have this value.
        """
        return cls().changed(given)

    def changed(self, given: Mapping[str, Any] | None) -> Settings:
        """The same settings with some of them replaced; what is ``None`` stays.

        Raises:
            InputError: There is no such setting, or it cannot have this value.
        """
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise expected("settings", "a mapping from names to values", given)
        unknown = [name for name in given if name not in READERS]
        if unknown:
            raise InputError(
                f"generate has no setting '{unknown[0]}'", hint=f"it has {', '.join(READERS)}, and the model's inputs"
            )
        new: dict[str, Any] = {name: read(value, name) for name, value in given.items() if value is not None}
        if new.get("max_new_tokens") is not None:
            new.setdefault("max_length", None)
        return _checked(dataclasses.replace(self, **new))

    @property
    def pad(self) -> int:
        """What fills rows that have ended."""
        if self.pad_token_id is not None:
            return self.pad_token_id
        return self.eos_token_id[0] if self.eos_token_id else 0

    def most(self, prompt: int) -> int:
        """The most new tokens after a prompt of some length."""
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        if self.max_length is None:
            return 20
        return max(self.max_length - as_integer(prompt, "prompt", least=0), 0)

    def least(self, prompt: int) -> int:
        """The fewest new tokens after a prompt of some length."""
        if self.min_new_tokens is not None:
            return self.min_new_tokens
        return max(self.min_length - as_integer(prompt, "prompt", least=0), 0)

    def as_dict(self) -> dict[str, Any]:
        """The settings that are not at their defaults, for a file."""
        default = Settings()
        mine = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in mine.items()
            if value != getattr(default, name)
        }


def _checked(settings: Settings) -> Settings:
    """The settings, if they do not contradict each other; transformers refuses the same.

    Raises:
        InputError: No token is left, or there are not as many sequences.
    """
    begins = () if settings.forced_bos_token_id is None else (settings.forced_bos_token_id,)
    for name, forced in (("forced_bos_token_id", begins), ("forced_eos_token_id", settings.forced_eos_token_id)):
        if forced and {*forced} <= {*settings.suppress_tokens}:
            raise InputError(f"suppress_tokens has {name}, so no token is left", hint="leave one of them out")
    several = settings.num_return_sequences
    if several > settings.num_beams and (settings.num_beams > 1 or not settings.do_sample):
        raise InputError(
            f"num_return_sequences is {several}, there is no more than {settings.num_beams} for each prompt",
            hint="raise num_beams, or draw tokens with do_sample",
        )
    return settings


ENDS = 8
"""How many tokens that end a row a loop in a graph takes: an input with a default has one size."""


def padded_ends(tokens: Sequence[int]) -> np.ndarray[Any, Any]:
    """Tokens that end a row, as a loop in a graph takes them.

    Raises:
        InputError: There are too many.
    """
    if len(tokens) > ENDS:
        raise InputError(f"eos_token_id has {len(tokens)} tokens, a loop in the graph takes {ENDS}")
    return np.array([*tokens, *[-1] * (ENDS - len(tokens))], np.int64)


SETTINGS = frozenset(READERS)
"""Their names."""
