"""Which of torch's libraries is fast on this processor."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from entrepot.runtime.providers.torch import vectors

LINUX = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\n"
)


def test_linux_tells_the_vendor(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(LINUX)
    assert vectors.vendor(tmp_path / "cpuinfo") == "AuthenticAMD"
    assert vectors.told("model name", tmp_path / "cpuinfo") == "AMD EPYC"
    assert vectors.told("model name", tmp_path / "none") == ""


def test_a_processor_that_linux_knows_by_number_has_no_vendor(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("CPU implementer\t: 0x41\n")
    assert vectors.vendor(tmp_path / "cpuinfo") == ""


def test_elsewhere_python_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = "AMD64 Family 25 Model 17 Stepping 1, AuthenticAMD"
    monkeypatch.setattr(vectors.platform, "processor", lambda: described)
    assert vectors.vendor(tmp_path / "none") == "AuthenticAMD"
    monkeypatch.setattr(vectors.platform, "processor", lambda: "arm")
    assert vectors.vendor(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("capability", "vendor", "has_mkl", "narrow"),
    [
        ("AVX512", "AuthenticAMD", True, True),
        ("AVX512", "GenuineIntel", True, False),
        ("AVX512", "", True, False),
        ("AVX2", "AuthenticAMD", True, False),
        ("AVX512", "AuthenticAMD", False, False),
    ],
)
def test_mkl_is_narrow_on_wide_processors_of_others_than_intel(
    capability: str, vendor: str, has_mkl: bool, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    monkeypatch.setattr(vectors, "vendor", lambda: vendor)
    assert vectors.is_mkl_narrow.__wrapped__() == narrow
