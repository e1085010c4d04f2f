"""Axes that begin at a later size, where smaller ones are all that refutes a graph.

Frameworks have shapes of their own for results without elements: torch (2.13) leaves an empty image as it is where it
would rearrange its pixels, and JAX gives an empty one where a window is larger, which onnxruntime (1.31) makes up. At
size 1, differences of neighbours are empty, and what is divided by one less than the size is divided by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from entrepot.exporters.axes.groups import Group
from entrepot.parity.compare import OutputComparison
from entrepot.parity.report.report import Report


def begin_at(groups: Sequence[Group], report: Report, least: int) -> list[Group]:
    """Let groups begin at a size if all smaller ones are all that fails; returns those that now do."""
    failed = _failed(report)
    found = [group for group in groups if group.symbol in failed and group.asked[0] < least]
    if len(found) < len(failed) or any(size >= least for sizes in failed.values() for size in sizes):
        return []
    for group in found:
        group.asked = least, group.asked[1]
    return found


def begin_apart(groups: Sequence[Group], report: Report, least: int) -> list[Group]:
    """Let groups begin at a size that fail by themselves at smaller ones alone, whatever others do; returns them."""
    failed = _failed(report)
    late = [group for group in groups if group.asked[0] < least]
    found = [group for group in late if max(failed.get(group.symbol, ()), default=least) < least]
    for group in found:
        group.asked = least, group.asked[1]
    return found


def begin_where_agreeing(
    groups: Sequence[Group], report: Report, present: Callable[[Group], int], agrees: Callable[[Group, int], bool]
) -> list[Group]:
    """Let groups begin where the graph does what its source does, if all that fails is smaller than in the sample.

    Args:
        groups: Those that may begin later.
        report: What refutes the graph.
        present: The size of a group in the sample.
        agrees: Whether the graph does what its source does at a size of a group; asked in a search by halving.
    """
    failed = _failed(report)
    found = [group for group in groups if group.symbol in failed]
    if len(found) < len(failed) or any(max(failed[group.symbol]) >= present(group) for group in found):
        return []
    for group in found:
        group.asked = _first(group, max(failed[group.symbol]), present(group), agrees), group.asked[1]
    return found


def computes_numbers(report: Report, symbol: str) -> bool:
    """Whether a source computes numbers where a graph fails at sizes of one symbol, not NaN and infinities alone."""
    failed = (run.comparison for run in report.failures if run.symbol == symbol)
    return any(found is None or any(map(_has_numbers, found.outputs)) for found in failed)


def _has_numbers(output: OutputComparison) -> bool:
    metrics = output.metrics
    return not output.ok and (metrics is None or metrics.nans[0] + metrics.infs[0] < metrics.size)


def _first(group: Group, low: int, high: int, agrees: Callable[[Group, int], bool]) -> int:
    while high - low > group.step:
        middle = high - max((high - low) // (2 * group.step), 1) * group.step
        if agrees(group, middle):
            high = middle
        else:
            low = middle
    return high


def _failed(report: Report) -> dict[str, list[int]]:
    """The sizes that fail alone, by symbol; of no symbol, and without end, for whatever else does."""
    found: dict[str, list[int]] = {}
    for run in report.failures:
        size = run.label.removeprefix(f"{run.symbol}=")
        if run.symbol and size.isdecimal():
            found.setdefault(run.symbol, []).append(int(size))
        else:
            found.setdefault("", [])
    return found
