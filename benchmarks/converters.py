"""Exports beside those of tf2onnx, jax2onnx and skl2onnx: the same cases, the same judge.

    python -m benchmarks.converters [--corpus keras tensorflow jax sklearn] [--every 25] [--limit 120] [--list]

Each corpus of ``tests/export_cases`` is run in a process of its own. What a converter raises, whatever it is, what
takes it longer than the limit, and a file that no runtime takes, count as refused; a file that takes one call of a case
and not the others is static; floats of another precision, and a column for a row, are forgiven. Time is that of the
processor, ours with the proof. Ratios, of times and of nodes, are medians over cases that both pass: theirs by ours.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import signal
import statistics
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import entrepot as ep
from tests.export_cases import cases, judge_of
from tests.sweeps.converters import CONVERTERS
from tests.sweeps.judging import judged
from tests.sweeps.outcome import Outcome

VERDICTS = ("passed", "static", "refused", "wrong", "crashed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="*", default=list(CONVERTERS), choices=list(CONVERTERS))
    parser.add_argument("--every", type=int, default=25, help="only every n-th case")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a case, of each converter")
    parser.add_argument("--list", action="store_true", help="print what either of them does not pass")
    options = parser.parse_args(arguments)
    if len(options.corpus) > 1:
        rest = ["--every", str(options.every), "--limit", str(options.limit), *(["--list"] if options.list else [])]
        command = [sys.executable, "-m", "benchmarks.converters", *rest, "--corpus"]
        return max(subprocess.run([*command, corpus], check=False).returncode for corpus in options.corpus)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    _compare(options.corpus[0], options)
    return 0


def _compare(corpus: str, options: argparse.Namespace) -> None:
    name, build = CONVERTERS[corpus]()
    found: list[tuple[Outcome, Outcome]] = []
    for case in cases(corpus)[:: options.every]:
        with _limited(options.limit):
            ours = _judged(judge_of(corpus), case)
        if ours.verdict == "invalid":
            continue
        with _limited(options.limit):
            theirs = _judged(functools.partial(judged, build=build), case)
        found.append((ours, theirs))
        if options.list:
            for who, outcome in (("entrepot", ours), (name, theirs)):
                if outcome.verdict != "passed":
                    print(f"  {who} {outcome.verdict} {outcome.name}: {outcome.why[:150]}", flush=True)
    _print(corpus, name, found)


def _judged(judge: Callable[[Any], Outcome], case: Any) -> Outcome:
    try:
        return judge(case)
    except (TimeoutError, ep.EntrepotError) as error:  # no runtime takes the file
        return Outcome(case.name, case.corpus, "refused", str(error))


def _print(corpus: str, name: str, found: Sequence[tuple[Outcome, Outcome]]) -> None:
    print(f"{corpus}, {len(found)} cases".ljust(34) + "".join(f"{verdict:>10}" for verdict in VERDICTS))
    for who, outcomes in zip(("entrepot", name), zip(*found, strict=True), strict=True):
        counts = Counter(outcome.verdict for outcome in outcomes)
        print(f"  {who:32}" + "".join(f"{counts[verdict]:10}" for verdict in VERDICTS))
    both = [pair for pair in found if all(outcome.verdict == "passed" for outcome in pair)]
    times = [theirs.seconds / ours.seconds for ours, theirs in both if ours.seconds]
    nodes = [theirs.nodes / ours.nodes for ours, theirs in both if ours.nodes]
    if times and nodes:
        more = sum(theirs.nodes < ours.nodes for ours, theirs in both)
        ratios = f"time x {statistics.median(times):.2f}, nodes x {statistics.median(nodes):.2f}"
        print(f"  {len(both)} passed by both: {ratios}; {name} has fewer nodes in {more}", flush=True)


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Interrupt what takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    sys.exit(main())
