"""``convert_opset`` with a proof where one is asked for; the conversion itself is ``ir``, which knows no evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from entrepot.ir.errors import VerificationError
from entrepot.ir.opset import convert
from entrepot.ir.progress import Progress, reporter

if TYPE_CHECKING:
    from entrepot.ir.model import Model
    from entrepot.parity.compare import Tolerance
    from entrepot.parity.feeds import Feeds


def convert_opset(
    model: Model,
    target: int | Mapping[str, int],
    *,
    verify: bool = False,
    feeds: Feeds | None = None,
    tolerance: Tolerance | None = None,
    progress: Progress = None,
) -> Model:
    """The same model at other operator-set versions; the argument is not changed and weights are shared.

    Args:
        model: Any model.
        target: The ai.onnx version, or one per domain: ``{"": 17, "ai.onnx.ml": 3}``. Other domains stay as they are.
        verify: Run both models side by side, where something here can run them.
        feeds: Inputs to verify with, by name; made up where none are given.
        tolerance: What agreement means.
        progress: Told each run of the verification; see ``export``.

    Returns:
        A new model, or ``model`` itself when it is there already. With ``verify`` its ``report`` holds the proof; where
        made-up inputs or the model cannot be run here, the report is not ``ok`` and says why.

    Raises:
        ConversionError: A node cannot be expressed there; ``blockers`` lists every such node and why.
        VerificationError: The result does not compute the same; the error carries the report.
        InputError: ``feeds`` do not fit the model.
    """
    converted = convert.convert_opset(model, target)
    if not verify or converted is model:
        return converted
    from entrepot.exporters.conversion_proof import report_on

    report = report_on(model, converted, feeds, tolerance=tolerance, progress=reporter(progress))
    if report.failures:
        raise VerificationError(f"the converted model does not compute the same: {report.summary()}", report=report)
    converted.report = report
    return converted
