"""A place for every layer and every step: the paths that the module had, as the file tells them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.layers.layer import Layer
from entrepot.importers.torch.layers.rules import layer_of
from entrepot.importers.torch.layers.stateless import STATELESS
from entrepot.importers.torch.modules.holding import hold
from entrepot.importers.torch.modules.scopes import Path, scope_of, shared, split
from entrepot.importers.torch.modules.state import State, every_step
from entrepot.importers.torch.modules.tree import attribute, place
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.steps.planning import Plan
from entrepot.ir.traits import unread_operands
from entrepot.runtime.planning.plan import Block, Step, Value


def settled(plan: Plan) -> State:
    """Find the layers of a plan, and a place for everything that it keeps."""
    state = State(plan)
    state.floating, state.containers = _floating(plan), _containers(plan)
    steps = list(every_step(plan.block))
    for step in steps:
        state.scopes[step] = place(scope_of(step))
    layers: list[tuple[Step, Layer]] = []
    for step in steps:
        op = Op(state, step)  # type: ignore[arg-type] # rules ask about types and constants only
        layer = layer_of(op)
        op.see(0, *((4, 5, 6) if layer is not None and layer.kind in _RECURRENT else ()))
        if layer is not None and not op.overlooked:
            layers.append((step, layer))
    alone = len({layer.source for _, layer in layers}) == 1
    for step, layer in layers:
        _place(state, step, layer, alone=alone)
    _place_stateless(state, steps)
    state.light = _light(state, plan.block)
    _raise_sizes(state, plan.block)
    _raise_control_flow(state, plan.block)
    hold(state, plan.block)
    return state


def _floating(plan: Plan) -> ir.DataType | None:
    kinds = set()
    for step in every_step(plan.block):
        for value in (*step.inputs, *step.outputs):
            if value is not None and value.type is not None and value.type.dtype in FLOATS:
                kinds.add(value.type.dtype)
    return kinds.pop() if kinds == {ir.DataType.FLOAT} else None


def _containers(plan: Plan) -> frozenset[Path]:
    paths = [place(split(name)) for name in plan.weights if "." in name]
    return frozenset(path[:end] for path in paths for end in range(1, len(path) - 1))


def _place(state: State, step: Step, layer: Layer, *, alone: bool) -> None:
    """A layer goes where its weight's name says; else where its step is from. One alone may be the module itself."""
    wanted = _wanted(state, step, layer)
    if wanted is None or _is_turned(state, layer):
        return
    for path in wanted:
        if state.tree.is_under_layer(path) or not (path or alone):
            continue
        node = state.tree.find(path)
        if node is None or (node.layer is None and (not path or (not node.children and not node.held))):
            state.tree.at(path).layer = layer
            state.layers[step] = layer, path
            state.scopes[step] = path
            return
        if node.layer is not None and _same(node.layer, layer):
            state.layers[step] = node.layer, path
            state.scopes[step] = path
            return


def _is_turned(state: State, layer: Layer) -> bool:
    """Whether another layer has the same weight the other way round, so that they could not be one parameter."""
    weight = layer.tensors.get("weight")
    if state.plan.ours or weight is None or weight.ndim != 2:
        return False
    there = [tensor for tensor, _ in state.matrices_of(state.named(layer.source))]
    return bool(there) and not any(np.array_equal(tensor, weight, equal_nan=True) for tensor in there)


def _wanted(state: State, step: Step, layer: Layer) -> Iterator[Path] | None:
    """Paths in the order of preference; ``None`` for what the module had as a parameter, not as a layer."""
    name = next((state.source(v) for v in step.inputs if v is not None and v.name == layer.source), layer.source)
    if ("." in name or state.plan.roles.get(name)) and name in state.plan.weights:
        *parts, leaf = split(name) or (name,)
        path, leaf = place(parts), attribute(leaf)
        if leaf not in layer.tensors and layer.kind not in _RECURRENT and state.plan.ours:
            return None
        if layer.kind == "Linear" and state.plan.ours and _is_straight(state, step, name):
            return None  # the module has the matrix as MatMul takes it
        if not path and step not in state.plan.block.steps:
            return None  # a class has no ``super()`` in a function within its forward
        found = [path]
    else:
        found = []
    return _places(state, step, found, layer)


def _is_straight(state: State, step: Step, name: str) -> bool:
    """Whether a matrix multiplies as the module has it, which a linear layer's does not."""
    moved = name in state.plan.stored or any(each.name == name for each in state.plan.origins.values())
    return not moved and not (step.op_type == "Gemm" and step.attributes.get("transB"))


