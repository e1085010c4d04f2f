"""The record of a verification, and its forms: text, JSON and HTML."""

from __future__ import annotations

from entrepot.parity.report.report import Report, Run

__all__ = ["Report", "Run"]
