"""What the tests of imported modules share: exports of the zoo, and how both sides are called."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import torch

import entrepot as ep
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.models_zoo import registry

HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(HEAD + text))


@functools.cache
def built(name: str) -> registry.ZooModel:
    return registry.build(name)


@functools.cache
def exported(name: str) -> ep.Model:
    return ep.export(built(name).module, built(name).sample, verify=False)


@functools.cache
def imported(name: str) -> torch.nn.Module:
    """The module of such an export, which no test changes."""
    return ep.to_torch(exported(name), verify=False)


@functools.cache
def kept(name: str) -> torch.nn.Module:
    """The same of an export that left every node as it was, normalisations included."""
    return ep.to_torch(ep.export(built(name).module, built(name).sample, verify=False, optimize="none"), verify=False)


def arguments(name: str, sample: Any) -> list[torch.Tensor]:
    """A sample of the zoo as the inputs of the graph."""
    return list(flatten_call(Sample.of(sample), built(name).module.forward, TORCH).tensors)


def feeds(name: str, sample: Any) -> dict[str, np.ndarray]:
    pairs = zip(exported(name).inputs, arguments(name, sample), strict=True)
    return {spec.name: tensor.numpy() for spec, tensor in pairs}


def results(net: torch.nn.Module, given: list[torch.Tensor]) -> list[torch.Tensor]:
    made = net(*given)
    return list(made) if isinstance(made, tuple) else [made]


def judged(name: str, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime computes."""
    return ep.Session(exported(name), providers=["onnxruntime"]).run(dict(given))
