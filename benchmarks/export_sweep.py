"""The corpora of ``tests/export_cases`` exported with nothing but a sample, judged by ``tests.sweeps``.

    python -m benchmarks.export_sweep [--corpus modules] [--only recurrence] [--list static] [--json FILE [--resume]]

``make export-sweep`` runs everything, for hours. ``--processes`` workers judge one case after another; one that dies,
or takes more than ``--timeout`` seconds of its processor for a case, is replaced. With ``--json`` each outcome is
written as a line when it is known, and ``--resume`` leaves out what the file has.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.export_cases import CORPORA, PACKAGES, ROUND_TRIPS, cases, judge_of
from tests.export_cases.case import Case

COLUMNS = ("passed", "static", "refused", "wrong", "crashed", "invalid")
PATIENCE = 20
"""How many times as long a case may take on a machine that is busy with other things."""
STARVED = (
    "the process died",
    "MemoryError",
    "Failed to serialize proto",
    "could not create a primitive",
    "can't allocate memory",
)
"""What outcomes say that may come of the memory which cases before have left."""
FRESH_AFTER = 25
"""Cases after which a worker is replaced, so that one case's memory is not another's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print the tables; the exit code is 1 when a result is wrong or an error is not ours."""
    options = _options(arguments)
    if options.worker:
        _serve(options.memory, options.timeout)
        return 0
    chosen = _chosen(options)
    known = _known(options)
    left = [case for case in chosen if case.name not in known]
    print(f"{len(chosen)} cases, {len(chosen) - len(left)} of them known", flush=True)
    with open(options.json or os.devnull, "a" if options.resume else "w") as log:
        for outcome in _outcomes(left, options):
            known[outcome["name"]] = outcome
            log.write(json.dumps(outcome) + "\n")
            log.flush()
            _tell(outcome, len(known), len(chosen), options)
    outcomes = [known[case.name] for case in chosen]
    _print(outcomes)
    if "raw_ops" in options.corpus:
        _print_coverage()
    if "applications" in options.corpus:
        _print_networks([outcome for outcome in outcomes if outcome["corpus"] == "applications"])
    return int(any(outcome["verdict"] in ("wrong", "crashed") for outcome in outcomes))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="*", default=CORPORA, choices=(*CORPORA, PACKAGES, ROUND_TRIPS))
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="cases whose names contain one of these"
    )
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--start", type=int, default=0, help="the first of them, by its number")
    parser.add_argument("--list", nargs="*", default=["wrong", "crashed"], choices=COLUMNS, help="verdicts to print")
    parser.add_argument("--names", action="store_true", help="print the names of the cases, and run nothing")
    parser.add_argument("--json", type=Path, help="write one line per case to this file")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=300.0, help="processor seconds for one case")
    parser.add_argument("--memory", type=float, default=12.0, help="GiB of address space of a worker")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.names:
        print("\n".join(case.name for case in _chosen(options)))
        raise SystemExit(0)
    return options


def _chosen(options: argparse.Namespace) -> list[Case]:
    every = [case for corpus in options.corpus for case in cases(corpus)]
    named = [case for case in every if any(text in case.name for text in options.only)]
    return named[options.start :: options.every]


def _known(options: argparse.Namespace) -> dict[str, dict[str, object]]:
    if not (options.resume and options.json and options.json.exists()):
        return {}
    outcomes = map(json.loads, options.json.read_text().splitlines())
    return {outcome["name"]: outcome for outcome in outcomes}


def _outcomes(left: Sequence[Case], options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Every outcome as soon as it is known."""
    waiting: queue.SimpleQueue[Case | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()
    count = min(options.processes, len(left))
    for item in (*left, *[None] * count):
        waiting.put(item)
    for _ in range(count):
        threading.Thread(target=_drive, args=(waiting, done, options), daemon=True).start()
    for _ in left:
        yield done.get()


def _drive(
    waiting: queue.SimpleQueue[Case | None], done: queue.SimpleQueue[dict[str, object]], options: argparse.Namespace
) -> None:
    worker = _Worker(options)
    while (case := waiting.get()) is not None:
        done.put(worker.run(case))
    worker.stop()


class _Worker:
    """A process that judges cases one after another, and is replaced when it hangs, dies or has done many."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._served = 0

    def run(self, case: Case) -> dict[str, object]:
        """The outcome of a case; one that dies, or lacks memory, after others gets a process of its own."""
        outcome = self._tried(case)
        if self._served > 1 and any(word in str(outcome["why"]) for word in STARVED):
            self.stop()
            outcome = self._tried(case)
        return outcome

    def _tried(self, case: Case) -> dict[str, object]:
        process = self._ready()
        assert process.stdin is not None
        process.stdin.write(f"{case.corpus} {case.name}\n".encode())
        process.stdin.flush()
        line = self._answer(process)
        if line is None or process.returncode == -signal.SIGPROF:
            self.stop()
            return _failed(case, f"it took more than {self._options.timeout:g} s")
        if not line:
            self.stop()
            return _failed(case, f"the process died (exit code {process.returncode})")
        return json.loads(line)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ready(self) -> subprocess.Popen[bytes]:
        if self._served == FRESH_AFTER:
            self.stop()
        if self._process is None:
            command = [
                sys.executable,
                "-m",
                "benchmarks.export_sweep",
                "--worker",
                "--memory",
                str(self._options.memory),
                "--timeout",
                str(self._options.timeout),
            ]
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                bufsize=0,
            )
            self._served = 0
        self._served += 1
        return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """A line; empty if the process died, ``None`` if it takes too long."""
        assert process.stdout is not None
        line, ends = b"", time.monotonic() + PATIENCE * self._options.timeout
        while not line.endswith(b"\n"):
            if not select.select([process.stdout], [], [], max(0.0, ends - time.monotonic()))[0]:
                return None
            read = os.read(process.stdout.fileno(), 1 << 16)
            if not read:
                process.wait()
                return b""
            line += read
        return line


def _failed(case: Case, why: str) -> dict[str, object]:
    from tests.sweeps.outcome import Outcome

    return dataclasses.asdict(Outcome(case.name, case.corpus, "crashed", why))


def _serve(memory: float, timeout: float) -> None:
    """Judge the cases named on standard input; whatever a module prints goes to standard error.

    The process ends where a case takes too much of the processor's time, however busy the machine is.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    limit = int(memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    found: dict[str, dict[str, Case]] = {}
    for line in sys.stdin:
        corpus, _, name = line.strip().partition(" ")
        by_name = found.setdefault(corpus, {}) or found[corpus].update({case.name: case for case in cases(corpus)})
        signal.setitimer(signal.ITIMER_PROF, timeout)
        outcome = judge_of(corpus)((by_name or found[corpus])[name])
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
        answers.flush()


def _tell(outcome: dict[str, object], done: int, total: int, options: argparse.Namespace) -> None:
    if outcome["verdict"] in options.list:
        print(f"{outcome['verdict']}: {outcome['name']}: {outcome['why']}", flush=True)
    if sys.stderr.isatty():
        print(f"\r{done} of {total}", end="", file=sys.stderr, flush=True)


def _print(outcomes: Sequence[dict[str, object]]) -> None:
    from tests.sweeps.outcome import reason

    table: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        family = str(outcome["name"]).partition("/")[0]
        table[family][str(outcome["verdict"])] += 1
        table[f"all {outcome['corpus']}"][str(outcome["verdict"])] += 1
    print(f"\n{'':24}" + "".join(f"{column:>9}" for column in COLUMNS))
    for name, counts in sorted(table.items(), key=lambda item: item[0].startswith("all ")):
        share = f"{counts['passed'] / (counts.total() - counts['invalid'] or 1):>9.1%}"
        print(f"{name:24}" + "".join(f"{counts[column]:>9}" for column in COLUMNS) + share)
    for verdict in COLUMNS[1:]:
        reasons = Counter(reason(str(outcome["why"])) for outcome in outcomes if outcome["verdict"] == verdict)
        if reasons:
            print(f"\n{verdict}")
        for text, count in reasons.most_common(40):
            print(f"{count:>6}  {text}")
    lacking = [outcome for outcome in outcomes if outcome.get("lacks")]
    if lacking:
        print(f"\nnot run by onnxruntime, and judged on our own runtime instead: {len(lacking)}")
    for outcome in lacking:
        print(f"  {outcome['name']}: {outcome['lacks']}")


def _print_coverage() -> None:
    """Which operators of TensorFlow have a translation."""
    from tests.sweeps.raw_ops import coverage

    translated, missing = coverage()
    print(f"\n{len(translated)} of {len(translated) + len(missing)} numeric operators with a kernel are translated")
    print(f"not translated: {' '.join(missing)}")


def _print_networks(outcomes: Sequence[dict[str, object]]) -> None:
    """What each whole network costs."""
    print(f"\n{'':34}{'verdict':>9}{'seconds':>9}{'nodes':>7}{'transposed':>12}")
    for outcome in outcomes:
        name = str(outcome["name"]).partition("/")[2]
        cost = f"{outcome['seconds']:>9.1f}{outcome['nodes']:>7}{outcome['transposes']:>12}"
        print(f"{name:34}{outcome['verdict']:>9}{cost}")


if __name__ == "__main__":
    sys.exit(main())
