"""What a verification found: plain data that prints itself."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, TypeAlias

from entrepot.ir.arguments import expected
from entrepot.parity.compare import Comparison, OutputComparison, rank
from entrepot.parity.plan import TOGETHER

if TYPE_CHECKING:
    import rich.console

    from entrepot.parity.report.facts import ModelFacts

Verdict: TypeAlias = Literal["agrees", "differs", "error", "refused", "declined", "noted"]


@dataclass(frozen=True)
class Run:
    """One set of inputs on one provider; true when the model ran and agrees.

    Attributes:
        label: Which inputs.
        provider: Who ran the model; ``source`` for a refusal.
        verdict: ``agrees``; ``differs``; ``error``: it could not be run, which is a failure; ``refused``: the source
            cannot take these inputs, so nothing is asked of the model (or, with a provider's name, the graph refuses
            empty inputs, which an exporter may excuse); ``declined``: a second opinion that nobody asked
            for by name lacks an operator; ``noted``: it differs for NaN or infinities among other elements, where
            the kernels of runtimes disagree, for very large ones in recurrent layers, or a second opinion computes on
            doubles in single precision, or for the reason that ``excuse`` gives.
        message: What is wrong, or why it was refused; empty when it agrees.
        symbol: The symbol of the input shapes whose size was changed, or several that were given one size; else empty.
        seconds: Wall time of the model's run.
        comparison: All metrics; ``None`` when nothing was compared.
        edge: ``"finite"`` for edge values, ``"special"`` for NaN and infinities; else empty.
        excuse: Why it is only noted, if that does not follow from ``edge``.
    """

    label: str
    provider: str
    verdict: Verdict
    message: str = ""
    symbol: str = ""
    seconds: float = 0.0
    comparison: Comparison | None = None
    edge: str = ""
    excuse: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model ran and agrees; what was refused or declined proves nothing."""
        return self.verdict == "agrees"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def worst(self) -> OutputComparison | None:
        """The output that is furthest off."""
        return self.comparison.worst if self.comparison is not None else None

    @property
    def excess(self) -> float:
        """Largest error in units of the allowed one; infinite when it could not be run, NaN when none was measured."""
        if self.comparison is None:
            return float("inf") if self.verdict == "error" else 0.0
        return self.worst.excess if self.worst is not None else 0.0


@dataclass(frozen=True, repr=False)
class Report:
    """Whether a model does what its source does, and how closely; true when it does, and prints as a table.

    Attributes:
        source: What was trusted.
        model: What was judged.
        providers: Who ran the model.
        runs: One entry per set of inputs and provider, and one per refusal of the source.
        facts: The model's inputs and outputs, opsets and size, and which axes are fixed; ``None`` if unknown.
        void: Why it no longer holds, if the model has changed since; else empty.
        doubt: Why agreement proves nothing, because nobody independent could judge; else empty.
    """

    source: str
    model: str
    providers: tuple[str, ...]
    runs: tuple[Run, ...]
    facts: ModelFacts | None = None
    void: str = ""
    doubt: str = ""

    @property
    def ok(self) -> bool:
        """Whether something was compared, nothing failed or is in doubt, and the model is still the one compared."""
        return not (self.void or self.doubt or self.failures) and any(run.ok for run in self.runs)

    @property
    def notes(self) -> tuple[str, ...]:
        """The exporter's notes: which axes are fixed and why, what was left out."""
        return self.facts.notes if self.facts is not None else ()

    def __bool__(self) -> bool:
        return self.ok

    @property
    def failures(self) -> tuple[Run, ...]:
        """Runs that differ or could not be carried out."""
        return tuple(run for run in self.runs if run.verdict in {"differs", "error"})

    @property
    def ran(self) -> tuple[Run, ...]:
        """Runs of the model, failed ones included."""
        return tuple(run for run in self.runs if run.verdict not in {"refused", "declined", "noted"})

    @property
    def declined(self) -> tuple[Run, ...]:
        """Providers that cannot run this model, one entry each."""
        return tuple(run for run in self.runs if run.verdict == "declined")

    @property
    def noted(self) -> tuple[Run, ...]:
        """Runs that differ where the kernels of runtimes do; see ``Run.verdict``."""
        return tuple(run for run in self.runs if run.verdict == "noted")

    @property
    def refusals(self) -> tuple[Run, ...]:
        """Inputs that the source does not accept, and empty ones excused by an exporter."""
        return tuple(run for run in self.runs if run.verdict == "refused")

    @property
    def worst(self) -> Run | None:
        """The run that failed most, or came closest to it; ``None`` when nothing was run."""
        return max(self.ran, key=lambda run: (not run.ok, rank(run.excess)), default=None)

    @property
    def unproven(self) -> tuple[str, ...]:
        """Symbols for which the source refused every other size, so that only the sample's size is proved."""
        tried = dict.fromkeys(symbol for run in self.runs for symbol in run.symbol.split(TOGETHER) if symbol)
        accepted = {symbol for run in self.runs if run.verdict != "refused" for symbol in run.symbol.split(TOGETHER)}
        return tuple(symbol for symbol in tried if symbol not in accepted)

    @property
    def hollow(self) -> tuple[str, ...]:
        """Outputs that agree without a finite element in any run: NaN met NaN, which proves little."""
        compared = [run.comparison for run in self.runs if run.comparison is not None]
        outputs = [output for comparison in compared for output in comparison.outputs]
        finite = {output.name for output in outputs if output.metrics is not None and output.metrics.finite}
        return tuple(dict.fromkeys(out.name for out in outputs if out.hollow and out.name not in finite))

    @property
    def sensitive(self) -> tuple[Run, ...]:
        """Runs that agree only because the source itself is that sensitive to rounding; see ``parity.sensitivity``."""
        return tuple(
            run for run in self.runs if run.ok and run.comparison and any(out.noise for out in run.comparison.outputs)
        )

    def voided(self, reason: str) -> Self:
        """The same record of a model that has changed since, which proves nothing any more.

        Raises:
            InputError: ``reason`` is no text, or empty.
        """
        asked: Any = reason
        if not (isinstance(asked, str) and asked):
            raise expected("reason", "a sentence", reason)
        return replace(self, void=reason)

    def summary(self) -> str:
        """The verdict in one line."""
        from entrepot.parity.report.text import summary

        return summary(self)

    def to_json(self) -> str:
        """All figures as a JSON document; its ``schema`` names the version of the layout."""
        from entrepot.parity.report.json import to_json

        return to_json(self)

    def to_html(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Write one self-contained page: no script, font or image is loaded from anywhere.

        Raises:
            InputError: ``path`` is neither a path nor an open binary file.
            StorageError: The page cannot be written.
        """
        from entrepot.parity.report.html import write_html

        write_html(self, path)

    def __repr__(self) -> str:
        return f"<Report: {self.summary()}>"

    def __str__(self) -> str:
        from entrepot.parity.report.text import table

        return table(self)

    def __rich__(self) -> rich.console.Group:
        from entrepot.parity.report.text import renderable

        return renderable(self)

    def _repr_html_(self) -> str:
        from entrepot.parity.report.html import fragment

        return fragment(self)
