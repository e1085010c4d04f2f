"""How two models differ in what can be seen without running them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

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
    """Differences of weights, by name and type, and of how often each operator occurs."""
    before, after = dict(weights(one)), dict(weights(other))
    found = [f"weight '{name}' {before[name]} is gone" for name in before if name not in after]
    found += [f"weight '{name}' {after[name]} is new" for name in after if name not in before]
    both = [name for name in before if name in after and before[name] != after[name]]
    found += [f"weight '{name}' {before[name]} became {after[name]}" for name in both]
    had, has = operators(one), operators(other)
    changed = [op_type for op_type in had | has if had[op_type] != has[op_type]]
    return found + [f"{op_type}: {had[op_type]} became {has[op_type]}" for op_type in changed]


def weights(model: Model) -> Iterator[tuple[str, str]]:
    """Names of the main graph's initializers, with their types in words."""
    for name, value in model.ir.graph.initializers.items():
        tensor = value.const_value
        if tensor is not None:
            yield name, f"{tensor.dtype.name.lower()}{list(tensor.shape.numpy())}"


def operators(model: Model) -> Counter[str]:
    """How often each operator occurs, in bodies too."""
    return Counter(node.op_type for node in list_nodes(model))
