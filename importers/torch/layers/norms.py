"""Normalisations as layers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.layers.layer import Argument, Layer, keywords, positional
from entrepot.importers.torch.layers.weights import (
    is_neutral,
    is_unshifted,
    name_at,
    present,
    unless_default,
    weight_at,
)
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.words.elementwise import short


def batch_norm(op: Op) -> Layer | None:
    """Over a batch, with what was counted of it."""
    tensors = [weight_at(op, position, 1) for position in (1, 2, 3, 4)]
    rank = op.rank(0)
    if any(tensor is None for tensor in tensors) or op.attribute("training_mode") or len(op.step.outputs) > 1:
        return None
    if rank is None or not 2 <= rank <= 5:
        return None
    names = ("weight", "bias", "running_mean", "running_var")
    held = present(**dict(zip(names, tensors, strict=True)), num_batches_tracked=np.array(0))
    size = positional(num_features=held["weight"].size)
    given = unless_default(eps=(short(op.attribute("epsilon")), "1e-05"), momentum=(_momentum(op), "0.1"))
    kind = {2: 1, 3: 1, 4: 2, 5: 3}[rank]
    buffers = frozenset({"running_mean", "running_var", "num_batches_tracked"})
    if is_neutral(op, 1, 2):
        counted = {name: held[name] for name in held if name in buffers}
        return Layer(
            f"BatchNorm{kind}d", (*size, *given, *keywords(affine=False)), counted, buffers, source=name_at(op, 3)
        )
    given, shift = (*given, *_shift(op)), {} if is_unshifted(op, 2) else {"bias": held["bias"]}
    held = {"weight": held["weight"], **shift, **{name: held[name] for name in held if name in buffers}}
    return Layer(f"BatchNorm{kind}d", (*size, *given), held, buffers, source=name_at(op))


def _shift(op: Op) -> tuple[Argument, ...]:
    """An argument that leaves the bias out, where there was none."""
    return keywords(bias=False) if is_unshifted(op, 2) else ()


def _momentum(op: Op) -> str:
    """ONNX says how much is kept, torch how much is new."""
    return repr(round(1 - op.attribute("momentum"), 6))


def instance_norm(op: Op) -> Layer | None:
    """Over each channel of each image."""
    weight, bias, rank = weight_at(op, 1, 1), weight_at(op, 2, 1), op.rank(0)
    if weight is None or bias is None or rank not in (3, 4, 5) or any(size == 1 for size in (op.shape(0) or ())[2:]):
        return None
    given = unless_default(eps=(short(op.attribute("epsilon")), "1e-05"))
    size = positional(num_features=weight.size)
    if is_neutral(op, 1, 2):
        return Layer(f"InstanceNorm{rank - 2}d", (*size, *given))
    arguments = (*size, *given, *keywords(affine=True), *_shift(op))
    held = present(weight=weight, bias=None if is_unshifted(op, 2) else bias)
    return Layer(f"InstanceNorm{rank - 2}d", arguments, held, source=name_at(op))


def group_norm(op: Op) -> Layer | None:
    """Over groups of channels."""
    weight, bias = weight_at(op, 1, 1), weight_at(op, 2, 1)
    if weight is None or bias is None:
        return None
    sizes = positional(num_groups=op.attribute("num_groups"), num_channels=weight.size)
    given = unless_default(eps=(short(op.attribute("epsilon")), "1e-05"))
    if is_neutral(op, 1, 2):
        return Layer("GroupNorm", (*sizes, *given, *keywords(affine=False)))
    held = present(weight=weight, bias=None if is_unshifted(op, 2) else bias)
    return Layer("GroupNorm", (*sizes, *given, *_shift(op)), held, source=name_at(op))


def layer_norm(op: Op) -> Layer | None:
    """Over the last axes, with weights and with or without a bias."""
    weight, bias, rank, axis = weight_at(op, 1), weight_at(op, 2), op.rank(0), op.attribute("axis")
    if weight is None or rank is None or (op.has(2) and bias is None) or len(op.step.outputs) > 1:
        return None
    if weight.ndim != (-axis if axis < 0 else rank - axis) or op.made == ir.DataType.DOUBLE:
        return None
    if not op.covers(1) or (bias is not None and bias.shape != weight.shape):
        return None
    shape = positional(normalized_shape=weight.shape[0] if weight.ndim == 1 else weight.shape)
    eps = unless_default(eps=(short(op.attribute("epsilon")), "1e-05"))
    if is_neutral(op, 1, 2):
        return Layer("LayerNorm", (*shape, *eps, *keywords(elementwise_affine=False)))
    given = (*eps, *unless_default(bias=(bias is not None, True)))
    return Layer("LayerNorm", (*shape, *given), present(weight=weight, bias=bias), source=name_at(op))


def rms_norm(op: Op) -> Layer | None:
    """Over the last axes, by the mean of squares."""
    weight, rank, axis = weight_at(op, 1), op.rank(0), op.attribute("axis")
    if weight is None or rank is None or weight.ndim != (-axis if axis < 0 else rank - axis):
        return None
    if op.made == ir.DataType.DOUBLE or not op.covers(1):
        return None
    shape = positional(normalized_shape=weight.shape[0] if weight.ndim == 1 else weight.shape)
    if is_neutral(op, 1, 2):
        return Layer("RMSNorm", (*shape, *keywords(eps=short(op.attribute("epsilon")), elementwise_affine=False)))
    return Layer("RMSNorm", (*shape, *keywords(eps=short(op.attribute("epsilon")))), present(weight=weight),
                 source=name_at(op))  # fmt: skip
