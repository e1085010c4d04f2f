"""Files of Keras: models are exported, code is not run, what cannot be read is refused with what to do."""

from __future__ import annotations

import os

import keras
import numpy as np
import pytest
from click.testing import CliRunner
from keras import layers

import entrepot as ep
from entrepot.cli import main

pytestmark = [  # of Keras, as it saves: the format is old, and NumPy's protocol is new
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:You are saving your model:UserWarning"),
]


class Doubled(layers.Layer):
    """A layer that files know by name alone."""

    def call(self, x):
        return x * 2


@pytest.fixture
def model():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu")])


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_a_saved_model_is_exported(model, suffix, tmp_path):
    path = tmp_path / f"model.{suffix}"
    model.save(path)
    exported = ep.export(path, progress=False)
    x = np.ones((2, 4), np.float32)
    found = ep.Session(exported).run({exported.inputs[0].name: x})
    np.testing.assert_allclose(next(iter(found.values())), np.asarray(model(x)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["model.json", "config.json"])
def test_weights_are_read_into_the_model_that_is_described_beside_them(name, model, tmp_path):
    model.save_weights(tmp_path / "model.weights.h5")
    (tmp_path / name).write_text(model.to_json())
    exported = ep.export(tmp_path / "model.weights.h5", progress=False)
    x = np.ones((2, 4), np.float32)
    found = ep.Session(exported).run({exported.inputs[0].name: x})
    np.testing.assert_allclose(next(iter(found.values())), np.asarray(model(x)), rtol=1e-5, atol=1e-6)


def test_weights_that_are_not_of_the_model_beside_them_are_refused(model, tmp_path):
    other = keras.Sequential([keras.Input((4,)), layers.Dense(5)])
    model.save_weights(tmp_path / "model.weights.h5")
    (tmp_path / "model.json").write_text(other.to_json())
    with pytest.raises(ep.ModelFormatError, match=r"keras .* cannot read it"):
        ep.export(tmp_path / "model.weights.h5", progress=False)


def test_the_code_of_a_lambda_beside_weights_is_not_run(tmp_path):
    made = keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x * 2, name="double")])
    made.save_weights(tmp_path / "model.weights.h5")
    (tmp_path / "model.json").write_text(made.to_json())
    with pytest.raises(ep.InputError, match=r"layer 'double' of .* is a Lambda"):
        ep.export(tmp_path / "model.weights.h5", progress=False)


def test_weights_alone_are_refused(model, tmp_path):
    model.save_weights(tmp_path / "model.weights.h5")
    with pytest.raises(ep.InputError, match="weights without a model") as caught:
        ep.export(tmp_path / "model.weights.h5", progress=False)
    assert "model.json" in (caught.value.hint or "")


def test_a_folder_that_keras_wrote_is_exported(model, tmp_path):
    keras.saving.save_model(model, tmp_path / "model", zipped=False)
    assert ep.export(tmp_path / "model", progress=False).report.ok
    made = CliRunner().invoke(main, ["export", str(tmp_path / "model"), "-o", str(tmp_path / "net.onnx")])
    assert made.exit_code == 0, made.output


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("net.keras", ep.ModelFormatError, "no archive of Keras, or is cut off"),
        ("net.h5", ep.ModelFormatError, "it is no HDF5 file"),
    ],
)
def test_a_file_that_is_cut_off_is_refused(name, kind, message, model, tmp_path):
    model.save(tmp_path / name)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:90])
    with pytest.raises(kind, match=message):
        ep.export(tmp_path / name, progress=False)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_the_code_of_a_lambda_is_not_run(suffix, tmp_path):
    path = tmp_path / f"model.{suffix}"
    keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x * 2, name="double")]).save(path)
    with pytest.raises(ep.InputError, match=r"layer 'double' of .* is a Lambda"):
        ep.export(path, progress=False)


def test_layers_of_somebody_else_are_refused_with_what_to_do(tmp_path):
    path = tmp_path / "model.keras"
    keras.Sequential([keras.Input((4,)), Doubled()]).save(path)
    with pytest.raises(ep.InputError) as caught:
        ep.export(path, progress=False)
    assert "custom_objects" in (caught.value.hint or "")


def test_a_file_of_a_later_keras_is_refused(model, tmp_path):
    import json
    import zipfile

    model.save(tmp_path / "model.keras")
    with (
        zipfile.ZipFile(tmp_path / "model.keras") as now,
        zipfile.ZipFile(tmp_path / "later.keras", "w") as later,
    ):
        for name in now.namelist():
            if name != "metadata.json":
                later.writestr(name, now.read(name))
        later.writestr("metadata.json", json.dumps({"keras_version": "12.0.1"}))
    with pytest.raises(ep.InputError, match=r"written by keras 12\.0\.1, and keras 3"):
        ep.export(tmp_path / "later.keras", progress=False)


def test_texts_for_a_model_of_numbers_are_refused(model):
    with pytest.raises(ep.InputError, match=r"the sample is of <U1, and the model takes float32"):
        ep.export(model, np.array([["a", "b", "c", "d"]]), progress=False)


def test_a_file_that_is_larger_inside_than_it_should_be_is_refused(tmp_path):
    import zipfile

    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", bytes(1 << 26))
    with pytest.raises(ep.ModelFormatError, match="would unpack to"):
        ep.export(path, progress=False)


def test_what_cannot_be_read_layer_by_layer_is_traced():
    class Sizes(layers.Layer):
        def call(self, x):
            batch, length, width = keras.ops.shape(x)
            return keras.ops.reshape(x, (batch * length, width))

    x = keras.Input((None, 4))
    exported = ep.export(keras.Model(x, Sizes()(x)), progress=False)
    assert exported.report.ok
    assert any("as its backend traces it" in note for note in exported.notes)
