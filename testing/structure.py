"""How two models differ in what can be seen without running them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from entrepot.ir.inference import list_nodes
from entrepot.ir.model import Model, ValueSpec


def interface_differences(one: Model, other: Model) -> list[str]:
    """Differences of inputs and outputs; axes may have other names, but the same axes have to be free together."""
    found = []
    for kind, before, after in (("inputs", one.inputs, other.inputs), ("outputs", one.outputs, other.outputs)):
        if _plain(one, before) != _plain(other, after):
            found.append(f"{kind}: {', '.join(map(str, before))}  became  {', '.join(map(str, after))}")
    return found


def _plain(model: Model, specs: Sequence[ValueSpec]) -> list[tuple[object, ...]]:
    """Inputs or outputs without the names of axes: by number where inputs have them, else just as free."""
    symbols = [dim for spec in model.inputs for dim in spec.shape or () if isinstance(dim, str)]
    numbers = {symbol: f"axis {number}" for number, symbol in enumerate(dict.fromkeys(symbols))}
    return [
        (
            spec.name,
            spec.kind,
            spec.dtype,
            spec.shape and tuple(dim if isinstance(dim, int) else numbers.get(dim or "", "free") for dim in spec.shape),
        )
        for spec in specs
    ]


def structure_differences(one: Model, other: Model) -> list[str]:
    """Differences of how many weights there are of each type and shape, and of how often each operator occurs."""
    found = []
    for what, had, has in (("weights", weights(one), weights(other)), ("nodes", operators(one), operators(other))):
        changed = [kind for kind in had | has if had[kind] != has[kind]]
        found += [f"{what}: {had[kind]} {kind} became {has[kind]}" for kind in changed]
    return found


def weights(model: Model) -> Counter[str]:
    """The main graph's weights by type and shape; a number counts by its value, and once.

    Integers, which are shapes, axes and tables, are left out.
    """
    found: Counter[str] = Counter()
    for value in model.ir.graph.initializers.values():
        tensor = value.const_value
        if tensor is None or not tensor.dtype.is_floating_point():
            continue
        kind = tensor.dtype.name.lower()
        if tensor.shape.rank():
            found[f"{kind}{list(tensor.shape.numpy())}"] += 1
        else:
            found[f"{kind} number {tensor.numpy().item()!r}"] = 1
    return found


def operators(model: Model) -> Counter[str]:
    """How often each operator occurs, in bodies too."""
    return Counter(node.op_type for node in list_nodes(model))
