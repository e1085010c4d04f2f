"""A model as steps that torch has words for: patterns put together, names of weights kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir

from entrepot.importers.fixed import fixed_sizes
from entrepot.importers.torch.layers.layer import LAYERS
from entrepot.importers.torch.steps import attention
from entrepot.importers.torch.steps.natural import cut, natural
from entrepot.importers.torch.steps.patterns import RULES as PATTERNS
from entrepot.importers.torch.steps.stacking import RULES as STACKING
from entrepot.importers.torch.table import WORDS
from entrepot.ir.copying import copy_graphs
from entrepot.ir.limits import Limits
from entrepot.ir.model import Model
from entrepot.ir.passes.narrow_bfloat16 import NarrowBfloat16
from entrepot.ir.table import OpKey
from entrepot.runtime.planning import fuse
from entrepot.runtime.planning.lower import Lowering
from entrepot.runtime.planning.merge import merged
from entrepot.runtime.planning.plan import Block, Step, Value, pruned, without_unread
from entrepot.runtime.providers.cpu.table import KERNELS as HOST
from entrepot.runtime.providers.torch.table import KERNELS as TORCH


@dataclass(frozen=True)
class Plan:
    """What is to be written.

    Attributes:
        block: The steps.
        origins: What constants were made of by moving elements: the constant before.
        weights: Names of the file's weights.
        stored: For those that the file stores otherwise than the module that it was exported from: how.
        ours: Whether the file says of every weight how its module had it.
        roles: What weights were to their module: ``parameter``, ``buffer``, ``unsaved``; empty if nothing says it.
        natural: Integers that are never below 0.
        cut: Integers that were made of floats, which may be below 0.
        fixed: Sizes of inputs that the export had to fix, though its source takes others: value, axis, size.
    """

    block: Block
    origins: Mapping[Value, Value]
    weights: frozenset[str]
    stored: Mapping[str, str]
    ours: bool
    roles: Mapping[str, str]
    natural: frozenset[Value]
    cut: frozenset[Value]
    fixed: tuple[tuple[Value, int, int], ...]


def planned(model: Model, limits: Limits) -> Plan:
    """A model at the hub, as a plan.

    Raises:
        UnsupportedOpError: Nodes have neither a word, nor a meaning; all of them are named.
        ConversionError: The model cannot be brought to the hub's opset.
    """
    hub = _as_narrow(model.at_hub().ir)
    origins: dict[Value, Value] = {}
    roles = {name: value.metadata_props.get("entrepot.role", "") for name, value in hub.graph.initializers.items()}
    saved = {name for name, role in roles.items() if role in ("parameter", "buffer")}
    lowering = Lowering(hub.functions, _known, evaluate=_noting(origins, saved), limits=limits)
    block = lowering.lower(hub.graph, hub.graph.opset_imports)
    pairs = zip(block.inputs, hub.graph.inputs, strict=True)
    block.inputs = [value for value, given in pairs if given.name not in hub.graph.initializers]
    named = saved if any(roles.values()) else {name for name in roles if "." in name}

    def is_kept(value: Value) -> bool:
        return origins.get(value, value).name in named

    rules = {**fuse.RULES, **_RULES, **attention.rules(is_kept)}
    block = fuse.fused(without_unread(merged(pruned(block))), rules)
    block = pruned(block)
    _forget_unread(block)
    weights = hub.graph.initializers
    stored = {name: note for name, value in weights.items() if (note := value.metadata_props.get("entrepot.stored"))}
    ours = model.metadata.get("entrepot.framework", "").startswith("torch")
    roles = roles if any(roles.values()) else {}
    fixed = tuple((block.inputs[at], axis, size) for at, axis, size in fixed_sizes(model))
    return Plan(block, origins, frozenset(weights), stored, ours, roles, natural(block), cut(block), fixed)


def _as_narrow(hub: onnx_ir.Model) -> onnx_ir.Model:
    """A model in bfloat16 without what lets onnxruntime compute it, which torch needs not."""
    if not any(node.attributes.get_int("to", 0) == onnx_ir.DataType.BFLOAT16 for node in hub.graph.all_nodes()):
        return hub
    narrow = copy_graphs(hub)
    NarrowBfloat16()(narrow)
    return narrow


def _forget_unread(block: Block) -> None:
    """Results beside others that nothing reads get no name."""
    read = {value for step in block.steps for value in step.uses()} | set(block.outputs)
    for step in block.steps:
        for inner in step.blocks.values():
            _forget_unread(inner)
        if len(step.outputs) > 1:
            step.outputs = [value if value in read else None for value in step.outputs]
            while len(step.outputs) > 1 and step.outputs[-1] is None and "Split" not in step.op_type:
                step.outputs.pop()


def _known(key: OpKey) -> bool:
    return WORDS.find(*key) is not None or TORCH.is_known(key) or HOST.is_known(key)


_ARRANGING = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Flatten", "Identity")


def _noting(origins: dict[Value, Value], saved: Collection[str]) -> Callable[[Step], Any]:
    """Folds, and remembers which weight a result is a rearrangement of; other arithmetic on the state stays."""

    def evaluate(step: Step) -> Any:
        arranges = step.is_a(*_ARRANGING) and len(step.outputs) == 1
        if not arranges and any(value and origins.get(value, value).name in saved for value in step.inputs):
            raise RuntimeError("weights may be trained, and state be loaded")
        result = HOST.evaluate(step)
        if arranges:
            made, source = step.outputs[0], step.inputs[0]
            if made is not None and source is not None and isinstance(source.constant, np.ndarray):
                origins[made] = origins.get(source, source)
        return result

    return evaluate


def _fuse_linear(graph: fuse.Neighbours, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row."""
    weight, added = product.inputs[1], graph.only_reader(product)
    if weight is None or not _is_matrix(weight) or added is None or not added.is_a("Add"):
        return
    left, right = added.inputs
    bias = right if left is product.outputs[0] else left
    row = None if bias is None else bias.constant
    assert isinstance(weight.constant, np.ndarray)
    if not isinstance(row, np.ndarray) or row.ndim != 1 or row.shape != weight.constant.shape[1:]:
        return
    linear = replace(
        added, key=OpKey(LAYERS, "Linear", 1), inputs=[product.inputs[0], weight, bias], attributes={},
        metadata=product.metadata or added.metadata,
    )  # fmt: skip
    graph.replace([product, added], linear)


def _is_matrix(value: Value) -> bool:
    return isinstance(value.constant, np.ndarray) and value.constant.ndim == 2


_RULES: fuse.Rules = {**PATTERNS, **STACKING, "MatMul": (_fuse_linear,)}
