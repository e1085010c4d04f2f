"""Every backend test of onnx at every opset, judged by ``tests.sweeps.corpus``: a table, and the refusals by reason.

    python -m benchmarks.opset_corpus [--via 28] [--inside branch] [--targets 7-25] [--match resize] [--every 6]

On the way down the last columns count what ``tests.judges.expressible`` says about the test: how many can certainly be
expressed at that opset, and how many of those came out right.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.judges.verdict import VERDICTS
from tests.sweeps.corpus import BAD, KINDS, sweep
from tests.sweeps.inside import PLACES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="7-25,28", help="opsets, as in 7,9,11-13")
    parser.add_argument(
        "--via", type=int, help="convert to this opset first, and only to targets that can express the test"
    )
    parser.add_argument("--inside", choices=PLACES, help="put every test there first")
    parser.add_argument("--kind", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--match", default="", help="only tests whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="only every n-th test")
    parser.add_argument("--list", nargs="*", default=["wrong", "invalid", "crashed"], choices=VERDICTS)
    parser.add_argument("--json", help="write one line per conversion to this file")
    options = parser.parse_args(arguments)
    started = time.time()
    table, reasons = sweep(options)
    print(f"{'opset':>6}" + "".join(f"{verdict:>12}" for verdict in (*VERDICTS, "expressible", "of it right")))
    for target, counts in sorted(table.items()):
        print(f"{target:>6}" + "".join(f"{counts[verdict]:>12}" for verdict in VERDICTS) + _share(counts))
    print("  down" + " " * 12 * len(VERDICTS) + _share(sum(table.values(), Counter())))
    print(f"\nrefusals by reason ({time.time() - started:.0f} s)")
    for reason, count in reasons.most_common(40):
        print(f"{count:>6}  {reason}")
    return int(any(counts["wrong"] + counts["invalid"] + counts["crashed"] for counts in table.values()))


def _share(counts: Counter[str]) -> str:
    """How many of the certainly expressible tests came out right, among those that an evaluator can judge."""
    right, bad = counts["certain, right"], sum(counts[f"certain, {verdict}"] for verdict in BAD)
    return f"{right + bad:>12}{right / (right + bad):>12.1%}" if right + bad else ""


if __name__ == "__main__":
    sys.exit(main())
