"""Types through a plan: into blocks, and out of every step that the file does not declare them for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.typing.bodies import Dims, Scanned, agreed, lost_axes, repeated, without_axis
from entrepot.ir.typing.plain import Type, from_proto, to_proto
from entrepot.ir.typing.schema import infer_outputs
from entrepot.ir.typing.shown import SHOWN
from entrepot.ir.upstream import INFERENCE_ERRORS
from entrepot.runtime.planning.node_proto import proto_of
from entrepot.runtime.planning.plan import Block, Step

_LOOP = (Type("tensor", ir.DataType.INT64, ()), Type("tensor", ir.DataType.BOOL, ()))
"""What a Loop's body is given first: the number of the turn, and the condition."""


def subgraph_input_types(step: Step, count: int) -> list[Type | None]:
    """Types of a subgraph's inputs that follow from the node's own inputs."""
    given = [None if value is None else value.type for value in step.inputs]
    if step.op_type == "SequenceMap":
        return [known.element if known is not None and known.kind == "sequence" else known for known in given]
    axes = lost_axes(step.op_type, len(given), count, Scanned.of(step.attributes))
    entering = [_shaped(known, without_axis(_dims(known), axis)) for known, axis in zip(given, axes, strict=False)]
    return [*_LOOP, *entering[2:]] if step.op_type == "Loop" else entering


def set_types(step: Step) -> None:
    """Declared types stay; the schema's inference fills in the others, and shapes and sizes that a file leaves out."""
    if all(value is None or _is_full(value.type) for value in step.outputs):
        return
    for value, known in zip(step.outputs, _found(step), strict=False):
        if value is not None:
            value.type = completed(value.type, known)


def completed(stated: Type | None, found: Type | None) -> Type | None:
    """What is stated of a value, with a shape or sizes that are only found."""
    if stated is None or found is None or stated.shape == found.shape:
        return found if stated is None else stated
    if found.shape is None or replace(stated, shape=None) != replace(found, shape=None):
        return stated
    if stated.shape is None or len(stated.shape) != len(found.shape):
        return found if stated.shape is None else stated
    pairs = zip(stated.shape, found.shape, strict=True)
    return replace(stated, shape=tuple(other if one is None else one for one, other in pairs))


def set_sizes(body: Block) -> None:
    """Sizes of what a body returns that follow from its operators, where the file has only names for them.

    A loop that makes no turn has nothing else to tell the shape of what it would have collected.
    """
    makers = {value: step for step in body.steps for value in step.outputs if value is not None}
    for value in filter(None, body.outputs):
        dims, step = _dims(value.type) or (), makers.get(value)
        if step is not None and not all(map(_is_size, dims)):
            sizes = _dims(_found(step)[step.outputs.index(value)]) or dims
            if len(sizes) == len(dims):
                named = zip(dims, sizes, strict=True)
                value.type = _shaped(value.type, tuple(size if _is_size(size) else name for name, size in named))


def _is_size(dim: int | str | None) -> bool:
    return isinstance(dim, int)


def _found(step: Step) -> list[Type | None]:
    return _block_types(step) if step.blocks else _infer(step)


def _is_full(known: Type | None) -> bool:
    """Whether inference has nothing to add: converters of element types state those alone."""
    return known is not None and (known.kind != "tensor" or (known.shape is not None and None not in known.shape))


def _infer(step: Step) -> list[Type | None]:
    """The types of a step's outputs by its schema; ``None`` where the schema cannot say."""
    if step.schema is None or any(value is not None and value.type is None for value in step.inputs):
        return [None] * len(step.outputs)
    names = ["" if value is None else f"i{n}" for n, value in enumerate(step.inputs)]
    try:
        node = proto_of(step, names)
    except (*INFERENCE_ERRORS, AssertionError):  # the last is of onnx.helper, for an attribute of another type
        return [None] * len(step.outputs)
    given = [(name, value) for name, value in zip(names, step.inputs, strict=True) if value is not None]
    known = {name: to_proto(value.type) for name, value in given if value.type is not None}
    data = {
        name: onnx.numpy_helper.from_array(value.constant)
        for name, value in given
        if isinstance(value.constant, np.ndarray) and value.constant.size <= SHOWN
    }
    # an ill-typed node is reported when it runs, with its values
    found = infer_outputs([step.schema], node, known, data, [onnx.helper.make_opsetid(step.domain, step.opset)])
    return [from_proto(found[name]) if name in found else None for name in node.output]


def _block_types(step: Step) -> list[Type | None]:
    """Types of what control flow returns: those of its bodies' outputs, without what may vary."""
    made = [[None if value is None else value.type for value in block.outputs] for block in step.blocks.values()]
    if step.op_type == "If":
        return [
            _shaped(next(filter(None, each), None), agreed([*map(_dims, each)])) for each in zip(*made, strict=False)
        ]
    if step.op_type == "SequenceMap":
        return [Type("sequence", element=known) for known in made[0]]
    results = made[0][1:] if step.op_type == "Loop" else made[0]
    given = [_dims(None if value is None else value.type) for value in step.inputs]
    (block,) = step.blocks.values()
    shapes = repeated(step.op_type, given, [*map(_dims, results)], len(block.inputs), Scanned.of(step.attributes))
    return [_shaped(known, dims) for known, dims in zip(results, shapes, strict=True)]


def _dims(known: Type | None) -> Dims | None:
    return None if known is None else known.shape


def _shaped(known: Type | None, shape: Dims | None) -> Type | None:
    return None if known is None else replace(known, shape=shape)
