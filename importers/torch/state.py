"""Where everything that a model keeps is kept: layers, parameters and buffers, at the paths that its module had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS, NAMES
from entrepot.importers.torch.layer import Layer
from entrepot.importers.torch.layers import layer_of
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.planning import Plan
from entrepot.importers.torch.scopes import Path, scope_of, shared, split
from entrepot.importers.torch.sizes import Sizes
from entrepot.importers.torch.stateless import STATELESS
from entrepot.importers.torch.tree import Held, Node, attribute
from entrepot.ir.traits import host_operands, unread_operands
from entrepot.runtime.plan import Block, Step, Value


@dataclass
class State:
    """What is where.

    Attributes:
        plan: The steps.
        tree: The modules.
        layers: For steps that are layers: the layer and its path.
        held: For constants that steps read directly: the path of the module, and the name in it.
        moved: For those of them that are read in another arrangement: what makes it, such as ``.T``.
        scopes: The path that each step belongs to.
        floating: The type that follows ``half()``: that of the model's weights, if it has one.
    """

    plan: Plan
    tree: Node = field(default_factory=Node)
    layers: dict[Step, tuple[Layer, Path]] = field(default_factory=dict)
    held: dict[Value, tuple[Path, str]] = field(default_factory=dict)
    scopes: dict[Step, Path] = field(default_factory=dict)
    floating: ir.DataType | None = None
    sizes: dict[Value, Sizes] = field(default_factory=dict)
    moved: dict[Value, str] = field(default_factory=dict)

    def is_parameter(self, value: Value | None) -> bool:
        """Whether a constant is trained: one of the file's weights, not a number that it computes with."""
        array = None if value is None else value.constant
        if value is None or not isinstance(array, np.ndarray) or ir.DataType.from_numpy(array.dtype) not in FLOATS:
            return False
        name = self.source(value)
        if self.plan.roles:
            return self.plan.roles.get(name) == "parameter"
        return name in self.plan.weights and ((array.ndim > 0 and array.size > 1) or "." in name)

    def source(self, value: Value) -> str:
        """The name of the weight that a constant is, or is a rearrangement of."""
        return self.plan.origins.get(value, value).name


def settled(plan: Plan) -> State:
    """Find the layers of a plan, and a place for everything that it keeps."""
    state = State(plan)
    state.floating = _floating(plan)
    steps = list(every_step(plan.block))
    for step in steps:
        state.scopes[step] = tuple(attribute(name) for name in scope_of(step))
    for step in steps:
        op = Op(state, step)  # type: ignore[arg-type] # rules ask about types and constants only
        layer = layer_of(op)
        op.see(0, *((5, 6) if layer is not None and layer.kind in _RECURRENT else ()))
        if layer is not None and not op.overlooked:
            _place(state, step, layer)
    _place_stateless(state, steps)
    _raise_sizes(state, plan.block)
    _hold(state, plan.block)
    return state


def every_step(block: Block) -> Iterator[Step]:
    """The steps of a block, and of the blocks within it."""
    for step in block.steps:
        yield step
        for inner in step.blocks.values():
            yield from every_step(inner)


def _floating(plan: Plan) -> ir.DataType | None:
    kinds = set()
    for step in every_step(plan.block):
        for value in (*step.inputs, *step.outputs):
            if value is not None and value.type is not None and value.type.dtype in FLOATS:
                kinds.add(value.type.dtype)
    return kinds.pop() if kinds == {ir.DataType.FLOAT} else None


def _place(state: State, step: Step, layer: Layer) -> None:
    """A layer goes where its weight's name says; else where its step is from."""
    wanted = _wanted(state, step, layer)
    if wanted is None:
        return
    for path in wanted:
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


def _wanted(state: State, step: Step, layer: Layer) -> Iterator[Path] | None:
    """Paths in the order of preference; ``None`` for what the module had as a parameter, not as a layer."""
    name = next((state.source(v) for v in step.inputs if v is not None and v.name == layer.source), layer.source)
    if ("." in name or state.plan.roles.get(name)) and name in state.plan.weights:
        *path, leaf = (attribute(part) for part in split(name) or (name,))
        if leaf not in layer.tensors and layer.kind not in _RECURRENT and state.plan.ours:
            return None
        if layer.kind == "Linear" and state.plan.ours and _is_straight(state, step, name):
            return None  # the module has the matrix as MatMul takes it
        if not path and step not in state.plan.block.steps:
            return None  # a class has no ``super()`` in a function within its forward
        found = [tuple(path)]
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
    if scope and scope not in found and not _is_shared(state, step, scope):
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
    light = _light(state, block)
    for value in block.outputs:
        if value is not None:
            readers.setdefault(value, []).append(())
    for step in reversed(block.steps):
        found = [path for value in step.outputs if value is not None for path in readers.get(value, [])]
        silent = not state.scopes[step] and not any(key.startswith("entrepot.") for key in step.metadata)
        if found and step not in state.layers and (step in light or silent):
            state.scopes[step] = shared(found)
        for value in step.uses():
            readers.setdefault(value, []).append(state.scopes[step])


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


