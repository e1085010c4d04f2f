"""The text of a model over NumPy: imports, weights, and one function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import entrepot
from entrepot.importers.fixed import fixed_sizes
from entrepot.importers.numpy.spellings import spelled
from entrepot.ir.limits import Limits
from entrepot.ir.model import Model, ValueSpec
from entrepot.ir.printable import counted, printable
from entrepot.runtime.binding import bind_all
from entrepot.runtime.emitting.emit_control import forms_of
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.emitting.spelling import Spelled
from entrepot.runtime.emitting.writer import Style, Support, Writer
from entrepot.runtime.planning.lower import Lowering
from entrepot.runtime.planning.merge import merged
from entrepot.runtime.planning.plan import Block, Value, pruned, without_unread
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.support import numpy_support
from entrepot.runtime.providers.cpu.table import KERNELS

WIDTH = 88
"""Characters of a line: what formatters use if they are not told otherwise."""

_LOADING = 'weights = load_weights(Path(__file__).with_name("weights.npz"))'
_OWN = ("np", "xp", "weights", "Path", "load_weights", "trips", "model")
"""Names that the text uses for itself."""


@dataclass(frozen=True)
class Text:
    """A model written out.

    Attributes:
        module: The whole file.
        name: The function in it.
        loading: The line that reads the weights.
        weights: What that line reads.
    """

    module: str
    name: str
    weights: dict[str, np.ndarray[Any, Any]]
    loading: str = _LOADING


def written(model: Model, limits: Limits) -> Text:
    """A model as a file of Python.

    Raises:
        UnsupportedOpError: Nodes have no kernel; all of them are named.
        ConversionError: The model cannot be brought to the hub's opset.
    """
    block = _planned(model, limits)
    names = Names(_OWN)
    support = numpy_support(limits)
    objects = Spelled(names, _special(support, limits), frozenset(model.at_hub().ir.graph.initializers))
    writer = Writer(support, names, objects, forms_of(support), Style(WIDTH, deletes=False, remarks=True))
    name = names.fresh(_identifier(model.ir.graph.name))
    parameters = writer.parameters(block)
    with writer.indented(f"def {name}({parameters}):"):
        writer.lines += _docstring(model, parameters.split(", ") if parameters else [])
        for at, axis, size in fixed_sizes(model):
            _check(writer, f"{writer.read(block.inputs[at])}.shape[{axis}]", size)
        writer.steps(block)
        results = [_result(writer.read(value), value) for value in block.outputs]
        writer.line(f"return {', '.join(results) or '()'}")
    weights = objects.parameters
    head = _head(model, name, len(block.steps), objects.imports)
    module = "\n".join([*head, "", "", '@np.errstate(all="ignore")', *writer.lines]) + "\n"
    return Text(module, name, weights)


def _check(writer: Writer, text: str, size: int) -> None:
    with writer.indented(f"if {text} != {size}:"):
        writer.line(f'raise ValueError("{text} must be {size}")')


def _planned(model: Model, limits: Limits) -> Block:
    hub = model.at_hub().ir
    lowering = Lowering(hub.functions, KERNELS.is_known, evaluate=KERNELS.evaluate, limits=limits)
    block = lowering.lower(hub.graph, hub.graph.opset_imports)
    pairs = zip(block.inputs, hub.graph.inputs, strict=True)
    block.inputs = [value for value, given in pairs if given.name not in hub.graph.initializers]
    block = without_unread(merged(pruned(block)))
    bind_all(block, lambda step: spelled(step, KERNELS.bind_plain(step)))
    return block


def _special(support: Support, limits: Limits) -> dict[int, tuple[str, str]]:
    """What has neither a name to import nor a literal form."""
    count = f"{limits.loop_iterations:_}"
    made = f"from entrepot.runtime.providers.cpu.support import trips_within\ntrips = trips_within({count})"
    return {
        id(NUMPY): ("xp", "from entrepot.runtime.providers.cpu.backend import NUMPY as xp"),
        id(support.trips): ("trips", made),
    }


def _result(text: str, value: Value | None) -> str:
    """What a caller gets: arrays, of rank 0 too, where NumPy makes scalars; and never a weight itself."""
    if value is None:
        return text
    if value.constant is not None:
        return f"np.array({text})"
    known = value.type
    if known is not None and (known.kind != "tensor" or known.shape):
        return text
    text_like = known is not None and known.numpy == np.dtype(object)
    return f"np.array({text}, object)" if text_like else f"np.asarray({text})" if known is not None else text


def _head(model: Model, name: str, steps: int, imports: Iterable[str]) -> list[str]:
    """Everything before the function."""
    statements = [line for statement in imports for line in statement.split("\n")]
    needed = {line for line in statements if line.startswith(("from ", "import "))}
    made = [line for line in dict.fromkeys(statements) if line not in needed]
    needed.add("from entrepot.importers.numpy.weights import load_weights")
    title = f"{printable(name)}: {counted(steps, 'step')} over NumPy, written by entrepot {entrepot.__version__}."
    return [
        f'"""{title}',
        "",
        "The weights are in ``weights.npz`` beside this file, under the names of the model.",
        '"""',
        "",
        "from pathlib import Path",
        "",
        "import numpy as np",
        "",
        *_grouped(needed),
        "",
        _LOADING,
        *made,
    ]


def _grouped(imports: Iterable[str]) -> list[str]:
    """One statement per module, in the order of their names, and one for each name that is not kept."""
    names: dict[tuple[str, str], list[str]] = {}
    for statement in sorted(imports):
        module, _, name = statement.removeprefix("from ").partition(" import ")
        names.setdefault((module, name if " as " in name else ""), []).append(name)
    lines = []
    for (module, _), taken in sorted(names.items()):
        line = f"from {module} import {', '.join(sorted(taken))}"
        wide = [f"from {module} import (", *(f"    {name}," for name in sorted(taken)), ")"]
        lines += [line] if len(line) <= WIDTH else wide
    return lines


def _docstring(model: Model, parameters: Sequence[str]) -> list[str]:
    """What goes in and what comes out, in the model's own words."""
    what = printable(model.ir.graph.name or "the model").replace("\n", " ").replace("\\", "/").replace('"', "'")
    lines = [f'    """Compute {what}.']
    if parameters:
        lines += ["", "    Args:"]
        lines += [f"        {name}: {_told(spec)}" for name, spec in zip(parameters, model.inputs, strict=True)]
    if model.outputs:
        lines += ["", "    Returns:", *(f"        {_told(spec)}" for spec in model.outputs)]
    return [*lines, '    """']


def _told(spec: ValueSpec) -> str:
    return printable(str(spec)).replace("\n", " ").replace("\\", "/").replace('"', "'")


def _identifier(name: str | None) -> str:
    """A name for the function; Python's own rules are kept by ``Names``."""
    return re.sub(r"\W+", "_", name or "", flags=re.ASCII).strip("_").lower() or "network"
