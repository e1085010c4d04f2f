"""What ``jax.export`` made, as an object, as bytes and as a file: exported as the function that it was made of."""

from __future__ import annotations

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import entrepot as ep
from tests.export_cases.exported import catalogue
from tests.sweeps.exports_of_jax import judge

CASES = {case.name: case for case in catalogue()}
SAMPLE = (
    "models/decoder",
    "models/recurrent",
    "linen/conv",
    "nnx/batch_norm",
    "numpy/cumsum",
    "numpy/sort",
    "primitives/top_k",
    "primitives/scatter_add_drop",
    "primitives/gather_parts_fill",
    "primitives/switch",
    "primitives/threefry_split_normal",
    "complex_numbers/rotary",
)
WEIGHT = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)


def _network(x, *, scale):
    return {"all": jax.nn.gelu(x @ WEIGHT) * scale, "rows": x.sum(0)}


@pytest.fixture(scope="module")
def exported():
    (rows,) = jax.export.symbolic_shape("rows")
    specs = jax.ShapeDtypeStruct((rows, 4), np.float32), jax.ShapeDtypeStruct((), np.float32)
    return jax.export.export(jax.jit(_network))(specs[0], scale=specs[1])


@pytest.mark.parametrize("kind", ["object", "bytes", "bytearray", "file"])
def test_it_needs_no_sample_and_keeps_names_and_open_sizes(exported, kind, tmp_path):
    data = exported.serialize()
    (tmp_path / "network.bin").write_bytes(data)
    given = {"object": exported, "bytes": bytes(data), "bytearray": data, "file": tmp_path / "network.bin"}[kind]
    model = ep.export(given, progress=False)
    assert model.report
    assert [(spec.name, spec.shape) for spec in model.inputs] == [("x", ("batch", 4)), ("scale", ())]
    assert [spec.name for spec in model.outputs] == ["all", "rows"]
    feeds = {"x": np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32), "scale": np.float32(3)}
    found = ep.Session(model).run(feeds)
    for name, expected in _network(feeds["x"], scale=feeds["scale"]).items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)


def test_sizes_that_it_states_stay_as_they_are():
    made = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2, 3), np.float32))
    assert ep.export(made, progress=False).inputs[0].shape == (2, 3)


def test_sizes_that_follow_from_others_are_sampled_and_proved():
    rows, columns = jax.export.symbolic_shape("rows, 2*columns")
    spec = jax.ShapeDtypeStruct((rows, columns), np.float32)
    made = jax.export.export(jax.jit(lambda x: x.reshape(x.shape[0], 2, -1).sum(1)))(spec)
    model = ep.export(made, progress=False)
    assert model.report
    x = np.arange(30, dtype=np.float32).reshape(3, 10)
    (found,) = ep.Session(model).run({model.inputs[0].name: x}).values()
    np.testing.assert_array_equal(found, x.reshape(3, 2, 5).sum(1))


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_broken_file_is_refused(exported, damage, tmp_path, capfd):
    data = exported.serialize()
    at = data.index(b"StableHLO_v") + 20
    broken = data[:at] if damage == "cut" else data[:at] + bytes(200) + data[at + 200 :]
    (tmp_path / "network.bin").write_bytes(broken)
    with pytest.raises(ep.ModelFormatError, match=r"cannot read|is broken"):
        ep.export(tmp_path / "network.bin", progress=False)


def test_what_is_for_another_platform_is_refused():
    made = jax.export.export(jax.jit(jnp.sin), platforms=["tpu"])(jax.ShapeDtypeStruct((2,), np.float32))
    with pytest.raises(ep.InputError, match="exported for tpu"):
        ep.export(made, progress=False)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_corpus_is_exported_at_every_size(name):
    outcome = judge(CASES[name])
    assert (outcome.verdict, outcome.why) == ("passed", "")
