"""``simplify`` and ``optimize``: the same model with fewer nodes, proved on the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from entrepot.ir.arguments import as_choice, as_flag, as_names
from entrepot.ir.passes.levels import LEVELS, Level
from entrepot.ir.progress import Progress, reporter

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source
    from entrepot.ir.model import Model
    from entrepot.parity.tolerance import ToleranceLike


def simplify(
    model: Source,
    *,
    verify: bool = True,
    feeds: Any = None,
    tolerance: ToleranceLike | None = None,
    passes: str | Sequence[str] = (),
    progress: Progress = None,
) -> Model:
    """The same model without what it does not need: the argument is not changed and weights are shared.

    Constants are computed once, chains of reshapes, transposes and casts joined, and batch normalisations absorbed into
    the weights before them; repeated and idle nodes are removed, and so are functions, opsets and weights that nothing
    uses. Inputs, outputs and the weights that stay keep their names; metadata stays.

    Args:
        model: What ``load`` takes, at any opset.
        verify: Run both models side by side, where something here can run them.
        feeds: Inputs to verify with, in any form that ``Session.run`` takes; made up by default.
        tolerance: What agreement means.
        passes: Names of further passes, which other distributions register among ``entrepot.passes``; they come first.
        progress: Told each run of the verification; see ``export``.

    Returns:
        A new model. With ``verify`` its ``report`` holds the proof; where the model cannot be run here, the report is
        not ``ok`` and says why.

    Raises:
        ConversionError: The model breaks the schema of an operator.
        VerificationError: The result does not compute the same thing; the error carries the report.
        InputError: ``feeds`` do not fit the model, there is no such pass, or an argument is of the wrong kind.
        PluginError: What is registered as a pass cannot be imported, or is none.
    """
    names = as_names(passes, "passes")
    return _proved(model, lambda source: _simplified(source, names), verify, feeds, tolerance, progress, "simplified")


def optimize(
    model: Source,
    level: Level = "extended",
    *,
    verify: bool = True,
    feeds: Any = None,
    tolerance: ToleranceLike | None = None,
    progress: Progress = None,
) -> Model:
    """The same model as fast as its nodes allow: the argument is not changed, and weights that stay are shared.

    Args:
        model: What ``load`` takes, at any opset.
        level: ``"none"``: as it is; ``"basic"``: what ``simplify`` does; ``"extended"``: batch normalisations before a
            convolution that does not pad, or before a Gemm, are absorbed into its weights, too. It may get a bias then.
        verify: Run both models side by side, where something here can run them.
        feeds: Inputs to verify with, in any form that ``Session.run`` takes; made up by default.
        tolerance: What agreement means.
        progress: Told each run of the verification; see ``export``.

    Returns:
        A new model. With ``verify`` its ``report`` holds the proof; where the model cannot be run here, the report is
        not ``ok`` and says why. The metadata ``entrepot.absorbed`` of a node says what its weights took in.

    Raises:
        ConversionError: The model breaks the schema of an operator.
        VerificationError: The result does not compute the same thing; the error carries the report.
        InputError: ``feeds`` do not fit the model, there is no such level, or an argument is of the wrong kind.
    """
    known = as_choice(level, LEVELS, "level")
    return _proved(
        model, lambda source: _simplified(source, (), known), verify, feeds, tolerance, progress, "optimized"
    )


def _proved(
    given: Source,
    change: Callable[[Model], Model],
    verify: Any,
    feeds: Any,
    tolerance: ToleranceLike | None,
    progress: Progress,
    made: str,
) -> Model:
    from entrepot.ir.io.read import load

    tell, verify = reporter(progress), as_flag(verify, "verify")
    source = load(given)
    result = change(source)
    if not verify:
        return result
    from entrepot.exporters.options import Judging
    from entrepot.exporters.proof.conversion import prove_result
    from entrepot.parity.tolerance import Tolerance

    judging = Judging(tolerance=Tolerance.of(tolerance), progress=tell)
    prove_result(source, result, feeds, judging, made=made)
    return result


def _simplified(source: Model, passes: Sequence[str], level: Level = "basic") -> Model:
    from onnx_ir.passes import common

    from entrepot.ir.copying import copy_graphs
    from entrepot.ir.model import Model
    from entrepot.ir.passes.cleanup import clean_up
    from entrepot.ir.passes.registered import registered
    from entrepot.runtime.planning.constants import evaluate

    graphs = copy_graphs(source.ir)
    for extra in registered(passes):
        graphs = extra(graphs).model
    if level == "none":
        return Model(graphs, path=source.path)
    clean_up(graphs, level=level, evaluate=evaluate)
    common.RemoveUnusedFunctionsPass()(graphs)  # type: ignore[no-untyped-call]
    common.RemoveUnusedOpsetsPass()(graphs)
    return Model(graphs, path=source.path)
