"""Which declared steps a sweep has seen succeed, and why the others did not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from entrepot.ir.opset.rules import Step, declared, why_impossible


class Rows:
    """Verdicts by step, and the last message about each."""

    def __init__(self) -> None:
        self._counts: dict[Step, Counter[str]] = defaultdict(Counter)
        self._reasons: dict[tuple[Step, str], str] = {}

    def add(self, step: Step, verdict: str, why: str) -> None:
        """Count one conversion."""
        self._counts[step][verdict] += 1
        self._reasons[step, verdict] = why

    def table(self, verdicts: Sequence[str]) -> str:
        """Verdicts by direction, and how many of its steps succeeded at least once."""
        lines = [f"{'':>6}{'steps':>12}" + "".join(f"{verdict:>12}" for verdict in verdicts)]
        for name in ("down", "up"):
            chosen = {step: counts for step, counts in self._counts.items() if _direction(step) == name}
            total = sum(chosen.values(), Counter[str]())
            reached = sum(1 for counts in chosen.values() if counts["right"])
            lines.append(f"{name:>6}{reached:>12}" + "".join(f"{total[verdict]:>12}" for verdict in verdicts))
        return "\n".join(lines)

    def why_not(self, step: Step) -> str | None:
        """Why a step never succeeded, or ``None`` if it did."""
        counts = self._counts.get(step, Counter())
        if counts["right"]:
            return None
        impossible = why_impossible(step)
        if impossible is not None:
            return f"declared impossible: {impossible}"
        if not counts:
            back = Step(step.domain, step.op_type, step.stop, step.start)
            return "no case gets there" if back not in self._counts else "no case got down to start from"
        verdict = counts.most_common(1)[0][0]
        return f"always {' or '.join(counts)}: {self._reasons[step, verdict]}"


def unreached(rows: Rows, match: str = "") -> str:
    """The declared steps that never succeeded, by direction, each with the reason."""
    lines = []
    for name in ("down", "up"):
        steps = sorted(step for step in declared() if _direction(step) == name and match in step.op_type)
        missing = [(step, why) for step in steps if (why := rows.why_not(step)) is not None]
        lines.append(f"\n{name}: {len(steps) - len(missing)} of {len(steps)} declared steps seen to go right; not")
        lines += [f"  {s.domain or 'ai.onnx'} {s.op_type} {s.start} -> {s.stop}: {why[:220]}" for s, why in missing]
    return "\n".join(lines)


def _direction(step: Step) -> str:
    return "down" if step.start > step.stop else "up"
