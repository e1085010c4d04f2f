"""Steps of operators without operator cases, above all those with bodies, on onnx's backend tests for them."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from dataclasses import replace

from entrepot.ir.io.read import load
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.rules import Step
from entrepot.ir.opset.schemas import histories, since
from tests.judges.evaluators import opsets
from tests.judges.verdict import Sample, judge
from tests.sweeps.corpus import samples

FEW = 8
"""Nodes; larger tests are operators written out by their schema's body, and hold Constants by the dozen."""


def backend_rows(covered: Container[tuple[str, str]], match: str) -> Iterator[tuple[Step, str, str]]:
    """Every step in both directions of every operator of a backend test that is not covered."""
    for sample in samples(("node",), ""):
        if len(sample.model.graph.node) > FEW:
            continue
        found = {node.op_type for node in sample.model.graph.node if not node.domain and match in node.op_type}
        for op_type in sorted(op for op in found if ("", op) in histories() and ("", op) not in covered):
            yield from _judged(sample, op_type)


def _judged(sample: Sample, op_type: str) -> Iterator[tuple[Step, str, str]]:
    model, opset = load(sample.model), opsets(sample.model)[""]
    own = since("", op_type, opset)
    for older, newer in itertools.pairwise((0, *histories()["", op_type])):
        up, down = Step("", op_type, older, newer), Step("", op_type, newer, older)
        if newer <= own and newer > 1:
            verdict, why = judge(sample, model, older or newer - 1)
            yield down, verdict, f"{sample.name}: {why}"
            if verdict == "right":
                lower = convert_opset(model, older or newer - 1)
                verdict, why = judge(replace(sample, model=lower.to_proto(), origin=sample), lower, newer)
                yield up, verdict, f"{sample.name}: {why}"
        elif own < newer <= OPSET:  # from its own opset on, also over more than one step
            verdict, why = judge(sample, model, newer)
            yield up, verdict, f"{sample.name}: {why}"
