"""Who computes a model of any opset.

Below 7 the evaluator in ``tests/judges/early``, which is written from the specification; onnxruntime up to 26; onnx's
reference where that knows what the version meant.
"""

from __future__ import annotations

import atexit
import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx

from entrepot.exporters.proof.judge import undisturbed
from entrepot.ir.opset.rules import Step, find, keep
from entrepot.ir.opset.schemas import CEILINGS, canonical, histories, since
from tests.judges.apart import Apart
from tests.judges.early import evaluate as early
from tests.judges.oracle import ORT_OPSET, run_onnxruntime

APART = Apart()
atexit.register(APART.close)


@dataclass(frozen=True)
class Answers:
    """What an evaluator computes, or why none does."""

    by: str | None
    values: list[Any]
    problem: str = ""


def opsets(proto: onnx.ModelProto) -> dict[str, int]:
    """Domain to the version that the model imports."""
    return {canonical(item.domain): item.version for item in proto.opset_import}


Run: TypeAlias = Callable[[onnx.ModelProto, dict[str, Any]], list[Any]]


def evaluate(proto: onnx.ModelProto, feeds: dict[str, Any], run: Run = run_onnxruntime) -> Answers:
    """The results of a model from the first evaluator that knows its versions; ``run`` runs onnxruntime.

    Raises:
        BreachError: The model does something that its opset does not allow, although the checker lets it pass.
    """
    if opsets(proto).get("", early.NEWEST + 1) <= early.NEWEST:
        return _early(proto, feeds)
    first = "newer than onnxruntime"
    if _gathers_words(proto, feeds):
        first = "onnxruntime's Gather copies only the first string of many"
    elif opsets(proto).get("", 1) <= ORT_OPSET:
        answers = _onnxruntime(proto, feeds, run)
        if answers.by:
            return answers
        first = answers.problem
    answers = _reference(proto, feeds) if _reference_knows(proto) else Answers(None, [], first)
    older = None if answers.by or first.startswith("onnxruntime's") else _before_22(proto)
    return answers if older is None else _onnxruntime(older, feeds, run)


def _gathers_words(proto: onnx.ModelProto, feeds: dict[str, Any]) -> bool:
    """Whether strings are gathered; ``test_rows`` notices when onnxruntime no longer loses them."""
    gathers = any(node.op_type == "Gather" for node in proto.graph.node)
    return gathers and any(isinstance(value, np.ndarray) and value.dtype.kind == "O" for value in feeds.values())


def _before_22(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model at opset 21, where its operators read word for word the same: version 22 of many only gained types."""
    version = opsets(proto).get("", 1)
    if version < 22 or not all(not node.domain and _reads_as(node.op_type, version, 21) for node in proto.graph.node):
        return None
    older = onnx.ModelProto()
    older.CopyFrom(proto)
    older.opset_import[0].version = 21
    older.ir_version = min(older.ir_version, 10)
    return older


@functools.cache
def _reads_as(op_type: str, version: int, older: int) -> bool:
    a, b = (onnx.defs.get_schema(op_type, item) for item in (version, older))
    defaults = [{name: item.default_value.SerializeToString() for name, item in s.attributes.items()} for s in (a, b)]
    return a.doc.split() == b.doc.split() and defaults[0] == defaults[1]


def before(sample: Any, by: str | None) -> Answers:
    """What the same evaluator computes for a test before any conversion."""
    if by == "reference":
        return _reference(sample.model, sample.feeds)
    if by == "early":
        return Answers(None, [], "it is never wrong")
    if opsets(sample.model).get("", 1) <= ORT_OPSET:
        return _onnxruntime(sample.model, sample.feeds)
    if not all(_means_the_same(node, ORT_OPSET) for node in sample.model.graph.node):
        return Answers(None, [], "no kernel of this version")
    proto = onnx.ModelProto()
    proto.CopyFrom(sample.model)
    for item in proto.opset_import:
        item.version = min(item.version, ORT_OPSET)
    proto.ir_version = min(proto.ir_version, 13)
    return _onnxruntime(proto, sample.feeds)


def _early(proto: onnx.ModelProto, feeds: dict[str, Any]) -> Answers:
    try:
        return Answers("early", early.run(proto, feeds))
    except early.CannotJudgeError as error:
        return Answers(None, [], str(error))


def _onnxruntime(proto: onnx.ModelProto, feeds: dict[str, Any], run: Run = run_onnxruntime) -> Answers:
    if any(isinstance(value, np.ndarray) and not value.size for value in feeds.values()):
        run = APART.run  # some kernels end the process on empty tensors
    try:
        return Answers("onnxruntime", run(proto, feeds))
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own family of Exceptions
        return Answers(None, [], str(error).splitlines()[0])


def _reference(proto: onnx.ModelProto, feeds: dict[str, Any]) -> Answers:
    from onnx.reference import ReferenceEvaluator

    try:
        with undisturbed():
            return Answers("reference", ReferenceEvaluator(proto).run(None, feeds))
    except Exception as error:  # noqa: BLE001 - whatever the reference cannot do is not judged
        return Answers(None, [], str(error).partition("\n")[0])


def _reference_knows(proto: onnx.ModelProto) -> bool:
    """Whether every node has the meaning that the reference gives it, which for many operators is the newest."""
    versions = opsets(proto)
    return all(_reference_op(node.domain, node.op_type, versions.get(node.domain, 1)) for node in proto.graph.node)


@functools.cache
def _reference_op(domain: str, op_type: str, version: int) -> bool:
    from onnx.reference.ops._op_list import load_op

    if domain or _is_as_new(domain, op_type, version):
        return True
    try:
        return load_op(domain, op_type, version) is not load_op(domain, op_type, CEILINGS[domain])
    except Exception:  # noqa: BLE001 - it has no such operator
        return False


def _means_the_same(node: onnx.NodeProto, version: int) -> bool:
    return _is_as_new(canonical(node.domain), node.op_type, version)


def _is_as_new(domain: str, op_type: str, version: int) -> bool:
    """Whether newer versions accept a node unchanged."""
    first = since(domain, op_type, version)
    later = [item for item in histories().get((domain, op_type), ()) if item >= first]
    return bool(first) and all(find(Step(domain, op_type, a, b)) is keep for a, b in itertools.pairwise(later))
