"""Every torch model of the zoo, exported once and converted to every opset: what works, and is it still correct?

    python -m benchmarks.zoo_opsets [NAME ...] [--targets 7-19,21-26,28] [--cache FOLDER]

Verdicts are those of ``tests.sweeps.zoo``. ``-`` is a refusal; the reasons are counted below the table. Exports are the
slow part: they stay in the cache folder for the next run, unless ``--fresh`` asks for new ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from entrepot import models_zoo
from tests.sweeps.zoo import exported, judge

TARGETS = "7-19,21-26,28"
BAR = range(9, 18)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the totals; the exit code is 1 when a result is wrong or invalid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=models_zoo.names())
    parser.add_argument("--targets", default=TARGETS, help="opsets, as in 7,9,11-13")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "entrepot-zoo-opsets")
    parser.add_argument("--fresh", action="store_true", help="export again")
    options = parser.parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    targets = list(_numbers(options.targets))
    started = time.perf_counter()
    totals: dict[int, Counter[str]] = {target: Counter() for target in targets}
    reasons: Counter[str] = Counter()
    print(f"{'model':22}" + "".join(f"{target:>4}" for target in targets))
    for name in options.names:
        model, cases = exported(name, options.cache, fresh=options.fresh)
        found = {target: judge(model, target, cases) for target in targets}
        print(f"{name:22}" + "".join(f"{verdict[:3]:>4}" for verdict, _ in found.values()), flush=True)
        for target, (verdict, why) in found.items():
            totals[target][verdict] += 1
            if verdict in ("WRONG", "INVALID"):
                print(f"    {target}: {verdict}: {why}", flush=True)
            elif verdict == "-":
                reasons[why] += 1
    _print_totals(totals, reasons, time.perf_counter() - started)
    return int(any(counts["WRONG"] + counts["INVALID"] for counts in totals.values()))


def _print_totals(totals: dict[int, Counter[str]], reasons: Counter[str], seconds: float) -> None:
    for verdict in ("ok", "-", "WRONG", "INVALID"):
        print(f"{verdict:22}" + "".join(f"{counts[verdict]:>4}" for counts in totals.values()))
    bar = sum((totals[target] for target in totals if target in BAR), Counter())
    if bar:
        print(f"\nto {BAR[0]}..{BAR[-1]}: {bar['ok']} of {bar.total()} ok ({bar['ok'] / bar.total():.1%}), ", end="")
        print(f"{bar['WRONG']} wrong, {bar['INVALID']} invalid")
    everything = sum(totals.values(), Counter())
    print(f"all: {everything['ok']} of {everything.total()} ok, in {seconds:.0f} s; refusals by reason:")
    for reason, count in reasons.most_common():
        print(f"{count:>5}  {reason}")


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


if __name__ == "__main__":
    sys.exit(main())
