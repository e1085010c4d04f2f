"""Where the time of a run goes, by operator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from entrepot.runtime.emitting.emit import Emitted


@dataclass(frozen=True)
class Row:
    """One kernel's share.

    Attributes:
        operator: The operators it ran.
        kernel: Its name in the generated source.
        calls: How often it was called in one run.
        seconds: CPU time of those calls.
    """

    operator: str
    kernel: str
    calls: int
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Times of one run, longest first; prints as a table."""

    total: float
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        lines = [f"{'ms':>10}{'share':>8}{'calls':>7}  operator (kernel); whole run {self.total * 1e3:.3f} ms"]
        lines += [
            f"{row.seconds * 1e3:10.3f}{row.seconds / self.total:8.1%}{row.calls:7}  {row.operator} ({row.kernel})"
            for row in self.rows
        ]
        return "\n".join(lines)


def profile(emitted: Emitted, values: Sequence[Any], *, rounds: int = 3) -> Profile:
    """Run generated source with a clock around every kernel; the best of some rounds counts.

    Args:
        emitted: The source and what it refers to.
        values: Its inputs in order.
        rounds: Runs to choose from, after one that warms up.
    """
    operators = {id(step.call.function): step.op_type for step in set(emitted.lines.values()) if step.call is not None}
    best: Profile | None = None
    for _ in range(rounds + 1):
        spent: dict[str, list[float]] = {}
        space = {
            name: _timed(value, spent.setdefault(name, [])) if id(value) in operators else value
            for name, value in emitted.names.items()
        }
        exec(compile(emitted.source, emitted.filename, "exec"), space)  # noqa: S102 - text that emit wrote
        start = time.process_time()
        space[emitted.function.__name__](*values)
        total = time.process_time() - start
        if best is None or total < best.total:
            best = Profile(total, _rows(spent, {name: operators[id(emitted.names[name])] for name in spent}))
    assert best is not None
    return best


def _timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    def run(*inputs: Any, **attributes: Any) -> Any:
        start = time.process_time()
        result = function(*inputs, **attributes)
        times.append(time.process_time() - start)
        return result

    return run


def _rows(spent: dict[str, list[float]], operators: dict[str, str]) -> tuple[Row, ...]:
    """Kernels of one kind (``conv``, ``conv_2``, ...) together."""
    found: dict[tuple[str, str], list[float]] = {}
    for name, times in spent.items():
        stem = name.rstrip("0123456789").rstrip("_")
        found.setdefault((operators[name], stem), []).extend(times)
    rows = (Row(operator, kernel, len(times), sum(times)) for (operator, kernel), times in found.items())
    return tuple(sorted(rows, key=lambda row: -row.seconds))
