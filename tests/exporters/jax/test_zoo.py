"""The zoo's models of JAX are exported, every axis that they name varies, and older opsets and our runtime agree."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import entrepot as ep
from entrepot import models_zoo
from entrepot.parity.compare import compare
from tests.sweeps.exports_of_jax import answers

OPSETS = {"mlp": 13, "resnet": 17, "vit": 17, "autoencoder": 20, "scan_rnn": 13}


@pytest.mark.parametrize("name", models_zoo.names("jax"))
def test_a_model_is_exported_with_its_axes(name):
    zoo = models_zoo.build(name, "jax")
    model = ep.export(zoo.module, zoo.sample, progress=False, opset=OPSETS.get(name))
    assert model.report.ok
    varying = {
        f"{spec.name}.{at}" for spec in model.inputs for at, dim in enumerate(spec.shape) if isinstance(dim, str)
    }
    assert varying >= zoo.dynamic
    leaves = [np.asarray(each) for each in jax.tree.leaves(zoo.samples[-1])]
    found = ep.Session(model).run(dict(zip([spec.name for spec in model.inputs], leaves, strict=True)))
    assert compare(dict(zip(found, answers(zoo.module, zoo.samples[-1]), strict=True)), found).ok


def test_building_twice_gives_the_same():
    first, second = (models_zoo.build("decoder", "jax").module[1] for _ in range(2))
    assert all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(second)))
