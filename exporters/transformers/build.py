"""The graphs of a package: each part of a model, exported by the pipeline that exports everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from entrepot.exporters import pipeline
from entrepot.exporters.options import Dynamic, Options
from entrepot.exporters.torch.sources.module import ModuleSource
from entrepot.exporters.transformers.caches import Part
from entrepot.exporters.transformers.fixed import PAST_LENGTH
from entrepot.exporters.transformers.guesses import Inputs, tokens
from entrepot.exporters.transformers.parts import HIDDEN, Encoder, First, Step
from entrepot.exporters.transformers.roles import Roles
from entrepot.exporters.transformers.stepwise import takes_less_for_one
from entrepot.exporters.transformers.trials import Form, Trials
from entrepot.exporters.transformers.trimmed import with_outputs, without_unread
from entrepot.exporters.transformers.upstream import asks_for, generation_defaults, versions
from entrepot.exporters.ways import FAILURES
from entrepot.ir.errors import ConversionError, EntrepotError
from entrepot.ir.model import Model
from entrepot.runtime.generation.manifest import Manifest, State
from entrepot.runtime.generation.settings import SETTINGS, Settings

Tell = Callable[[str], None]
Axes = dict[int, str]


@dataclass
class Building:
    """What is exported, and how.

    Attributes:
        trials: The model with its sample.
        form: How its decoder is called.
        options: What every graph is exported with.
        why: Why a better form could not be taken.
        encoders: What came of exporting encoders for other forms, by what decoders need of them.
    """

    trials: Trials
    form: Form
    options: Options
    why: EntrepotError | None = None
    encoders: dict[Any, Model | EntrepotError] = field(default_factory=dict)

    @property
    def _roles(self) -> Roles:
        return self.trials.called.roles

    def graphs(self) -> dict[str, Model]:
        """Every graph by its role; the decoder, which asks more of a model than a prompt does, is made before that."""
        found = {}
        if self._roles.has_encoder:
            found["encoder"] = self._encoder()
        decoder = self._decoder(found.get("encoder"))
        if self.form.prefill:
            found["prefill"] = self._prefill()
        found["decoder"] = decoder
        if self._begins_singly:
            found |= self._prompt_at_once()
        return self._trimmed(found) if self._roles.encoder else found

    def _trimmed(self, graphs: dict[str, Model]) -> dict[str, Model]:
        """The graphs where what a decoder does not read of its source is no input of it."""
        parts = self.form.layout.parts if self.form.layout is not None else ()
        passed = {*self.trials.others, *(part.past for part in parts if part.fixed)}
        found = {role: without_unread(model, passed) for role, model in graphs.items() if role != "encoder"}
        read = {spec.name for model in found.values() for spec in model.inputs}
        encoder = with_outputs(graphs["encoder"], read)
        return ({"encoder": encoder} if encoder.outputs else {}) | found

    def _encoder(self) -> Model:
        """The encoder, which is the same for all forms that need the same of it."""
        form, trials = self.form, self.trials
        hidden = form.hidden is not None and form.hidden.needed
        needed = hidden, () if form.layout is None else tuple(part.past for part in form.layout.parts if part.fixed)
        if needed not in self.encoders:
            part = Encoder(trials.called, form.layout, hidden=hidden)
            try:
                self.encoders[needed] = self._export("the encoder", part, trials.others, _of_source(trials.others))
            except FAILURES as error:
                self.encoders[needed] = error
        found = self.encoders[needed]
        if isinstance(found, EntrepotError):
            raise found
        return found

    @property
    def _begins_singly(self) -> bool:
        """Whether a prompt goes token by token, as the model has it after a cache; before any, it takes more."""
        return self.form.new == 1 and not self.form.bare and not self.form.prefill and not self._roles.has_encoder

    def _prompt_at_once(self) -> dict[str, Model]:
        """The graph of whole prompts, beside a decoder that takes them token by token; none if it cannot be captured.

        It is made with its loops rewritten, as hardly any model without loops over tokens takes them one at a time.
        """
        given, axes = self._prompt()
        source = ModuleSource(First(self.trials.called, self.form.layout).eval(), dict(given))
        source.ways, source.sized, source.last = source.ways[1:2], [], []
        self.options.tell("exporting the prompt")
        try:
            options = replace(self.options, dynamic_shapes=_of_several(axes), endless=frozenset((_TOKENS,)))
            found = pipeline.export(source, options)
        except FAILURES as error:
            self.options.tell(f"prompts go token by token: {error.message.splitlines()[0]}")
            return {}
        return {"prefill": found} if prompt_from(found) else {}

    def _prefill(self) -> Model:
        given, axes = self._prompt()
        return self._export("the prompt", First(self.trials.called, self.form.layout), given, axes)

    def _prompt(self) -> tuple[Inputs, dict[str, Axes]]:
        """A prompt with all that is given with it, and the axes that vary."""
        form, trials = self.form, self.trials
        mask = trials.mask(trials.prompt, left=True)
        given = trials.step_inputs(replace(form, capacity=0), mask[:, :0], trials.prompt, mask) | trials.others
        axes = self._axes(given)
        for name, value in trials.others.items():  # what belongs to the text is as many rows, of a size of its own
            axes[name] = {0: "batch"} if len(value) == len(trials.prompt) else {}
        varying = _of_source(trials.others)
        if self._roles.has_encoder and isinstance(varying, dict):
            axes |= varying
        return given, axes

    def _decoder(self, encoder: Model | None) -> Model:
        form, trials = self.form, self.trials
        mask = trials.mask(trials.prompt, left=bool(form.mask_of))
        part = Step(trials.called, form.layout, form.hidden)
        if form.bare:
            given = trials.step_inputs(form, mask[:, :0], trials.prompt, mask) | trials.encoder_sample(form)
            return self._export("the decoder", part, given, self._axes(given) | self._encoded(encoder, given))
        more = tokens(trials.called.model, len(trials.prompt), form.new, seed=6)
        given = trials.step_sample(form, mask, more)
        axes = self._axes(given) | self._encoded(encoder, given)
        return self._export("the decoder", part, given, axes, from_one=frozenset(("sequence",)))  # each step takes one

    def _axes(self, given: Inputs) -> dict[str, Axes]:
        """The axes that vary, by input."""
        form, roles = self.form, self._roles
        past = form.layout is not None and any(part.past in given for part in form.layout.states)
        several = form.new > 1 or not past
        new: Axes = {0: "batch"} | ({1: "sequence"} if several else {})
        whole: Axes = {0: "batch", 1: self._length(several=several) if past else "sequence"}
        found = {roles.tokens: new}
        if roles.mask in given:
            found[roles.mask] = new if form.mask_of == "new" else {0: "batch"} if PAST_LENGTH in given else whole
        if roles.positions in given:
            found[roles.positions] = new
        for part in form.layout.states if form.layout is not None else ():
            if part.past in given:
                found[part.past] = self._of_part(part)
        return found

    def _length(self, *, several: bool) -> str:
        """What the number of all tokens is called; a cache in which nothing grows does not say how many came before."""
        if self.form.layout is not None and not self.form.layout.grows:
            return "tokens"
        return "past + sequence" if several else "past + 1"

    def _of_part(self, part: Part) -> Axes:
        axes = {part.batch: "batch"}
        if part.growing is not None and not self.form.capacity:
            more = part.shape[part.growing] - self.trials.prompt.shape[1]
            axes[part.growing] = "past" if more == 0 else f"past + {more}" if more > 0 else f"past - {-more}"
        return axes

    def _encoded(self, encoder: Model | None, given: Inputs) -> dict[str, Axes]:
        """The axes of what an encoder leaves, which vary where its graph says so."""
        if encoder is None:
            return {}
        found: dict[str, Axes] = {}
        for spec in encoder.outputs:
            if spec.name in given and spec.shape is not None:
                symbols = {axis: dim for axis, dim in enumerate(spec.shape) if not isinstance(dim, int)}
                found[spec.name] = {axis: self._source(axis, spec.name) for axis in symbols}
        lengths = {given[name].shape[axis] for name, axes in found.items() for axis in axes if axes[axis] == "source"}
        for name in self.trials.others.keys() & given.keys():
            same = given[name].dim() > 1 and given[name].shape[1] in lengths
            found[name] = {0: "batch"} | ({1: "source"} if same else {})
        return found

    def _source(self, axis: int, name: str) -> str:
        layout = self.form.layout
        batch = (
            0 if name == HIDDEN or layout is None else next(part.batch for part in layout.parts if part.past == name)
        )
        return "batch" if axis == batch else "source"

    def _export(
        self,
        what: str,
        part: torch.nn.Module,
        given: Mapping[str, Any],
        dynamic: Dynamic,
        from_one: frozenset[str] = frozenset(),
    ) -> Model:
        self.options.tell(f"exporting {what}")
        options = replace(self.options, dynamic=dynamic, bounded=True, from_one=from_one)
        source = ModuleSource(part.eval(), dict(given))
        if self._recurs and self.form.new > 1:
            # taken one at a time, tokens need no way that costs more, but where they cannot be captured at all
            plain, rewritten, *_ = source.ways
            source.ways, source.last = [plain], [rewritten, *source.last]
            if from_one and takes_less_for_one(self.trials, self.form):  # a branch on that is kept as one
                source.ways, source.last = [rewritten, plain], [*source.last[1:]]
        return pipeline.export(source, options)

    @property
    def _recurs(self) -> bool:
        """Whether a state is carried from token to token, beside those that get longer, if there are any."""
        layout = self.form.layout
        return layout is not None and any(part.growing is None for part in layout.states)

    def manifest(self, graphs: Mapping[str, Model]) -> Manifest:
        """How the graphs fit together."""
        form, roles, trials = self.form, self._roles, self.trials
        parts = () if form.layout is None else form.layout.parts
        encoder = roles.has_encoder
        read = {spec.name for spec in graphs["decoder"].inputs}
        constants = {part.past: part.batch for part in parts if part.fixed and part.past in read}
        if form.hidden is not None and form.hidden.needed:
            constants[HIDDEN] = 0
        settings, notes = settings_of(trials.called.model)
        source = next(iter(trials.others), "") if encoder else ""
        if self.why is not None:
            notes = (*notes, f"it is called {form.describe()}, because: {self.why.message.splitlines()[0]}")
        if form.layout is not None and form.new == 1 and roles.mask:
            notes = (*notes, "padding is left out of the state of its row, on the right of a prompt, too")
        return Manifest(
            kind="encoder-decoder" if encoder else "decoder",
            tokens=roles.tokens,
            logits="logits",
            mask=roles.mask if form.mask_of else "",
            mask_of="new" if form.mask_of == "new" else "all",
            source=source,
            source_mask="attention_mask" if encoder and "attention_mask" in trials.others else "",
            positions=roles.positions if form.positions else "",
            states=() if form.layout is None else tuple(_state(part, form.capacity) for part in form.layout.states),
            past_length=PAST_LENGTH if form.capacity else "",
            capacity=form.capacity,
            anew=form.anew,
            constants=constants,
            step=self._most_at_once(graphs["decoder"]),
            prompt_from=prompt_from(graphs["prefill"]) if self._begins_singly and "prefill" in graphs else 0,
            settings=settings,
            notes=notes,
            versions=versions(),
        )

    def _most_at_once(self, decoder: Model) -> int:
        """How many tokens it takes at once, 0 for any number; states are computed in pieces, of which it may have one.

        What ends with a table of positions ends there for prompts in pieces, too.
        """
        if self.form.layout is None or self.form.new == 1:
            return 0 if self.form.layout is None else 1
        bounds = [int(match[1]) for match in map(_MOST_TOKENS.fullmatch, decoder.conditions) if match]
        return min(bounds, default=0) if self._recurs else 0


def _of_several(axes: Mapping[str, Axes]) -> dict[str, Any]:
    """Axes as torch has them, of which those of tokens have room for more than one at the least."""
    several = torch.export.Dim(_TOKENS, min=_SEVERAL)
    return {
        name: {axis: several if word == _TOKENS else word for axis, word in words.items()}
        for name, words in axes.items()
    }


_TOKENS = "sequence"
"""The axis of tokens."""
_SEVERAL = 2
"""The shortest prompt that goes through its own graph where it may go token by token; for one, models have paths."""
_MOST_TOKENS = re.compile("sequence <= ([0-9]+)")
_LEAST_TOKENS = re.compile("sequence >= ([0-9]+)")


def prompt_from(prefill: Model) -> int:
    """From how many tokens on it takes any number, 2 at least; 0 if it does not take any number."""
    bounds = [_LEAST_TOKENS.fullmatch(each) for each in prefill.conditions if "sequence" in each]
    return max([_SEVERAL, *(int(match[1]) for match in bounds if match)]) if all(bounds) else 0


def _state(part: Part, capacity: int) -> State:
    sizes = {part.batch: -1} | ({} if part.growing is None else {part.growing: capacity})
    shape = tuple(sizes.get(axis, size) for axis, size in enumerate(part.shape))
    return State(part.past, part.present, shape, str(part.dtype).removeprefix("torch."))


def _of_source(given: Inputs) -> Dynamic:
    """Axes of what an encoder is given: texts of any length, pictures of one size; for the rest they are probed."""
    if all(value.dim() == 2 and not value.is_floating_point() for value in given.values()):
        return {name: {0: "batch", 1: "source"} for name in given}
    if all(value.dim() == 4 for value in given.values()):
        return {name: {0: "batch"} for name in given}
    return "auto"


def settings_of(model: torch.nn.Module) -> tuple[Settings, tuple[str, ...]]:
    """How a model generates by default, and what of its configuration is not heeded."""
    defaults = generation_defaults(model)
    known = {name: value for name, value in defaults.items() if name in SETTINGS}
    if "decoder_start_token_id" not in known and isinstance(first := defaults.get("bos_token_id"), int):
        known["decoder_start_token_id"] = first
    others = sorted(defaults.keys() - SETTINGS - {*vars(type(model.generation_config)())}) if defaults else []
    others = [name for name in others if not name.startswith("_") and defaults[name] is not False]
    notes = [f"generation_config says {', '.join(others)}, which generate does not heed"] if others else []
    return Settings.of(known), tuple(notes)


def check_heeded(model: torch.nn.Module) -> None:
    """Refuse to generate otherwise than the model's configuration says.

    Raises:
        ConversionError: It asks for something that ``generate`` does not do.
        InputError: It has a setting that cannot be.
    """
    settings_of(model)
    lost = [name for name in asks_for(model) if name not in SETTINGS]
    if lost:
        raise ConversionError(
            f"the model's generation_config sets {', '.join(lost)}, which generate does not do",
            hint=f"set model.generation_config.{lost[0]} = None to generate without it",
        )
