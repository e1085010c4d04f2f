"""What verbs that rewrite a model share: the result is compared with the original before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.exit_codes import Exit
from entrepot.cli.inputs import input_options, read_inputs

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.cli.models import Target
    from entrepot.cli.output import Output
    from entrepot.ir.model import Model
    from entrepot.parity.report import Report


@dataclass(frozen=True)
class Asked:
    """How the user wants a result to be proved.

    Attributes:
        verify: Whether to prove it at all.
        required: Whether a result that nothing here can prove is not written.
        inputs: What ``read_inputs`` takes besides the model.
    """

    verify: bool
    required: bool
    inputs: tuple[Any, ...]


@dataclass(frozen=True)
class Proof:
    """What the comparison found.

    Attributes:
        report: The comparison; ``None`` if none was wanted.
        advice: What would help to prove it, if anything would.
    """

    report: Report | None
    advice: str = ""

    @property
    def reason(self) -> str:
        """Why nothing is proven; empty when it is, and when it is refuted."""
        if self.report is None:
            return "--no-verify"
        if self.report.ok or self.report.failures:
            return ""
        return (self.report.doubt or self.report.summary()) + self.advice

    @property
    def refuted(self) -> bool:
        """Whether the result computes something different."""
        return self.report is not None and bool(self.report.failures)

    @property
    def verdict(self) -> str:
        """In one line."""
        return f"not proven: {self.reason}" if self.reason or self.report is None else self.report.summary()

    @property
    def facts(self) -> dict[str, Any]:
        """For ``--json``."""
        return {"verified": not (self.reason or self.refuted), "not_verified_because": self.reason or None}


def proof_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--verify``, ``--require-proof`` and the inputs to prove it on, handed over as ``asked``."""

    def call(
        *args: Any,
        verify: bool,
        require_proof: bool,
        inputs: tuple[str, ...],
        dims: tuple[str, ...],
        seed: int,
        **kwargs: Any,
    ) -> Any:
        if require_proof and not verify:
            raise click.UsageError("--require-proof and --no-verify exclude each other", click.get_current_context())
        return function(*args, asked=Asked(verify, require_proof, (inputs, dims, seed)), **kwargs)

    call.__doc__ = function.__doc__
    call.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option("--require-proof", is_flag=True, help="Without a proof, write nothing and exit with 1."),
        click.option("--verify/--no-verify", default=True, show_default=True, help="Run both and compare, then write."),
        input_options,
    ):
        call = option(call)
    return call


def prove(model: Model, result: Model, asked: Asked, output: Output) -> Proof:
    """Run both models; if that is not possible here, the result can still be written, but it is not proven.

    Raises:
        EntrepotError: The model does not run on the inputs that were given.
    """
    if not asked.verify:
        return Proof(None)
    from entrepot.exporters.options import Judging
    from entrepot.exporters.proof.conversion import report_on
    from entrepot.ir.progress import reporter

    feeds, made_up = read_inputs(model, *asked.inputs)
    report = report_on(model, result, feeds, Judging(progress=reporter(output.progress)), made_up=bool(made_up))
    refused = any(run.provider == "source" for run in report.refusals) and not report.ran
    return Proof(report, "; give its inputs with --input or --dim" if refused and made_up else "")


def deliver(
    result: Model,
    target: Target,
    proof: Proof,
    asked: Asked,
    output: Output,
    facts: dict[str, Any],
    text: Callable[[], RenderableType],
) -> int:
    """Write the result unless its proof forbids it, and report what was done.

    Args:
        result: What may be written.
        target: Where.
        proof: What is known about it.
        asked: Whether a proof is required.
        output: Where this is reported.
        facts: What else ``--json`` prints.
        text: What is printed without ``--json``; the verdict follows.
    """
    from entrepot.cli.output import stack

    facts = facts | proof.facts | {"path": str(target)}
    if proof.refuted or (asked.required and proof.reason):
        held_back = facts | {"path": None, "report": None if proof.report is None else proof.report.summary()}
        output.result(held_back, lambda: proof.report or f"nothing is written; {proof.verdict}")
        return Exit.DIFFERS
    result.save(target)
    output.result(facts, lambda: stack(text(), proof.verdict))
    return Exit.OK
