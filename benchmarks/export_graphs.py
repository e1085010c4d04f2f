"""Both corpora of exports beside ``torch.onnx.export`` with the same dynamic axes: nodes, and time in onnxruntime.

    python -m benchmarks.export_graphs [--corpus modules] [--only TEXT ...] [--every 6] [--show] [--json FILE]

Models of transformers return no caches here, for which torch.onnx has no form. Nodes inside branches and loops count
too. Time is CPU time of a run of the sample on one thread, so that other load on the machine hardly shows: best of many
rounds, both files in turn, each round of many runs where they are short; small models spend it between nodes. The exit
code is 1 if any of our files has more nodes. ``--resume`` leaves out what the file of ``--json`` has.
"""

from __future__ import annotations

import argparse
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
from typing import Any

import numpy as np
import onnx_ir
import torch

import entrepot as ep
from tests.export_cases import CORPORA, cases
from tests.export_cases.case import Case
from tests.sweeps.exports import arrays, bound
from tests.sweeps.nodes import is_plain, operators, torch_export, without_caches

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
    rows = [row for row in known.values() if isinstance(row, list)]
    more = sum(row[0] > row[1] for row in rows)
    ratios = [row[2] / row[3] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    print(f"{len(rows)} cases that both export: more nodes in {more}; time {mean:.3f} on the geometric mean, ", end="")
    print(f"above 1.1 in {sum(ratio > 1.1 for ratio in ratios)}, at most {max(ratios, default=0):.2f}")
    return 1 if more else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="*", default=CORPORA, choices=CORPORA)
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="cases with one of these in their names"
    )
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--show", action="store_true", help="list the operators that differ in number")
    parser.add_argument("--json", type=Path, help="write one line per case to this file")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace) -> list[Case]:
    every = [case for corpus in options.corpus for case in cases(corpus)]
    return [case for case in every if any(text in case.name for text in options.only)][:: options.every]


def _known(options: argparse.Namespace) -> dict[str, Any]:
    if not (options.resume and options.json and options.json.exists()):
        return {}
    return dict(map(json.loads, options.json.read_text().splitlines()))


def _row(case: Case, *, show: bool) -> list[float] | str:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return _measured(case, show=show)
    except Exception as error:  # noqa: BLE001 - either side may fail in any way; then there is nothing to compare
        return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.collect()


def _measured(case: Case, *, show: bool) -> list[float]:
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
    ir = theirs.model
    counts = operators(ours.ir), operators(ir)
    times = _times(onnx_ir.serde.serialize_model(ours.ir).SerializeToString(), file.getvalue(), feeds)
    sizes = [counts[0].total(), counts[1].total()]
    flag = "  MORE" if sizes[0] > sizes[1] else ""
    line = f"{case.name:44}{sizes[0]:6}{sizes[1]:7}{times[0]:9.1f}{times[1]:9.1f}{times[0] / times[1]:7.2f}{flag}"
    print(line, flush=True)
    if show:
        print(f"    only ours:  {dict(counts[0] - counts[1])}")
        print(f"    only torch: {dict(counts[1] - counts[0])}", flush=True)
    return [*sizes, *times]


def _times(ours: bytes, theirs: bytes, feeds: list[np.ndarray]) -> list[float]:
    """Microseconds of a run of each."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    sessions = [onnxruntime.InferenceSession(file, options) for file in (ours, theirs)]
    given = [{value.name: feed for value, feed in zip(s.get_inputs(), feeds, strict=True)} for s in sessions]
    best = [math.inf, math.inf]
    runs = 1
    for _ in range(ROUNDS):
        for at, session in enumerate(sessions):
            best[at] = min(best[at], _seconds(session, given[at], runs))
        runs = max(1, min(100, round(ROUND / min(best))))
    return [1e6 * seconds for seconds in best]


def _seconds(session: Any, feeds: dict[str, np.ndarray], runs: int) -> float:
    started = time.thread_time()
    for _ in range(runs):
        session.run(None, feeds)
    return (time.thread_time() - started) / runs


def _too_late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of CPU time")


if __name__ == "__main__":
    sys.exit(main())
