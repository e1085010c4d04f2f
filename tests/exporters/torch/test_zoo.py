"""Every model of the zoo, exported with ``dynamic="auto"`` and proved on both providers."""

import functools

import numpy as np
import pytest

import entrepot as ep
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.models_zoo import registry

CONTROL_FLOW = {"early_exit": {"If"}, "fixed_point": {"Loop"}, "lstm_tagger": {"LSTM"}, "gru_classifier": {"GRU"}}


@functools.cache
def built(name: str) -> registry.ZooModel:
    return registry.build(name)


@functools.cache
def exported(name: str) -> ep.Model:
    model = built(name)
    return ep.export(model.module, model.sample)


def dynamic_axes(model: ep.Model) -> set[str]:
    return {
        f"{spec.name}.{axis}"
        for spec in model.inputs
        for axis, dim in enumerate(spec.shape or ())
        if not isinstance(dim, int)
    }


@pytest.mark.parametrize("name", registry.names("torch"))
def test_a_model_of_the_zoo_is_exported_and_proved_with_every_axis_dynamic_that_varies(name):
    model = exported(name)
    assert model.report is not None
    assert model.report.ok
    assert set(model.report.providers) == {"cpu", "onnxruntime"}
    assert dynamic_axes(model) >= built(name).dynamic
    assert CONTROL_FLOW.get(name, set()) <= {node.op_type for node in model.ir.graph.all_nodes()}


@pytest.mark.parametrize("name", registry.names("torch"))
def test_weights_are_stored_once_and_under_the_names_of_the_module(name):
    module, graph = built(name).module, exported(name).ir.graph
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    stored = sum(value.const_value.nbytes for value in graph.initializers.values())
    assert stored <= 1.05 * sum(tensor.nbytes for tensor in tensors.values()) + 4096
    packed = ("W_l", "R_l", "B_l")
    strangers = [
        key
        for key, value in graph.initializers.items()
        if key not in tensors and not key.rpartition(".")[2].startswith(packed)
        if value.const_value.dtype.is_floating_point()  # the others are tables of positions
    ]
    assert all("lifted" in key or graph.initializers[key].const_value.nbytes <= 1024 for key in strangers), strangers


@pytest.mark.parametrize(
    "name", ["lstm_tagger", "gru_classifier", "bert", "dlrm", "swin", "detection_head", "fixed_point"]
)
def test_every_shape_that_the_graph_declares_is_that_of_the_values(name):
    model, zoo = exported(name), built(name)
    sample = Sample.of(zoo.samples[-1])
    call = flatten_call(sample, zoo.module.forward, TORCH)
    feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, call.tensors, strict=True)}
    sizes: dict[str, int] = {}
    for spec in model.inputs:
        sizes |= {str(dim): size for dim, size in zip(spec.shape, feeds[spec.name].shape, strict=True)}
    declared = {value.name: value.shape for node in model.at_hub().ir.graph for value in node.outputs}
    wrong: list[str] = []

    def observe(value: str, array: object) -> None:
        shape = declared.get(value)
        if shape is None or not isinstance(array, np.ndarray):
            return
        known = [dim if isinstance(dim, int) else sizes.get(dim.value or "") for dim in shape]
        if len(known) != array.ndim or any(a is not None and a != b for a, b in zip(known, array.shape, strict=True)):
            wrong.append(f"{value}: declared {shape}, is {array.shape}")

    ep.Session(model, providers=["reference"]).run(feeds, observe=observe)
    assert not wrong
