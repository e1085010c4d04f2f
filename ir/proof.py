"""What a model carries as its proof: the seam between a model and whoever verifies it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Protocol, Self, runtime_checkable

from entrepot.ir.arguments import PathLike


@runtime_checkable
class Proof(Protocol):
    """The record of a verification, as far as a model relies on it; ``entrepot.parity.report.Report`` is one.

    A proof is plain data: it pickles with its model.
    """

    @property
    def ok(self) -> bool:
        """Whether it shows that the model does what its source does."""

    @property
    def void(self) -> str:
        """Why it no longer holds, if the model has changed since; else empty."""

    @property
    def doubt(self) -> str:
        """Why agreement proves nothing, because nobody independent could judge; else empty."""

    @property
    def failures(self) -> Sequence[object]:
        """What differs or could not be run."""

    @property
    def providers(self) -> Sequence[str]:
        """Who ran the model."""

    def __bool__(self) -> bool: ...

    def summary(self) -> str:
        """The verdict in one line."""

    def to_json(self) -> str:
        """All figures as a JSON document."""

    def to_html(self, path: PathLike | BinaryIO) -> None:
        """Write one self-contained page."""

    def voided(self, reason: str) -> Self:
        """The same record of a model that has changed since."""