def _hold(state: State, block: Block) -> None:
    """Constants that steps read as tensors, beside layers, become parameters or buffers."""
    readers: dict[Value, list[Path]] = {}
    for step in every_step(block):
        if step in state.layers:
            continue
        for position, value in enumerate(step.inputs):
            if value is not None and value.constant is not None and _is_kept(state, step, position, value):
                readers.setdefault(value, []).append(state.scopes[step])
        for value in _returned(step):
            readers.setdefault(value, []).append(state.scopes[step])
    for value in _constants(block.outputs):
        readers.setdefault(value, []).append(())
    for value, paths in readers.items():
        _hold_one(state, value, shared(paths))


def _returned(step: Step) -> Iterator[Value]:
    """Constants among the results of a step's blocks, but for whether a loop goes on."""
    for block in step.blocks.values():
        yield from _constants(block.outputs[1 if step.op_type == "Loop" else 0 :])


def _constants(values: Sequence[Value | None]) -> Iterator[Value]:
    yield from (value for value in values if value is not None and value.constant is not None)


def _is_kept(state: State, step: Step, position: int, value: Value) -> bool:
    array = value.constant
    if not isinstance(array, np.ndarray) or array.dtype == object or ir.DataType.from_numpy(array.dtype) not in NAMES:
        return False
    if position in host_operands(step.key) and array.size <= _FEW and array.ndim <= 1:
        return False
    return array.size > 1 or state.is_parameter(value)


_FEW = 64


def _hold_one(state: State, value: Value, readers: Path) -> None:
    name = state.source(value)
    array, moved = _as_it_was(state, value)
    if moved:
        state.moved[value] = moved
    if "." in name and "/" not in name and "::" not in name:
        *parts, leaf = (attribute(part) for part in split(name) or (name,))
        path = tuple(parts)
    else:
        known = state.plan.ours and state.is_parameter(value)
        path, leaf = () if known else readers, attribute(name.rsplit("/", 1)[-1].rsplit("::", 1)[-1])
    leaf = f"weight_{leaf}" if leaf.isdecimal() else leaf
    while (found := state.tree.find(path)) is not None and found.layer is not None:
        tensor = found.layer.tensors.get(leaf)
        if tensor is not None and tensor.shape == array.shape and np.array_equal(tensor, array, equal_nan=True):
            state.held[value] = path, leaf
            return
        path = path[:-1]
    while path and (found := state.tree.find(path)) is not None and found.is_indexed:
        path, leaf = path[:-1], f"{path[-1]}_{leaf}" if "." in name else leaf
    node, stem, number = state.tree.at(path), leaf, 1
    while leaf in node.children or (leaf in node.held and not _is_that(node.held[leaf], array)):
        number += 1
        leaf = f"{stem}_{number}"
    saved = not state.plan.roles or state.plan.roles.get(name) in ("parameter", "buffer")
    node.held[leaf] = Held(array, not state.is_parameter(value), name, saved, not saved and array.size <= _FEW)
    state.held[value] = path, leaf


def _as_it_was(state: State, value: Value) -> tuple[np.ndarray, str]:
    """A constant as its module had it, and what makes it what steps read."""
    array = value.constant
    source = state.plan.origins.get(value, value).constant
    saved = state.is_parameter(value) or state.plan.roles.get(state.source(value)) == "buffer"
    if not saved or source.dtype != array.dtype:
        return array, ""
    note = state.plan.stored.get(state.source(value), "")
    if note == "transposed" and source.ndim == 2:
        source = source.T
    elif note.startswith("reshaped from "):
        source = source.reshape([int(size) for size in note.removeprefix("reshaped from ").split(",") if size])
    if _is_equal(source, array):
        return source, ""
    if array.ndim == 2 and _is_equal(source.T, array):
        return source, ".T"
    reshaped = f".reshape({', '.join(map(str, array.shape)) or '()'})"
    return (source, reshaped) if _is_equal(source.reshape(array.shape), array) else (array, "")


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def _is_that(held: Held, array: np.ndarray) -> bool:
    return held.array.shape == array.shape and held.array.dtype == array.dtype and np.array_equal(held.array, array)
