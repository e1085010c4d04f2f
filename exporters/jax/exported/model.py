"""What ``jax.export`` made, as a model: called as XLA runs it, followed as a program of StableHLO."""

from __future__ import annotations

import inspect
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from entrepot.exporters.jax.dims import Sizes
from entrepot.exporters.jax.exported.program import Program
from entrepot.exporters.jax.models import Model
from entrepot.exporters.jax.running import model_errors
from entrepot.exporters.jax.upstream import DESERIALISING
from entrepot.exporters.sample import Sample
from entrepot.ir.errors import InputError, ModelFormatError

_SIZES = (2, 3, 4, 5, 8, 16, 32, 64)


def read(content: str | os.PathLike[str] | bytes | bytearray | memoryview) -> jax.export.Exported:
    """What ``Exported.serialize`` wrote.

    Args:
        content: A file, or its bytes.

    Raises:
        ModelFormatError: JAX cannot read it.
    """
    path = Path(content) if isinstance(content, str | os.PathLike) else None
    data = bytearray(path.read_bytes() if path is not None else content)  # type: ignore[arg-type]
    try:
        return jax.export.deserialize(data)
    except DESERIALISING as error:
        text = next(iter(str(error).splitlines()), "")
        raise ModelFormatError(f"JAX cannot read what jax.export wrote: {text}", path=path) from error


def exported_model(exported: jax.export.Exported) -> Model:
    """A function with the signature that it had.

    Raises:
        InputError: It is for another platform, or several devices.
        ModelFormatError: Its program cannot be read.
    """
    if "cpu" not in exported.platforms or exported.nr_devices != 1:
        where = f"{exported.nr_devices} devices" if exported.nr_devices != 1 else ", ".join(exported.platforms)
        raise InputError(
            f"'{exported.fun_name}' was exported for {where}, where it cannot be run to be compared",
            hint="export it for one processor: jax.export.export(f, platforms=['cpu'])",
        )
    try:
        program = Program(exported)
    except DESERIALISING as error:
        raise ModelFormatError(f"the program in '{exported.fun_name}' is broken: {error}") from error

    def call(*args: Any, **kwargs: Any) -> Any:
        return exported.call(*args, **kwargs)

    def followed(*args: Any, **kwargs: Any) -> Any:
        return jax.tree.unflatten(exported.out_tree, program(jax.tree.leaves((args, kwargs))))

    call.__signature__ = _signature(exported, program)  # type: ignore[attr-defined]
    name = exported.fun_name if exported.fun_name.isidentifier() else "function"
    return Model(call, name, f"jax.export:{exported.fun_name}", "exported function", followed=followed)


def _signature(exported: jax.export.Exported, program: Program) -> inspect.Signature:
    tree: Any = exported.in_tree
    args, kwargs = tree.children()
    leaves = iter(program.argument_names(len(exported.in_avals)))
    taken: set[str] = set()
    parameters = []
    for at, each in enumerate(args.children()):
        roots = {re.split(r"[\[.]", next(leaves))[0] for _ in range(each.num_leaves)}
        root = roots.pop() if len(roots) == 1 else ""
        name = root if root.isidentifier() and root not in taken else f"arg{at}"
        taken.add(name)
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY))
    names = sorted(jax.tree.unflatten(kwargs, range(kwargs.num_leaves)))
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    return inspect.Signature(parameters)


def made_sample(exported: jax.export.Exported) -> Sample:
    """Arrays of the shapes and types that it takes, at the first sizes that it accepts.

    Raises:
        InputError: It accepts none of them.
    """
    names = sorted({name for aval in exported.in_avals for dim in aval.shape for name in _symbols(dim)})
    for sizes in _choices(names):
        generator = np.random.default_rng(0)
        arrays = [_array(aval, sizes, generator) for aval in exported.in_avals]
        args, kwargs = jax.tree.unflatten(exported.in_tree, arrays)
        try:
            jax.eval_shape(exported.call, *args, **kwargs)
        except model_errors():
            continue
        return Sample(args, kwargs)
    raise InputError("no sample was given, and none of ours is accepted", hint="give one: ep.export(exported, x)")


def _symbols(dim: Any) -> list[str]:
    return [] if isinstance(dim, int) else re.findall(r"[A-Za-z_]\w*(?!\w|\()", str(dim))


def _choices(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes for symbols: different ones, then the same for all."""
    for start in range(len(_SIZES)):
        turned = itertools.islice(itertools.cycle(_SIZES), start, start + len(names))
        yield dict(zip(names, turned, strict=True))
    for size in _SIZES:
        yield dict.fromkeys(names, size)


def _array(aval: Any, sizes: dict[str, int], generator: np.random.Generator) -> np.ndarray:
    known = Sizes(None, sizes)  # type: ignore[arg-type]
    shape = [int(known.of(dim)) for dim in aval.shape]  # type: ignore[arg-type]
    dtype = np.dtype(aval.dtype)
    if dtype.kind in "iub":
        return generator.integers(0, 2, shape).astype(dtype)
    return np.asarray(generator.standard_normal(shape)).astype(dtype)
