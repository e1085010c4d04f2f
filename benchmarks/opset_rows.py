"""Every version step of every operator, in both directions, on the models of ``tests.sweeps.rows``.

python -m benchmarks.opset_rows [--match Resize] [--every 10] [--strength 1]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from entrepot.ir.opset.rules import Step
from tests.judges.verdict import VERDICTS
from tests.sweeps import old_nodes, old_rows
from tests.sweeps.backend_rows import backend_rows
from tests.sweeps.coverage import Rows, unreached
from tests.sweeps.rows import BAD, everything, judged, operators


def _old_files(match: str, every: int) -> Iterator[tuple[Step, str, str]]:
    """What only files of opsets 1 to 6 contain, from there up."""
    for node in [node for node in old_nodes.old_nodes() if match in node.op_type][::every]:
        yield from old_rows.judged(node)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print verdicts by direction, the rows never reached, and everything wrong; its count is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only operators whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="only every N-th case and variant")
    parser.add_argument("--strength", type=int, default=2, choices=(0, 1, 2), help="0: no variants; 2: all pairs")
    options = parser.parse_args(arguments)
    started, rows, bad, counts = time.time(), Rows(), [], Counter[bool]()
    chosen = itertools.islice(everything(options.match, options.strength), 0, None, options.every)
    for case, is_variant in chosen:
        counts[is_variant] += 1
        for step, verdict, why in judged(case, changing=is_variant):
            rows.add(step, verdict, why)
            if verdict in BAD:
                bad.append(f"{verdict}: {step.op_type} {step.start} -> {step.stop}: {why}")
    covered = operators("").keys()
    for step, verdict, why in itertools.chain(
        _old_files(options.match, options.every), backend_rows(covered, options.match)
    ):
        rows.add(step, verdict, why)
        if verdict in BAD:
            bad.append(f"{verdict}: {step.op_type} {step.start} -> {step.stop}: {why}")
    print(rows.table(VERDICTS))
    print(unreached(rows, options.match))
    print("\n".join(bad[:200]))
    print(f"{counts[False]} cases, {counts[True]} variants, {time.time() - started:.0f} s: {len(bad)} bad")
    return min(len(bad), 100)


if __name__ == "__main__":
    sys.exit(main())
