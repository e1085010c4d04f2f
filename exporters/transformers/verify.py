"""A package beside its model: scores at several sizes, and the tokens that both generate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.build import Building
from entrepot.exporters.transformers.guesses import Inputs, tokens
from entrepot.exporters.transformers.upstream import can_generate, generated
from entrepot.ir.errors import ConversionError, EntrepotError, VerificationError
from entrepot.ir.model import Model
from entrepot.parity.compare import compare
from entrepot.parity.report.report import Report, Run
from entrepot.runtime.generation.package import Package
from entrepot.runtime.providers.onnxruntime.weights import passing

NEW_TOKENS = 8


@dataclass(frozen=True)
class Case:
    """A prompt.

    Attributes:
        label: What it shows.
        prompt: Its tokens.
        mask: Which of them count.
        others: What else the model is given.
    """

    label: str
    prompt: torch.Tensor
    mask: torch.Tensor
    others: Inputs


def verified(package: Package, building: Building) -> Package:
    """The package with its report.

    Raises:
        VerificationError: It does not compute the same thing.
    """
    building.options.tell("comparing with the model")
    tried = package.using()  # whose sessions are let go: they are not those that a user wants
    with quiet(), passing():
        runs = tuple(_Judge(tried, building).runs())
        providers = tried.session("decoder").providers
    graphs = [model.report for model in package.graphs.values() if isinstance(model.report, Report)]
    doubt = next((report.doubt for report in graphs if report.doubt), "")
    made = sum((report.runs for report in graphs), ())
    name = building.trials.called.name
    package.report = report = Report(name, "package", providers, (*made, *runs), doubt=doubt)
    if report.failures:
        raise VerificationError(f"the package does not compute the same thing: {report.summary()}", report=report)
    return package


@dataclass(frozen=True)
class _Judge:
    package: Package
    building: Building

    def runs(self) -> Iterator[Run]:
        cases = list(self._cases())
        for case in cases:
            yield self._scores(case)
        if can_generate(self.building.trials.called.whole):
            for case in cases[:2]:
                for beams in (1, 4):
                    yield self._tokens(case, beams)

    def _cases(self) -> Iterator[Case]:
        trials, model = self.building.trials, self.building.trials.called.model
        fixed = bool(trials.others) and not trials.called.roles.has_encoder  # a text that belongs to a picture
        for number, (label, rows, length, left) in enumerate(_SIZES):
            prompt = trials.prompt[torch.arange(rows) % len(trials.prompt)]
            if not fixed and not trials.called.roles.has_encoder:
                prompt = tokens(model, rows, length, seed=10 + number)
            mask = torch.ones_like(prompt)
            others = trials.rows(rows)
            masked = mask if not trials.called.roles.has_encoder else others.get("attention_mask")
            if masked is not None and rows > 1 and not fixed and (self.package.manifest.mask or masked is not mask):
                masked = masked.clone()
                masked[0] = 1
                masked[0, slice(0, 2) if left else slice(-2, None)] = 0
                mask, others = (
                    (masked, others) if "attention_mask" not in others else (mask, others | {"attention_mask": masked})
                )
            yield Case(label, prompt, mask, others)

    def _given(self, case: Case) -> dict[str, Any]:
        manifest = self.package.manifest
        given = {manifest.tokens: case.prompt, **case.others}
        if manifest.mask:
            given[manifest.mask] = case.mask
        return {name: value.numpy() for name, value in given.items() if name in self.package.inputs}

    def _scores(self, case: Case) -> Run:
        """The scores of the prompt, and those after a further step."""
        trials, form = self.building.trials, self.building.form
        more = tokens(trials.called.model, len(case.prompt), form.new, seed=7)
        whole = torch.cat([case.prompt, more], 1)
        mask = torch.cat([case.mask, torch.ones_like(more)], 1)
        wanted = self._wanted(whole, mask, case.others).float().numpy()
        try:
            decoding = self.package.start(**self._given(case))
            got = [decoding.all_logits]
            decoding.step(more.numpy())
        except EntrepotError as error:
            return Run(f"scores, {case.label}", "package", "error", message=error.message)
        got.append(decoding.all_logits[:, -form.new :])
        counted = mask.numpy().astype(bool)[..., None]
        ours = np.concatenate(got, 1).astype(np.float32)
        comparison = compare({"logits": np.where(counted, wanted, 0)}, {"logits": np.where(counted, ours, 0)})
        verdict: Any = "agrees" if comparison.ok else "differs"
        return Run(f"scores, {case.label}", "package", verdict, "; ".join(comparison.problems), comparison=comparison)

    def _wanted(self, tokens: torch.Tensor, mask: torch.Tensor, others: Inputs) -> torch.Tensor:
        """The model's own scores; for states that padding inside of a row would change, each row's without padding.

        Recurrent models of transformers set padding to zero, which leaves a state alone before the first token, and
        lets it fade after it.
        """
        trials, form = self.building.trials, self.building.form
        if form.bare:  # every step is given all tokens, which those after them may change
            new = form.new
            before = trials.first(tokens[:, :-new], mask[:, :-new], others, form)[0]
            return torch.cat([before, trials.first(tokens, mask, others, form)[0][:, -new:]], 1)
        if self.package.manifest.step != 1 or bool(mask.all()):
            return trials.first(tokens, mask, others, form)[0]
        rows = [
            trials.first(row[kept.bool()][None], kept[kept.bool()][None], {}, form)[0][0]
            for row, kept in zip(tokens, mask, strict=True)
        ]
        wanted = torch.zeros(*tokens.shape, rows[0].shape[-1], dtype=rows[0].dtype)
        for row, kept, scores in zip(wanted, mask, rows, strict=True):
            row[kept.bool()] = scores
        return wanted

    def _tokens(self, case: Case, beams: int) -> Run:
        """The tokens that are generated, where rounding alone does not change them."""
        label = f"{'tokens' if beams == 1 else f'{beams} beams'}, {case.label}"
        model = self.building.trials.called.whole
        inputs = self._given(case)
        asked: dict[str, Any] = {"max_new_tokens": NEW_TOKENS, "num_beams": beams, "do_sample": False}
        if self.building.trials.called.roles.has_encoder:
            first = int(inputs.pop(self.package.manifest.tokens)[0, 0])
            asked["decoder_start_token_id"] = self.package.settings.decoder_start_token_id or first
        given = {name: torch.from_numpy(value) for name, value in inputs.items()}
        try:
            wanted = generated(model, given, asked)
        except MODEL_ERRORS as error:
            return Run(label, "package", "noted", message=f"the model itself does not generate so: {error}")
        try:
            got = self.package.generate(**inputs, **asked)
        except EntrepotError as error:
            return Run(label, "package", "error", message=error.message)
        if np.array_equal(wanted, got):
            return Run(label, "package", "agrees")
        if self._is_without_cache(got, given, asked):
            return Run(label, "package", "noted", message="the model generates other tokens with its cache")
        doubled = self._doubled(given, asked)
        if doubled is None or not np.array_equal(wanted, doubled):
            return Run(
                label, "package", "noted", message="tokens differ, as they do when the model computes in doubles"
            )
        return Run(label, "package", "differs", message=f"tokens are {got.tolist()}, expected {wanted.tolist()}")

    def _is_without_cache(self, got: Any, given: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
        """Whether a package without a cache generates what the model does without one."""
        if not self.building.form.bare:
            return False
        try:
            return np.array_equal(
                got, generated(self.building.trials.called.whole, given, {**asked, "use_cache": False})
            )
        except MODEL_ERRORS:
            return False

    def _doubled(self, given: Mapping[str, torch.Tensor], asked: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
        """What the model generates in double precision; ``None`` if it is too large, or has an operator without it."""
        twin = self.building.trials.called.doubled()
        if twin is None:
            return None
        inputs = {name: value.double() if value.is_floating_point() else value for name, value in given.items()}
        try:
            return generated(twin.whole, inputs, asked)
        except MODEL_ERRORS:
            return None


_SIZES = (("padding left", 3, 6, True), ("batch 1", 1, 4, True), ("padding right", 2, 7, False))


def compared(whole: Package, package: Package, inputs: Inputs, beams: int) -> None:
    """Compare a graph that generates by itself with the loop on the host, which was compared with the model.

    Raises:
        VerificationError: They generate other tokens.
    """
    given: dict[str, Any] = {name: value.numpy() for name, value in inputs.items() if name in whole.inputs}
    draws = whole.settings.do_sample
    asked: dict[str, Any] = {"max_new_tokens": NEW_TOKENS} | ({"seed": 1} if draws else {})
    with passing():
        wanted = package.using().generate(**given, **asked, num_beams=beams, do_sample=draws)
        got = whole.using().generate(**given, **asked)
    if not np.array_equal(wanted, got):
        raise VerificationError(f"the loop in the graph generates {got.tolist()}, expected {wanted.tolist()}")


def check_reached(graphs: Mapping[str, Model], given: Inputs) -> None:
    """Refuse a package in which something that the caller gave has no effect.

    Raises:
        ConversionError: No graph reads it.
    """
    read = {
        value.name
        for model in graphs.values()
        for value in model.ir.graph.inputs
        if value.uses() or value.is_graph_output()
    }
    lost = [name for name in given if name not in read]
    if lost:
        raise ConversionError(
            f"'{lost[0]}' of the samples has no effect on any graph",
            hint="leave it out if the model does not look at it",
        )
