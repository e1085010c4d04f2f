"""Where in the user's code something happens that a graph cannot do, found by running the module under observation."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np
import torch

from entrepot.exporters import structure
from entrepot.exporters.torch.running.guard import random_state
from entrepot.exporters.torch.upstream import TorchDispatchMode

_OURS = str(Path(structure.__file__).parent)  # the exporters' room, wherever it is installed
_SKIPPED = (str(Path(torch.__file__).parent), str(Path(np.__file__).parent), _OURS, "<")
_EAGER = str(Path(__file__).with_name("eager.py"))
_STDLIB = sysconfig.get_path("stdlib")


def user_line(frames: Sequence[traceback.FrameSummary]) -> str:
    """The innermost frame that is neither a library's nor ours: ``net.py:12 in forward: y = x @ w``."""
    for frame in reversed(frames):
        if is_theirs(frame.filename):
            return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}"
    return ""


def _standard(filename: str) -> bool:
    """Whether a file belongs to Python's own library, inside which others may be installed."""
    return filename.startswith(_STDLIB) and "-packages" not in filename


def is_theirs(filename: str) -> bool:
    """Whether a file is neither a library's nor ours."""
    return not filename.startswith(_SKIPPED) and not _standard(filename)


def _line_in_module() -> str:
    """The user's line inside the module that is running, not the one that called ``export``."""
    frames = traceback.extract_stack()
    start = max((at for at, each in enumerate(frames) if each.filename == _EAGER), default=0)
    return user_line(frames[start:])


class OperatorSpotter(TorchDispatchMode):
    """Notes the user's line for every call of the given operators.

    Args:
        tag: Operators with this tag.
        prefixes: Operators whose names begin with one of these.

    Attributes:
        found: Operator and line, in the order of the calls.
    """

    supports_higher_order_operators = True  # what a body calls is not seen: its loop or branch is, as one operator

    def __init__(self, tag: torch.Tag | None = None, prefixes: tuple[str, ...] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tag, self._prefixes = tag, prefixes
        self.found: list[tuple[str, str]] = []

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let loops and branches compile: else dynamo skips their code for the rest of the process, and they fail."""
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        """Note the call and make it."""
        if self._tag in getattr(func, "tags", ()) or func.name().startswith(self._prefixes):
            self.found.append((func.name(), _line_in_module()))
        return func(*args, **(kwargs or {}))


class DrawSpotter:
    """Notes the user's lines after which Python's or NumPy's generator has moved: the calls themselves are not Python.

    Attributes:
        found: Library and line, in the order of the draws.
    """

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._tracer: Any = None
        self._state: dict[str, object] = {}
        self._line = ""

    def __enter__(self) -> Self:
        self._tracer, self._state = sys.gettrace(), random_state()
        sys.settrace(self._see)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.settrace(self._tracer)

    def _see(self, frame: FrameType, event: str, _: Any) -> Any:
        if not is_theirs(frame.f_code.co_filename):
            return None
        state = random_state()
        moved = [name for name in ("random", "numpy.random") if state[name] != self._state[name]]
        self.found += [(name, self._line) for name in moved if self._line]
        self._state = state
        after = frame.f_back if event == "return" else frame
        self._line = "" if after is None else user_line(traceback.extract_stack(after, limit=1))
        return self._see
