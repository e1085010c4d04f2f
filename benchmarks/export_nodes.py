"""How many nodes ``ep.export`` writes, beside what ``torch.onnx.export`` writes with the same dynamic axes.

    python -m benchmarks.export_nodes [NAME ...] [--show]

Nodes inside branches and loops count too; ``before`` is ``optimize="none"``. The exit code is 1 if any of our files has
more nodes than torch.onnx's.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

import torch

import entrepot as ep
from entrepot import models_zoo
from entrepot.models_zoo import ZooModel
from tests.sweeps.nodes import export_torch, operators


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=models_zoo.names())
    parser.add_argument("--show", action="store_true", help="list the operators that differ in number")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)  # torch.onnx says at each call that torchvision is missing
    print(f"{'model':22}{'before':>8}{'ours':>8}{'torch.onnx':>12}", flush=True)
    more = sum(_compare(models_zoo.build(name), show=options.show) for name in options.names)
    print(f"{more} of {len(options.names)} models have more nodes than torch.onnx writes")
    return 1 if more else 0


def _compare(zoo: ZooModel, *, show: bool) -> bool:
    before = ep.export(zoo.module, zoo.sample, verify=False, progress=False, optimize="none")
    model = ep.export(zoo.module, zoo.sample, verify=False, progress=False)
    ours = operators(model.ir)
    line = f"{zoo.name:22}{operators(before.ir).total():8}{ours.total():8}"
    try:
        theirs = operators(export_torch(zoo, model))
    except torch.onnx.OnnxExporterError:
        print(f"{line}{'refused':>12}", flush=True)
        return False
    more = ours.total() > theirs.total()
    print(f"{line}{theirs.total():12}{'  MORE' if more else ''}", flush=True)
    if show:
        print(f"    only ours:  {dict(ours - theirs)}\n    only torch: {dict(theirs - ours)}", flush=True)
    return more


if __name__ == "__main__":
    sys.exit(main())
