"""ONNX's own backend tests: how many a provider passes, fails, and refuses.

    python -m benchmarks.backend_tests [--provider cpu] [--kind node] [--match softmax] [--hub] [--quiet]

Wrong results are listed by name with what differs, refusals with their reasons.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.sweeps.backend_suite import KINDS, outcomes

PROVIDERS = ("cpu", "reference", "onnxruntime", "torch", "torch:autotune", "torch:cuda", "torch:mps", "to_torch")


def main() -> int:
    """Run, print, and fail on a wrong result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", action="append", choices=PROVIDERS)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--match", default="", help="only tests whose name contains this")
    parser.add_argument("--hub", action="store_true", help="only tests written at the hub's opset")
    parser.add_argument("--quiet", action="store_true", help="only the counts")
    arguments = parser.parse_args()
    wrong = 0
    for provider in arguments.provider or ["cpu", "reference"]:
        start = time.process_time()
        found = list(outcomes(provider, arguments.kind or KINDS, arguments.match, hub_only=arguments.hub))
        counts = Counter(outcome.status for outcome in found)
        wrong += counts["wrong"]
        for outcome in [] if arguments.quiet else found:
            if outcome.status not in ("passed", "random"):
                print(f"{outcome.status:12}{outcome.name:60}{outcome.reason.splitlines()[-1][:200]}")
        parts = [f"{counts[status]} {status}" for status in ("passed", "wrong", "failed", "unsupported", "random")]
        print(f"{provider}: {len(found)} tests, {', '.join(parts)} ({time.process_time() - start:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
