"""What a verification found: plain data that prints itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from entrepot.parity.compare import Comparison, OutputComparison

if TYPE_CHECKING:
    import rich.console

Verdict: TypeAlias = Literal["agrees", "differs", "error", "refused", "declined"]


@dataclass(frozen=True)
class Run:
    """One set of inputs on one provider.

    Attributes:
        label: Which inputs.
        provider: Who ran the model; ``source`` for a refusal.
        verdict: ``agrees``; ``differs``; ``error``: it could not be run, which is a failure; ``refused``: the source
            cannot take these inputs, so nothing is asked of the model (or, with a provider's name, the graph refuses
            empty inputs, which an exporter may excuse); ``declined``: a second opinion that nobody asked
            for by name lacks an operator.
        message: What is wrong, or why it was refused; empty when it agrees.
        symbol: The one symbol of the input shapes whose size was changed; else empty.
        seconds: Wall time of the model's run.
        comparison: All metrics; ``None`` when nothing was compared.
    """

    label: str
    provider: str
    verdict: Verdict
    message: str = ""
    symbol: str = ""
    seconds: float = 0.0
    comparison: Comparison | None = None

    @property
    def worst(self) -> OutputComparison | None:
        """The output that is furthest off."""
        return self.comparison.worst if self.comparison is not None else None

    @property
    def excess(self) -> float:
        """Largest error in units of the allowed one; infinite when it could not be run."""
        if self.comparison is None:
            return float("inf") if self.verdict == "error" else 0.0
        return self.worst.excess if self.worst is not None else 0.0


@dataclass(frozen=True)
class Report:
    """Whether a model does what its source does, and how closely.

    Attributes:
        source: What was trusted.
        model: What was judged.
        providers: Who ran the model.
        runs: One entry per set of inputs and provider, and one per refusal of the source.
        notes: What the exporter has to say: axes that are fixed and why, what was left out.
        void: Why it says nothing any more, as the model has changed since; else empty.
    """

    source: str
    model: str
    providers: tuple[str, ...]
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()
    void: str = ""

    @property
    def ok(self) -> bool:
        """Whether something was compared, nothing failed, and the model is still the one that was compared."""
        return not self.void and not self.failures and any(run.verdict == "agrees" for run in self.runs)

    @property
    def failures(self) -> tuple[Run, ...]:
        """Runs that differ or could not be made."""
        return tuple(run for run in self.runs if run.verdict in {"differs", "error"})

    @property
    def ran(self) -> tuple[Run, ...]:
        """Runs of the model, failed ones included."""
        return tuple(run for run in self.runs if run.verdict not in {"refused", "declined"})

    @property
    def declined(self) -> tuple[Run, ...]:
        """Providers that do not run this model, one entry each."""
        return tuple(run for run in self.runs if run.verdict == "declined")

    @property
    def refusals(self) -> tuple[Run, ...]:
        """Inputs that the source does not take, and empty ones excused by an exporter."""
        return tuple(run for run in self.runs if run.verdict == "refused")

    @property
    def worst(self) -> Run | None:
        """The run that failed most, or came closest to it; ``None`` when nothing was run."""
        return max(self.ran, key=lambda run: (run.verdict != "agrees", run.excess), default=None)

    @property
    def unproven(self) -> tuple[str, ...]:
        """Symbols for which the source refused every other size, so that only the sample's is proved."""
        tried = dict.fromkeys(run.symbol for run in self.runs if run.symbol)
        accepted = {run.symbol for run in self.runs if run.verdict != "refused"}
        return tuple(symbol for symbol in tried if symbol not in accepted)

    @property
    def sensitive(self) -> tuple[Run, ...]:
        """Runs that agree only because the source itself is that sensitive to rounding; see ``parity.sensitivity``."""
        agreed = [run for run in self.runs if run.verdict == "agrees"]
        return tuple(run for run in agreed if run.comparison and any(out.noise for out in run.comparison.outputs))

    def summary(self) -> str:
        """The verdict in one line."""
        from entrepot.parity.report.text import summary

        return summary(self)

    def to_json(self) -> str:
        """All figures as a JSON document; its ``schema`` names the version of the layout."""
        from entrepot.parity.report.json import to_json

        return to_json(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained page: no script, font or image is loaded from anywhere."""
        from entrepot.parity.report.html import write_html

        write_html(self, path)

    def __str__(self) -> str:
        from entrepot.parity.report.text import table

        return table(self)

    def __rich__(self) -> rich.console.Group:
        from entrepot.parity.report.text import renderable

        return renderable(self)

    def _repr_html_(self) -> str:
        from entrepot.parity.report.html import fragment

        return fragment(self)
