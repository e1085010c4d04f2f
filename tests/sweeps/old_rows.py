"""Old nodes raised across every version step of their operator, and lowered again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.rules import Step
from entrepot.ir.opset.schemas import histories, since
from tests.judges.early import evaluate
from tests.judges.verdict import Sample, judge, with_constants
from tests.sweeps.old_nodes import OldNode
from tests.sweeps.rows import without_shapes


def judged(node: OldNode) -> Iterator[tuple[Step, str, str]]:
    """Each step in each direction, its verdict, and what to say about it; as ``tests.sweeps.rows`` judges cases."""
    own = since("", node.op_type, node.opset)
    versions = [version for version in histories()["", node.op_type] if version >= own]
    for sample in forms(node):
        model = Model(ir.serde.deserialize_model(sample.model))
        for older, newer in itertools.pairwise(versions):
            verdict, why = judge(sample, model, newer)
            yield Step("", node.op_type, older, newer), verdict, f"{sample.name}: {why}"
            if verdict == "right":
                raised = convert_opset(model, newer)
                back = replace(sample, model=ir.serde.serialize_model(raised.ir), origin=sample)
                verdict, why = judge(back, raised, max(older, node.opset))
                yield Step("", node.op_type, newer, older), verdict, f"{sample.name}: {why}"


def forms(node: OldNode) -> Iterator[Sample]:
    """The node as it is, with constants, and without shapes; the early evaluator says what it computes."""
    expected = evaluate.run(node.model(), node.feeds())
    plain = Sample(str(node), node.model(expected), node.feeds(), expected, 1e-4, 1e-5)
    yield plain
    twin = with_constants(plain)
    if twin is not None:
        yield twin
    yield replace(plain, name=f"{plain.name}#rank", model=without_shapes(plain.model))
