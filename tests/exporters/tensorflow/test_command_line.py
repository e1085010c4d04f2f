"""Models of TensorFlow on the command line."""

from __future__ import annotations

import json

import tensorflow as tf
from click.testing import CliRunner, Result

from entrepot.cli import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def test_a_signature_of_a_saved_model_is_named_behind_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = tf.Module()
    module.double = tf.function(lambda x: x * 2).get_concrete_function(x=tf.TensorSpec([None, 4]))
    tf.saved_model.save(module, "saved", signatures={"double": module.double})
    made = run("export", "saved#double", "-o", "double.onnx", "--json")
    assert json.loads(made.stdout)["inputs"] == ["x: float32[batch, 4]"]
    refused = run("export", "saved#triple", "-o", "triple.onnx")
    assert refused.exit_code == 2
    assert "it has: double" in refused.output


def test_what_follows_text_is_exported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = tf.Module()
    module.lengths = tf.function(lambda text: tf.strings.length(text) * 2).get_concrete_function(
        text=tf.TensorSpec([None], tf.string)
    )
    tf.saved_model.save(module, "saved", signatures={"lengths": module.lengths})
    refused = run("export", "saved", "-o", "lengths.onnx")
    assert refused.exit_code != 0
    assert "--cut-strings exports what follows it" in refused.output
    made = run("export", "saved", "-o", "lengths.onnx", "--cut-strings", "--json")
    assert json.loads(made.stdout)["inputs"] == ["StringLength: int32[batch]"]
