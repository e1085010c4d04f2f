"""Both corpora of exports beside ``torch.onnx.export`` with the same dynamic axes: nodes, and time in onnxruntime.

    python -m benchmarks.export_graphs [--corpus modules] [--only TEXT ...] [--every 6] [--show] [--json FILE]

Models of transformers return no caches here, for which torch.onnx has no form. Nodes inside branches and loops count
too. Time is CPU time of a run of the sample on one thread, so that other load on the machine hardly shows: best of many
rounds, both files in turn, each round of many runs where they are short; small models spend it between nodes. The exit
code is 1 if any of our files has more nodes. ``--resume`` leaves out what the file of ``--json`` has.

Two things are counted apart. A file of torch.onnx that is wrong in a run where ours is right (``tests/sweeps/peers.py``
has the runs) is no peer. And nodes that depend on weights alone are in no run: onnxruntime computes them once, and we
keep them, so that parameters keep their names.
"""

from __future__ import annotations

import argparse
import functools
import gc
import io
import json
import logging
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx_ir
import torch

import entrepot as ep
from tests.export_cases import CORPORA, cases
from tests.export_cases.case import Case
from tests.sweeps.exports import arrays, bound
from tests.sweeps.nodes import is_plain, operators, operators_of_inputs, torch_export, without_caches
from tests.sweeps.peers import failures

SECONDS = 180
ROUNDS = 30
ROUND = 2e-3
"""Seconds that a round should last; at least one run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per case, and the totals."""
    options = _options(arguments)
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    signal.signal(signal.SIGPROF, _too_late)
    known = _known(options)
    print(f"{'case':44}{'ours':>6}{'torch':>7}{'us':>9}{'torch':>9}{'ratio':>7}", flush=True)
    with open(options.json or os.devnull, "a" if options.resume else "w") as log:
        for case in _chosen(options):
            if case.name not in known:
                known[case.name] = _row(case, show=options.show)
                log.write(json.dumps([case.name, known[case.name]]) + "\n")
                log.flush()
    return _total([Row(*row) for row in known.values() if not isinstance(row, str)])


def _total(rows: Sequence[Row]) -> int:
    peers = [row for row in rows if not row.wrong]
    more = sum(row.run[0] > row.run[1] for row in peers)
    kept = sum(row.nodes[0] > row.nodes[1] for row in peers) - more
    ratios = [row.times[0] / row.times[1] for row in peers]
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    print(f"{len(rows)} cases that both export; in {len(rows) - len(peers)} torch.onnx is wrong where ours is right.")
    print(
        f"Of the others: more nodes in {more}, and in {kept} by nodes of weights alone; time {mean:.3f} on the ", end=""
    )
    slow = sum(ratio > 1.1 for ratio in ratios)
    print(f"geometric mean, above 1.1 in {slow}, at most {max(ratios, default=0):.2f}")
    return 1 if more else 0


class Row(NamedTuple):
    """What is measured of a case, ours before theirs.

    Attributes:
        nodes: All of a file.
        run: Those that depend on inputs.
        times: Microseconds of a run.
        wrong: Runs in which theirs is wrong and ours is right.
    """

    nodes: tuple[int, int]
    run: tuple[int, int]
    times: tuple[float, float]
    wrong: list[str]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="*", default=CORPORA, choices=CORPORA)
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="cases with one of these in their names"
    )
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--start", type=int, default=0, help="leave out so many cases before")
    parser.add_argument("--show", action="store_true", help="list the operators that differ in number")
    parser.add_argument("--json", type=Path, help="write one line per case to this file")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace) -> list[Case]:
    every = [case for corpus in options.corpus for case in cases(corpus)]
    return [case for case in every if any(text in case.name for text in options.only)][options.start :: options.every]


def _known(options: argparse.Namespace) -> dict[str, Any]:
    if not (options.resume and options.json and options.json.exists()):
        return {}
    return dict(map(json.loads, options.json.read_text().splitlines()))


def _row(case: Case, *, show: bool) -> Row | str:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return _measured(case, show=show)
    except Exception as error:  # noqa: BLE001 - either side may fail in any way; then there is nothing to compare
        return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.collect()


def _measured(case: Case, *, show: bool) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, calls = case.build()
        if not is_plain(calls[0]):
            raise ValueError("torch takes the sample apart in another way")
        feeds = list(arrays(bound(module, calls[0])))
        ours = ep.export(without_caches(module), calls[0], verify=False, progress=False)
        module, calls = case.build()
        theirs = torch_export(without_caches(module).eval(), calls[0], ours)
    file = io.BytesIO()
    theirs.save(file)
    models = ours.ir, theirs.model
    counts = [operators(model) for model in models]
    sessions = [
        _session(each) for each in (onnx_ir.serde.serialize_model(ours.ir).SerializeToString(), file.getvalue())
    ]
    failed = [failures(case, functools.partial(_run, session), without_caches) for session in sessions]
    if "call 0" in failed[0]:
        raise ValueError("ours does not compute what the module computes")
    row = Row(
        (counts[0].total(), counts[1].total()),
        (operators_of_inputs(models[0]).total(), operators_of_inputs(models[1]).total()),
        (math.nan, math.nan) if "call 0" in failed[1] else _times(sessions, feeds),
        sorted(failed[1] - failed[0]),
    )
    _print(case, row)
    if show:
        print(f"    only ours:  {dict(counts[0] - counts[1])}")
        print(f"    only torch: {dict(counts[1] - counts[0])}", flush=True)
    return row


def _print(case: Case, row: Row) -> None:
    flag = "  MORE" if row.run[0] > row.run[1] else "  of weights" if row.nodes[0] > row.nodes[1] else ""
    if row.wrong:
        flag = f"  torch.onnx is wrong: {', '.join(row.wrong)}"
    (ours, theirs), times = row.nodes, row.times
    print(f"{case.name:44}{ours:6}{theirs:7}{times[0]:9.1f}{times[1]:9.1f}{times[0] / times[1]:7.2f}{flag}", flush=True)


def _session(file: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(file, options)


def _run(session: Any, feeds: Sequence[np.ndarray]) -> Any:
    return session.run(None, _named(session, feeds))


def _named(session: Any, feeds: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {value.name: feed for value, feed in zip(session.get_inputs(), feeds, strict=True)}


def _times(sessions: Sequence[Any], feeds: Sequence[np.ndarray]) -> tuple[float, float]:
    """Microseconds of a run of each."""
    given = [_named(session, feeds) for session in sessions]
    best = [math.inf, math.inf]
    runs = 1
    for _ in range(ROUNDS):
        for at, session in enumerate(sessions):
            best[at] = min(best[at], _seconds(session, given[at], runs))
        runs = max(1, min(100, round(ROUND / min(best))))
    return 1e6 * best[0], 1e6 * best[1]


def _seconds(session: Any, feeds: dict[str, np.ndarray], runs: int) -> float:
    started = time.thread_time()
    for _ in range(runs):
        session.run(None, feeds)
    return (time.thread_time() - started) / runs


def _too_late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of CPU time")


if __name__ == "__main__":
    sys.exit(main())
