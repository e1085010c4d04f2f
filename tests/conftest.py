"""Settings that hold for every test."""

from __future__ import annotations

import importlib
import os
import sys

import pytest
from hypothesis import settings

settings.register_profile("ci", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("nightly", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Our own plugin, as users have it, where the package was installed before the plugin was written."""
    if not pluginmanager.hasplugin("entrepot"):
        pluginmanager.register(importlib.import_module("entrepot.testing.plugin"), "entrepot")


def pytest_report_header() -> str:
    """What the cpu provider multiplies with: results differ in their last digits."""
    from entrepot.runtime.blas import choice

    return f"cpu provider: {choice()}"


def _draw_the_same() -> None:
    """torch has one generator for a process and seeds it at random: what a test draws must not depend on either."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(271828)


@pytest.fixture(scope="module", autouse=True)
def _the_same_draws_in_each_module() -> None:
    _draw_the_same()


@pytest.fixture(autouse=True)
def _the_same_draws_in_each_test(_the_same_draws_in_each_module: None) -> None:
    _draw_the_same()
