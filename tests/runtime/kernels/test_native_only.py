"""Every operator with a kernel has a shared meaning too, or is declared to have none."""

from __future__ import annotations

from entrepot.ir.traits import runs_on_host
from entrepot.runtime.kernels.native_only import NATIVE_ONLY
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.providers.cpu.table import native


def test_what_has_no_shared_meaning_is_declared_and_nothing_else_is() -> None:
    missing = {key.op_type for key in set(native) - set(shared) if not key.domain and not runs_on_host(key)}
    assert missing == set(NATIVE_ONLY)


def test_what_is_computed_on_the_host_takes_text_or_host_operands_alone() -> None:
    hosted = {key.op_type for key in set(native) - set(shared) if runs_on_host(key)}
    assert hosted == {"MelWeightMatrix", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}
