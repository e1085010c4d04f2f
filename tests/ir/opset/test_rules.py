"""The table of steps against ``onnx.defs``: every pair has a rule, and what is called unchanged is."""

from __future__ import annotations

import itertools

import onnx
import pytest

from entrepot.ir.opset.rules import Step, declared, find, keep
from entrepot.ir.opset.schemas import CEILINGS, histories, schema

STEPS = sorted(declared())
KEPT_UP = [step for step in STEPS if 0 < step.start < step.stop and find(step) is keep]
KEPT_BOTH_WAYS = [step for step in KEPT_UP if find(step._replace(start=step.stop, stop=step.start)) is keep]


def test_every_pair_of_versions_has_a_rule_in_both_directions_and_no_rule_is_without_a_pair() -> None:
    wanted = set()
    for (domain, op_type), versions in histories().items():
        for older, newer in itertools.pairwise(versions):
            wanted |= {Step(domain, op_type, older, newer), Step(domain, op_type, newer, older)}
        if versions[0] > 1:
            wanted.add(Step(domain, op_type, versions[0], 0))
    assert sorted(wanted - declared()) == []
    assert sorted(declared() - wanted) == []


def test_the_installed_onnx_brings_no_version_that_has_no_rules() -> None:
    newest = {
        domain: max(item.since_version for item in onnx.defs.get_all_schemas_with_history() if item.domain == domain)
        for domain in CEILINGS
    }
    assert newest == CEILINGS, "declare the new steps, then raise OPSET and ML_OPSET"


def attribute_kinds(known: onnx.defs.OpSchema) -> dict[str, tuple[object, ...]]:
    return {name: (item.type, item.default_value.SerializeToString()) for name, item in known.attributes.items()}


def element_types(known: onnx.defs.OpSchema, *, inputs: bool) -> list[set[str]]:
    return [set(item.types) for item in (known.inputs if inputs else known.outputs)]


@pytest.mark.parametrize("step", KEPT_UP, ids=str)
def test_a_newer_version_called_compatible_takes_every_older_node(step: Step) -> None:
    older, newer = (schema(step.domain, step.op_type, version) for version in (step.start, step.stop))
    old_kinds, new_kinds = attribute_kinds(older), attribute_kinds(newer)
    assert {name: new_kinds.get(name) for name in old_kinds} == old_kinds
    assert not [name for name in new_kinds.keys() - old_kinds.keys() if newer.attributes[name].required]
    assert (newer.min_input, newer.min_output) <= (older.min_input, older.min_output)
    assert newer.max_input >= older.max_input
    for inputs in (True, False):
        for old, new in zip(element_types(older, inputs=inputs), element_types(newer, inputs=inputs), strict=False):
            assert old <= new


@pytest.mark.parametrize("step", KEPT_BOTH_WAYS, ids=str)
def test_what_is_called_unchanged_differs_in_element_types_only(step: Step) -> None:
    older, newer = (schema(step.domain, step.op_type, version) for version in (step.start, step.stop))
    assert attribute_kinds(older) == attribute_kinds(newer)
    assert (older.max_input, older.max_output) == (newer.max_input, newer.max_output)
    assert older.deprecated == newer.deprecated


def test_a_step_registered_twice_is_an_error() -> None:
    from entrepot.ir.opset.rules import adapter

    with pytest.raises(ValueError, match="two rules"):
        adapter("Relu", 13, 6)(keep)
