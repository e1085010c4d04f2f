from __future__ import annotations

import contextlib
import io
import sys
import threading

from entrepot.ir import progress
from entrepot.ir.progress import announcing, reporter


class Terminal(io.StringIO):
    """Standard error that somebody watches; says when a line has been written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        if self.getvalue().endswith("\n"):
            self.written.set()


def watched(monkeypatch) -> Terminal:
    """Called in each test: pytest exchanges standard error once more after the fixtures."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_a_stage_that_lasts_is_named_while_it_lasts(monkeypatch):
    terminal = watched(monkeypatch)
    tell = reporter(None)
    with announcing(tell):
        tell("reading")
        tell("capturing")
        monkeypatch.setattr(sys, "stderr", io.StringIO())  # as torch's prints are kept from users
        assert terminal.written.wait(30)
    assert terminal.getvalue().endswith("s] capturing\n")
    assert "reading" not in terminal.getvalue()


def test_work_that_ends_at_once_says_nothing(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.05)
    tell = reporter(None)
    with announcing(tell):
        tell("reading")
    assert not terminal.written.wait(0.2)


def test_after_an_error_nothing_is_said(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.05)
    tell = reporter(None)
    with contextlib.suppress(ValueError), announcing(tell):
        tell("reading")
        raise ValueError
    assert not terminal.written.wait(0.2)


def test_a_stage_is_named_once(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.05)
    tell = reporter(None)
    with announcing(tell):
        tell("capturing")
        assert terminal.written.wait(30)
        tell("translating")
    assert [line.partition("] ")[2] for line in terminal.getvalue().splitlines()] == ["capturing", "translating"]


def test_a_function_is_told_everything_at_once():
    lines: list[str] = []
    tell = reporter(lines.append)
    with announcing(tell):
        tell("reading")
        assert lines == ["reading"]
