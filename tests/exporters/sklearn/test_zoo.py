"""scikit-learn's models of the zoo, at the opsets that are asked for."""

from __future__ import annotations

import pytest

import entrepot as ep
from entrepot.models_zoo import registry as zoo


@pytest.mark.parametrize("name", zoo.names("sklearn"))
def test_a_model_of_the_zoo_is_exported_and_proved(name):
    model = zoo.build(name, framework="sklearn")
    exported = ep.export(model.module, model.samples[1])
    assert exported.report.ok
    assert {f"{spec.name}.0" for spec in exported.inputs} == model.dynamic
    assert all(spec.shape[0] == "batch" for spec in exported.inputs)


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("name", sorted({*zoo.names("sklearn")} - {"topic_classifier"}))
def test_older_opsets_hold_all_but_text(name, opset):
    model = zoo.build(name, framework="sklearn")
    assert ep.export(model.module, model.sample, opset=opset).report.ok


def test_text_needs_opset_20():
    model = zoo.build("topic_classifier", framework="sklearn")
    with pytest.raises(ep.ConversionError, match="StringSplit"):
        ep.export(model.module, model.sample, opset=17)
