"""Every model of the zoo, exported with ``dynamic="auto"``: which axes came out dynamic, and whether it was verified.

    python -m benchmarks.zoo_exports [NAME ...]

The last column compares the axes with those that a reader of the model's code expects (``ZooModel.dynamic``).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import entrepot as ep
from entrepot import models_zoo
from entrepot.models_zoo import ZooModel


def main(arguments: Sequence[str] | None = None) -> int:
    """Export the named models, or all; the exit code is 1 when one is refused or differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=models_zoo.names())
    names = parser.parse_args(arguments).names
    print(f"{'model':22}{'seconds':>8}  {'verified on':18} {'expected':9} dynamic axes")
    verified = [_export(models_zoo.build(name)) for name in names]
    print(f"{sum(verified)} of {len(verified)} models exported and verified")
    return 0 if all(verified) else 1


def _export(zoo: ZooModel) -> bool:
    start = time.perf_counter()
    try:
        model = ep.export(zoo.module, zoo.sample, progress=False)
    except ep.EntrepotError as error:
        print(f"{zoo.name:22}{time.perf_counter() - start:8.1f}  {type(error).__name__}: {error}", flush=True)
        return False
    axes = _dynamic(model)
    expected = "yes" if set(axes) == zoo.dynamic else "NO"
    shown = ", ".join(f"{axis}={symbol}" for axis, symbol in axes.items())
    providers = "+".join(model.report.providers) if model.report is not None and model.report.ok else "NOT VERIFIED"
    print(f"{zoo.name:22}{time.perf_counter() - start:8.1f}  {providers:18} {expected:9} {shown}", flush=True)
    return model.report is not None and model.report.ok


def _dynamic(model: ep.Model) -> dict[str, str]:
    """``{"x.0": "batch"}``: the axes of the inputs that have a symbol."""
    return {
        f"{spec.name}.{axis}": dim
        for spec in model.inputs
        for axis, dim in enumerate(spec.shape or ())
        if isinstance(dim, str)
    }


if __name__ == "__main__":
    sys.exit(main())
