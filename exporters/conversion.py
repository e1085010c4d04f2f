"""``convert_opset`` with a proof on request; the conversion itself is in ``ir``, which cannot run models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot.ir.arguments import as_flag
from entrepot.ir.opset import convert
from entrepot.ir.progress import Progress, reporter

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source
    from entrepot.ir.model import Model
    from entrepot.ir.opset.convert import Target
    from entrepot.parity.tolerance import ToleranceLike


def convert_opset(
    model: Source,
    target: Target,
    *,
    verify: bool = False,
    feeds: Any = None,
    tolerance: ToleranceLike | None = None,
    progress: Progress = None,
) -> Model:
    """The same model at other operator-set versions; the argument is not changed and weights are shared.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        target: The ai.onnx version, or one per domain: ``{"": 17, "ai.onnx.ml": 3}``. Other domains stay as they are.
        verify: Run both models side by side, where something here can run them.
        feeds: Inputs to verify with, in any form that ``Session.run`` takes; made up by default.
        tolerance: What agreement means; see ``compare``.
        progress: Told each run of the verification; see ``export``.

    Returns:
        A new model, or ``model`` itself if it is at that version already. With ``verify`` its ``report`` holds the
        proof; where no inputs can be made up or nobody independent can run the models, it is not ``ok`` and says why.

    Raises:
        ConversionError: A node cannot be expressed at that version; ``blockers`` lists every such node and why.
        VerificationError: The result does not compute the same thing; the error carries the report.
        InputError: ``feeds`` do not fit the model, or an argument is none of the things above.
    """
    from entrepot.ir.io.read import load

    tell, verify = reporter(progress), as_flag(verify, "verify")
    source = load(model)
    converted = convert.convert_opset(source, target)
    if not verify or converted is source:
        return converted
    from entrepot.exporters.options import Judging
    from entrepot.exporters.proof.conversion import prove_result
    from entrepot.parity.tolerance import Tolerance

    judging = Judging(tolerance=Tolerance.of(tolerance), progress=tell)
    prove_result(source, converted, feeds, judging, made="converted")
    return converted
