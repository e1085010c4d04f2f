"""Whether two things compute the same thing."""

from __future__ import annotations

from entrepot.parity.report.report import Report, Run

__all__ = ["Report", "Run"]