def _places(state: State, step: Step, found: list[Path], layer: Layer) -> Iterator[Path]:
    scope, kind = state.scopes[step], layer.kind
    if all(tensor.ndim < 2 for tensor in layer.tensors.values()):
        # exporters keep equal vectors once: the name is that of one layer of several
        elsewhere = [path for path in found if path[: len(scope)] != scope]
        if scope and elsewhere and not _is_shared(state, step, scope):
            found = [path for path in found if path not in elsewhere]
    yield from found
    if scope and scope not in found and scope not in state.containers and not _is_shared(state, step, scope):
        yield scope
    while (node := state.tree.find(scope)) is not None and node.layer is not None:
        scope = scope[:-1]
    yield from _numbered(scope, kind)


_RECURRENT = ("LSTM", "GRU", "RNN")


def _is_shared(state: State, step: Step, scope: Path) -> bool:
    """Whether a path is that of more than one step with weights, or of steps further down."""
    return any(
        other is not step and path[: len(scope)] == scope and (len(path) > len(scope) or other in state.layers)
        for other, path in state.scopes.items()
    )


def _numbered(scope: Path, kind: str) -> Iterator[Path]:
    stem = "".join(f"_{c.lower()}" if c.isupper() and at and kind[at - 1].islower() else c.lower()
                   for at, c in enumerate(kind))  # fmt: skip
    for number in range(1, 100_000):
        yield (*scope, stem if number == 1 else f"{stem}_{number}")


def _same(one: Layer, other: Layer) -> bool:
    """Whether two steps are one layer, used twice."""
    return (
        one.kind == other.kind
        and list(map(str, one.arguments)) == list(map(str, other.arguments))
        and one.tensors.keys() == other.tensors.keys()
        and all(np.array_equal(one.tensors[name], other.tensors[name], equal_nan=True) for name in one.tensors)
    )


def _place_stateless(state: State, steps: list[Step]) -> None:
    """An activation in a numbered place is an item of a list of layers."""
    counts: dict[Path, int] = {}
    for step in steps:
        counts[state.scopes[step]] = counts.get(state.scopes[step], 0) + 1
    for step in steps:
        scope = state.scopes[step]
        if step in state.layers or not scope or not scope[-1].isdecimal() or counts[scope] > 1 or step.domain:
            continue
        node, rule = state.tree.find(scope), STATELESS.get(step.op_type)
        above = state.tree.find(scope[:-1])
        if rule is None or node is not None or above is None or not above.is_list:
            continue
        layer = rule(Op(state, step))  # type: ignore[arg-type]
        if layer is not None and step.outputs[0] is not None:
            state.tree.at(scope).layer = layer
            state.layers[step] = layer, scope


def _raise_sizes(state: State, block: Block) -> None:
    """What depends on sizes alone belongs to all that read it; so does a step that says nothing of itself."""
    readers: dict[Value, list[Path]] = {}
    for value in block.outputs:
        if value is not None:
            readers.setdefault(value, []).append(())
    for step in reversed(block.steps):
        found = [path for value in step.outputs if value is not None for path in readers.get(value, [])]
        silent = not state.scopes[step] and not any(key.startswith("entrepot.") for key in step.metadata)
        if found and step not in state.layers and (step in state.light or silent):
            state.scopes[step] = shared(found)
        for value in step.uses():
            readers.setdefault(value, []).append(state.scopes[step])


def _raise_control_flow(state: State, block: Block) -> list[Path]:
    """Control flow belongs to a module that holds all layers of its bodies; the paths of all layers of a block."""
    found = [state.layers[step][1] for step in block.steps if step in state.layers]
    for step in block.steps:
        inner = [path for each in step.blocks.values() for path in _raise_control_flow(state, each)]
        if inner:
            state.scopes[step] = shared([state.scopes[step], *inner])
        found += inner
    return found


def _light(state: State, block: Block) -> set[Step]:
    """Steps that depend on nothing but sizes and numbers: masks, positions."""
    light: set[Step] = set()
    known: set[Value] = set()
    for step in block.steps:
        unread = unread_operands(step.key) if step.domain in ("", "ai.onnx") else frozenset()
        read = [value for at, value in enumerate(step.inputs) if value is not None and at not in unread]
        if step.blocks or step in state.layers or step.traits.random:
            continue
        if all(value in known or (value.constant is not None and not state.is_parameter(value)) for value in read):
            light.add(step)
            known.update(value for value in step.outputs if value is not None)
    return light
