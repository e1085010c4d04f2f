"""Move a model between operator-set versions: per node, in exact steps, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from entrepot.ir.arguments import IntegerLike, as_opset, expected
from entrepot.ir.collector import collector_paused
from entrepot.ir.copying import copy_graphs
from entrepot.ir.errors import ConversionError, EntrepotError
from entrepot.ir.model import Model
from entrepot.ir.opset.conversion import Conversion
from entrepot.ir.opset.counters import with_plain_counters
from entrepot.ir.opset.restamp import restamped
from entrepot.ir.opset.schemas import CEILINGS, canonical
from entrepot.ir.opset.scopes import is_there, scopes

if TYPE_CHECKING:
    import onnx_ir as ir

    from entrepot.ir.io.read import Source

Target: TypeAlias = "IntegerLike | Mapping[str, IntegerLike]"
"""The ai.onnx version, or one per domain."""

ML = "ai.onnx.ml"
TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")


def convert_opset(model: Model, target: Target) -> Model:
    """The same model at other operator-set versions; the argument is not changed and weights are shared.

    Args:
        model: Any model.
        target: The ai.onnx version, or one per domain: ``{"": 17, "ai.onnx.ml": 3}``. Other domains stay as they are.

    Returns:
        A new model, or ``model`` itself if it is at that version already.

    Raises:
        ConversionError: A node cannot be expressed at that version; ``blockers`` lists every such node and why.
    """
    targets, parsed = _targets(target), model.parsed
    if is_there(_imports(model), targets):
        return model
    with collector_paused():
        if parsed is not None and (moved := restamped(parsed, targets)) is not None:
            return Model(moved, path=model.path)
        conversion = Conversion(copy_graphs(model.ir) if parsed is None else parsed.new_graph(), targets)
        conversion.run()
    if conversion.blockers:
        count = len(conversion.blockers)
        raise ConversionError(
            f"cannot convert to opset {_spell(targets)}: {count} node{'s' * (count > 1)} in the way",
            blockers=tuple(conversion.blockers),
            path=None if model.path is None else str(model.path),
        )
    return Model(conversion.result, path=model.path)


def can_convert(model: Source, target: Target) -> tuple[EntrepotError, ...]:
    """Everything that is in the way of ``convert_opset(model, target)``; empty when nothing is.

    Args:
        model: Anything ``load`` reads.
        target: See ``convert_opset``.

    Raises:
        InputError: One of the two is of the wrong type.
    """
    from entrepot.ir.io.read import load

    try:
        convert_opset(load(model), target)
    except ConversionError as error:
        return error.blockers or (error,)
    return ()


def raise_to_hub(model: Model) -> Model:
    """The model at the versions that kernels, importers and passes are written for; itself if it is there already.

    Loops count as the standard says; see ``counters``.

    Tree ensembles in their two older forms stay as they are: ai.onnx.ml 5 deprecated both and changed nothing else,
    so a model that contains one is raised to ai.onnx.ml 4.

    Raises:
        ConversionError: A node cannot be raised, or the file's opset is newer than the hub's.
    """
    used = {canonical(domain) for imports in _imports(model) for domain in imports}
    targets = {domain: version for domain, version in CEILINGS.items() if domain in used}
    if ML in used and any(node.op_type in TREES and node.domain == ML for node in _nodes(model)):
        targets[ML] = 4
    return with_plain_counters(convert_opset(model, targets))


def _imports(model: Model) -> list[Mapping[str, int]]:
    """What each scope imports."""
    parsed = model.parsed
    return [parsed.opsets] if parsed is not None else [scope.opset_imports for scope in scopes(model.ir)]


def _nodes(model: Model) -> Iterable[ir.Node]:
    """All nodes, or one of each kind."""
    parsed = model.parsed
    return (
        parsed.kinds.values()
        if parsed is not None
        else (node for scope in scopes(model.ir) for node in scope.all_nodes())
    )


def _targets(target: Target) -> dict[str, int]:
    given = target if isinstance(target, Mapping) else {"": target}
    if not all(isinstance(domain, str) for domain in given):
        raise expected("opset", "a version, or versions by domain", target, hint="{'': 18, 'ai.onnx.ml': 3}")
    wanted = {canonical(domain): as_opset(version) for domain, version in given.items()}
    for domain, version in wanted.items():
        if domain not in CEILINGS:
            raise ConversionError(f"no rules for domain '{domain}'; known: ai.onnx, ai.onnx.ml")
        if not 1 <= version <= CEILINGS[domain]:
            raise ConversionError(
                f"{domain or 'ai.onnx'} {version} is out of range; this entrepot knows 1 to {CEILINGS[domain]}"
            )
    return wanted


def _spell(targets: dict[str, int]) -> str:
    return ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in targets.items())
