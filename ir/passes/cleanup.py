"""The passes that every model goes through before it is written, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import onnx_ir as ir

from entrepot.ir.errors import DEFECT, MALFORMED, ConversionError, EntrepotError
from entrepot.ir.passes.absorb_leading import AbsorbLeadingNormalization
from entrepot.ir.passes.absorb_normalization import AbsorbNormalization
from entrepot.ir.passes.absorb_padding import AbsorbPadding
from entrepot.ir.passes.add_to_products import AddToProducts
from entrepot.ir.passes.arrange_weights import ArrangeWeights
from entrepot.ir.passes.clip_bounds import ClipBounds
from entrepot.ir.passes.divide_by_roots import DivideByRoots
from entrepot.ir.passes.drop_idle import DropIdle
from entrepot.ir.passes.drop_negations import DropNegations
from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.ir.passes.drop_zero_bias import DropZeroBias
from entrepot.ir.passes.flatten_stacks import FlattenStacks
from entrepot.ir.passes.fold_constants import Evaluate, FoldConstants
from entrepot.ir.passes.gather_moved import GatherMoved
from entrepot.ir.passes.gather_rows import GatherRows
from entrepot.ir.passes.gather_slices import GatherSlices
from entrepot.ir.passes.infer_sizes import InferSizes
from entrepot.ir.passes.join_moves import JoinMoves
from entrepot.ir.passes.keep_axes import KeepAxes
from entrepot.ir.passes.keep_batches import KeepBatches
from entrepot.ir.passes.keep_reduced import KeepReduced
from entrepot.ir.passes.let_broadcast import LetBroadcast
from entrepot.ir.passes.levels import Level
from entrepot.ir.passes.lift_constants import LiftConstants
from entrepot.ir.passes.merge_repeated import MergeRepeated
from entrepot.ir.passes.negate_factors import NegateFactors
from entrepot.ir.passes.pad_zeros import PadZeros
from entrepot.ir.passes.read_sizes import ReadSizes
from entrepot.ir.passes.settle_shapes import SettleShapes
from entrepot.ir.passes.settle_types import SettleTypes
from entrepot.ir.passes.share_signs import ShareSigns
from entrepot.ir.passes.share_sizes import ShareSizes
from entrepot.ir.passes.stack_writes import StackWrites
from entrepot.ir.passes.sum_squares import SumSquares
from entrepot.ir.passes.take_parts import TakeParts
from entrepot.ir.passes.turn_products import TurnProducts
from entrepot.ir.passes.unpack_sequences import UnpackSequences

_ROUNDS = 10

Step: TypeAlias = Callable[[ir.Model], ir.passes.PassResult]


def clean_up(
    model: ir.Model,
    *,
    level: Level = "basic",
    evaluate: Evaluate,
    weights: Collection[str] = (),
    in_place: bool = False,
) -> bool:
    """Remove what a model does not need; inputs, outputs and weights keep their names.

    Args:
        model: Changed in place; its tensors are not.
        level: How far to go.
        evaluate: Runs a model without inputs; see ``FoldConstants``.
        weights: Names of initializers that are weights, even if they are single numbers; others may be constants.
        in_place: Whether weights keep the bytes that they have, because they lie in files that stay.

    Returns:
        Whether anything changed.

    Raises:
        ConversionError: The model breaks the schema of an operator.
    """
    if level == "none":
        return False
    steps: Sequence[Step] = (
        SettleTypes(),
        DropIdle(weights),
        UnpackSequences(),
        JoinMoves(),
        KeepAxes(),
        KeepReduced(),
        DropNegations(),
        NegateFactors(weights),
        ShareSigns(),
        SumSquares(),
        DivideByRoots(),
        GatherSlices(),
        GatherRows(),
        TakeParts(),
        FlattenStacks(),
        PadZeros(),
        GatherMoved(),
        TurnProducts(in_place=in_place),
        AddToProducts(),
        KeepBatches(),
        SettleShapes(),
        LetBroadcast(),
        StackWrites(),
        InferSizes(),
        ReadSizes(),
        ShareSizes(),
        ClipBounds(weights),
        MergeRepeated(),
        FoldConstants(evaluate, weights),
        DropZeroBias(weights),
        DropUnused(),
        AbsorbPadding(),
        *_weight_steps(level, in_place=in_place),
        LiftConstants(),
    )
    for done in range(_ROUNDS):  # each step may make others possible
        modified = [_modified(step, model) for step in steps]
        if not any(modified):
            return done > 0
    return True


def _modified(step: Step, model: ir.Model) -> bool:
    try:
        return step(model).modified
    except EntrepotError:
        raise
    except MALFORMED as error:
        raise ConversionError(
            f"{type(step).__name__} cannot read the model, which is not valid ({type(error).__name__}: {error})",
            hint=DEFECT,
        ) from error


def _weight_steps(level: Level, *, in_place: bool) -> Sequence[Step]:
    if in_place:
        return ()
    further = (AbsorbLeadingNormalization(),) if level == "extended" else ()
    return ArrangeWeights(), AbsorbNormalization(), *further
