"""Every architecture of the catalogue through ``export_transformer``, verified, each in a process of its own.

    python -m benchmarks.transformer_sweep [--only causal-lm] [--every 10] [--json FILE]

``make transformer-sweep`` runs everything, for hours. What is verified is passed: scores at several sizes, and the
tokens that both generate. A refusal is an error of ours with its reason, anything else is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.export_cases.architectures.building import Recipe, call_of, module_of
from tests.export_cases.architectures.catalogue import recipes
from tests.export_cases.architectures.kinds import KINDS

VERDICTS = ("passed", "refused", "wrong", "crashed")
_GENERATE = ("causal-lm", "seq2seq-lm", "speech-seq2seq")
"""Kinds for which the sample is made by ``export_transformer`` itself."""
_SAME = ("causal-lm-past", "causal-lm-step")
"""Kinds that are the same models in other calls."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print the table; the exit code is 1 when a result is wrong or an error is not ours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="cases whose names contain one of these"
    )
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--json", type=Path, help="write one line per case to this file")
    parser.add_argument("--timeout", type=float, default=1200.0, help="seconds for one case")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(_judged(next(each for each in recipes() if _name(each) == options.one))))
        return 0
    chosen = [each for each in _chosen() if any(text in _name(each) for text in options.only)][:: options.every]
    outcomes = []
    with open(options.json or os.devnull, "w") as log:
        for outcome in _outcomes(chosen, options.timeout):
            outcomes.append(outcome)
            print(
                f"{outcome['verdict']:8} {outcome['seconds']:6.1f} s  {outcome['name']}  {outcome['why']}", flush=True
            )
            log.write(json.dumps(outcome) + "\n")
            log.flush()
    _print(outcomes)
    return int(any(outcome["verdict"] in ("wrong", "crashed") for outcome in outcomes))


def _chosen() -> list[Recipe]:
    return [recipe for recipe in recipes() if recipe.kind not in _SAME]


def _name(recipe: Recipe) -> str:
    return f"{recipe.kind}/{recipe.model_type}"


def _outcomes(chosen: Sequence[Recipe], timeout: float) -> Iterator[dict[str, Any]]:
    for recipe in chosen:
        command = [sys.executable, "-m", "benchmarks.transformer_sweep", "--one", _name(recipe)]
        began = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
            found = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            found = {"verdict": "refused", "why": f"it took more than {timeout:.0f} s"}
        except (ValueError, IndexError):
            found = {"verdict": "crashed", "why": (done.stderr.strip().splitlines() or ["no output"])[-1]}
        yield {"name": _name(recipe), "seconds": time.monotonic() - began} | found


def _judged(recipe: Recipe) -> dict[str, Any]:
    import entrepot as ep

    module = module_of(recipe)
    size = KINDS[recipe.kind].sizes[recipe.sizes[0]]
    samples = None if recipe.kind in _GENERATE else call_of(recipe, module, size)
    began = time.process_time()
    try:
        package = ep.export_transformer(module, samples)
    except ep.VerificationError as error:
        return {"verdict": "wrong", "why": error.message[:300]}
    except ep.EntrepotError as error:
        return {"verdict": "refused", "why": error.message.splitlines()[0][:300]}
    kind = package.manifest.kind
    return {"verdict": "passed", "why": kind, "processor": time.process_time() - began}


def _print(outcomes: Sequence[dict[str, Any]]) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for row in (outcome["name"].split("/")[0], "all"):
            counts[row][outcome["verdict"]] += 1
    print(f"\n{'':28}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for row, found in counts.items():
        print(f"{row:28}" + "".join(f"{found[verdict]:9}" for verdict in VERDICTS))


if __name__ == "__main__":
    sys.exit(main())
