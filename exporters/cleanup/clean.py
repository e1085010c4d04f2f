"""A translated graph as one that reads well."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir
from onnx_ir.passes import common

from entrepot.exporters.cleanup.choices import choose_truths
from entrepot.exporters.cleanup.identities import DropIdentities
from entrepot.exporters.cleanup.idle import drop_idle, forget_half_spectra
from entrepot.exporters.cleanup.indices import widen_indices
from entrepot.exporters.cleanup.kinds import use_kinds_taken
from entrepot.exporters.cleanup.lowest_padding import let_pools_pad
from entrepot.exporters.cleanup.pack import pack_weights
from entrepot.exporters.cleanup.padded_pools import keep_padding_apart
from entrepot.exporters.cleanup.reductions import count_axes_from_the_front
from entrepot.ir.passes.cleanup import clean_up
from entrepot.ir.passes.keep_vectors import KeepVectors
from entrepot.ir.passes.levels import Level
from entrepot.ir.passes.lift_constants import LiftConstants
from entrepot.ir.passes.split_columns import SplitColumns
from entrepot.ir.passes.split_parts import SplitParts
from entrepot.runtime.planning.constants import evaluate


def tidy(model: onnx_ir.Model, weights: Collection[str], level: Level, *, in_place: bool = False) -> None:
    """Remove what a graph does not need, in place; inputs and outputs stay as they are, and weights keep their names.

    Args:
        model: As a source captured it, at any opset.
        weights: Names of initializers whose values are not looked at: they may be another model's after training.
        level: How far to go, as for ``ir.passes.cleanup.clean_up``.
        in_place: Whether weights keep the bytes that they have.
    """
    drop_idle(model, weights)
    widen_indices(model)
    choose_truths(model, weights)
    use_kinds_taken(model)
    forget_half_spectra(model)
    count_axes_from_the_front(model, weights)
    DropIdentities()(model)
    common.CommonSubexpressionEliminationPass()(model)
    common.RemoveUnusedNodesPass()(model)
    if not in_place:
        pack_weights(model)
    clean_up(model, level=level, evaluate=evaluate, weights=weights, in_place=in_place)
    KeepVectors()(model)
    if level != "none":
        SplitColumns()(model)
        SplitParts()(model)
        LiftConstants()(model)
    let_pools_pad(model, weights)
    keep_padding_apart(model, weights)
    common.RemoveUnusedNodesPass()(model)
    common.RemoveUnusedOpsetsPass()(model)
    common.OutputFixPass()(model)
