"""Torch's own table of operators, exported by us and by torch.onnx; judged by ``tests.sweeps.opinfo``.

    python -m benchmarks.opinfo [--dtypes float32 int64] [--match linalg] [--every 5] [--peer] [--json results.jsonl]

Results are kept in the file as they arrive, and what it holds is not run again. Of each column the table says how many
operators are right on every sample that torch.export captures, and how many are wrong, refused, or lack a kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.sweeps.opinfo import DTYPES, VERDICTS, name_of, operators, outcome

_LIMIT = 30  # seconds for an operator and dtype
_CHUNK = 60  # of them for a process
Row = dict[str, Any]


class TooSlow(BaseException):
    """The time for one operator is over; no library catches it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and print the table; the exit code is 1 where our runtime is wrong on our own file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--match", default="", help="only operators whose name contains this; or names between commas")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th operator of each dtype")
    parser.add_argument("--samples", type=int, default=3, help="how many samples of each operator")
    parser.add_argument("--peer", action="store_true", help="ask torch.onnx.export, too")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="one line per operator and dtype; what is there is not run again")
    parser.add_argument("--list", nargs="*", default=["wrong", "refused", "crashed", "slow"])
    parser.add_argument("--keys", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.keys:
        return _work(options)
    with tempfile.TemporaryDirectory() as folder:
        options.json = options.json or Path(folder) / "opinfo.jsonl"
        infos = list(operators(options.match))[:: options.every]
        keys = [f"{name_of(info)}/{kind}" for kind in options.dtypes for info in infos]
        _run_missing(keys, options)
        rows = [row for row in _rows(options.json) if row["key"] in set(keys)]
    return _print(rows, options)


def _run_missing(keys: Sequence[str], options: argparse.Namespace) -> None:
    done = {row["key"] for row in _rows(options.json)}
    missing = [key for key in dict.fromkeys(keys) if key not in done]
    chunks = [missing[start : start + _CHUNK] for start in range(0, len(missing), _CHUNK)]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda chunk: _chunk(chunk, options), chunks))


def _chunk(keys: list[str], options: argparse.Namespace) -> None:
    """Run keys in one process, in another one after a crash."""
    while keys:
        command = [sys.executable, "-m", "benchmarks.opinfo", "--keys", json.dumps(keys), "--json", str(options.json)]
        command += ["--samples", str(options.samples), *(["--peer"] if options.peer else [])]
        code = subprocess.run(command, check=False).returncode
        done = {row["key"] for row in _rows(options.json)}
        keys = [key for key in keys if key not in done]
        if code and keys:
            _write(options.json, {"key": keys.pop(0), "state": "crashed", "reason": f"exit code {code}"})


def _work(options: argparse.Namespace) -> int:
    known = {name_of(info): info for info in operators()}
    signal.signal(signal.SIGALRM, _stop)
    for key in json.loads(options.keys):
        name, _, kind = key.partition("/")
        started = time.time()
        row: Row = {"key": key, "state": "done"}
        signal.alarm(_LIMIT)
        try:
            found = outcome(known[name], DTYPES[kind], most=options.samples, peer=options.peer)
            row |= {"state": "none"} if found is None else dataclasses.asdict(found)
        except TooSlow:
            row["state"] = "slow"
        except Exception as error:  # noqa: BLE001 - one broken operator is a row of the table, not its end
            row |= {"state": "crashed", "reason": f"{type(error).__name__}: {error}"[:300]}
        finally:
            signal.alarm(0)
        _write(options.json, row | {"seconds": round(time.time() - started, 2)})
    return 0


def _stop(*_: Any) -> None:
    raise TooSlow


def _write(path: Path, row: Row) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _rows(path: Path) -> Iterator[Row]:
    for line in path.read_text().splitlines() if path.exists() else ():
        yield json.loads(line)


def _print(rows: Sequence[Row], options: argparse.Namespace) -> int:
    states = Counter(row["state"] for row in rows)
    captured = [row for row in rows if row.get("captured")]
    print(f"{len(rows)} operators and dtypes: {dict(states)}; torch.export captures {len(captured)}")
    for row in rows:
        verdict = row.get("verdicts", {}).get("cpu", row["state"])
        if verdict in options.list:
            print(f"{verdict:8} {row['key']:50} {row.get('reasons', {}).get('cpu', row.get('reason', ''))[:160]}")
    for kind in options.dtypes:
        _print_shares(kind, [row for row in rows if row["key"].endswith(f"/{kind}")])
    return int(any(row["verdicts"]["cpu"] == "wrong" for row in captured) or bool(states["crashed"]))


def _print_shares(kind: str, rows: Sequence[Row]) -> None:
    captured = [row for row in rows if row.get("captured")]
    lost = sum(row["state"] in ("slow", "crashed") for row in rows)
    for column in ("cpu", "onnxruntime", "torch.onnx"):
        counts = Counter(row["verdicts"][column] for row in captured if column in row["verdicts"])
        if counts:
            # onnxruntime is not asked about empty inputs, nor where the export was refused
            whole = counts.total() if column == "onnxruntime" else len(captured) + lost
            listed = ", ".join(f"{counts[each]} {each}" for each in VERDICTS)
            print(f"{kind:8} {column:12} {counts['right'] / whole:6.1%} right of {whole}; {listed}")


if __name__ == "__main__":
    sys.exit(main())
