"""SavedModels with their signatures, frozen graphs and checkpoints: opened without a sample, judged by TensorFlow."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

V1 = tf.compat.v1


class Net(tf.Module):
    def __init__(self) -> None:
        self.weight = tf.Variable(np.eye(3, 4, dtype=np.float32) * 2.0, name="weight")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.nn.relu(x @ self.weight)}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x"), tf.TensorSpec([None], tf.int32, name="rows")])
    def pick(self, x: tf.Tensor, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"picked": tf.gather(x @ self.weight, rows)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "net"
    net = Net()
    tf.saved_model.save(net, str(folder), signatures={"serving_default": net.__call__, "pick": net.pick})
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of TensorFlow 1: frozen, as a checkpoint, as a SavedModel."""
    folder = tmp_path_factory.mktemp("old")
    with tf.Graph().as_default() as graph, V1.Session() as session:
        x = V1.placeholder(tf.float32, [None, 3], name="x")
        weight = V1.get_variable("weight", [3, 2], initializer=tf.constant_initializer(0.5), use_resource=False)
        probabilities = tf.nn.softmax(tf.matmul(x, weight), name="probabilities")
        session.run(V1.global_variables_initializer())
        V1.train.Saver().save(session, str(folder / "checkpoint" / "model.ckpt"))
        frozen = V1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["probabilities"])
        (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
        signature = V1.saved_model.predict_signature_def({"x": x}, {"p": probabilities})
        builder = V1.saved_model.Builder(str(folder / "saved"))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map={"serving_default": signature})
        builder.save()
    return folder


@pytest.mark.parametrize("kind", ["frozen", "checkpoint"])
@pytest.mark.parametrize("flow", ["loop", "branch", "only_loop"])
def test_what_a_loop_or_branch_carries_besides_is_no_result(kind: str, flow: str, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, V1.Session() as session:
        x = V1.placeholder(tf.float32, [None, 3], name="x")
        count, y = (
            tf.cond(tf.reduce_sum(x) > 0, lambda: (1, x * 2), lambda: (2, x - 1))
            if flow == "branch"
            else tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 0.5), (0, x))
        )
        scale = V1.get_variable("scale", [], initializer=tf.constant_initializer(4.0), use_resource=False)
        last = [(y if flow == "only_loop" else tf.multiply(y, scale, name="result")).op.name, count.op.name]
        session.run(V1.global_variables_initializer())
        frozen = V1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), last)
        (tmp_path / "frozen.pb").write_bytes(frozen.SerializeToString())
        V1.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    model = ep.export(tmp_path / ("frozen.pb" if kind == "frozen" else "model.ckpt.meta"))
    assert model.report
    if flow == "only_loop":
        assert len(model.outputs) > 1
    else:
        assert [spec.name for spec in model.outputs] == ["result"]


def test_a_saved_model_is_exported_by_its_default_signature(saved: Path) -> None:
    model = ep.export(saved)
    assert model.report
    assert [spec.name for spec in (*model.inputs, *model.outputs)] == ["x", "y"]
    assert model.inputs[0].shape == ("batch", 3)
    assert "weight" in model.ir.graph.initializers


def test_the_only_input_of_a_signature_needs_no_name(saved: Path) -> None:
    model = ep.export(saved, np.ones((2, 3), np.float32))
    assert model.report
    with pytest.raises(ep.InputError, match="does not fit"):
        ep.export(f"{saved}#pick", (np.ones((2, 3), np.float32), np.array([1, 0], np.int32)))


@pytest.mark.parametrize("way", ["by name", "itself"])
def test_another_signature_is_named_after_the_folder_or_given_itself(saved: Path, way: str) -> None:
    loaded = tf.saved_model.load(str(saved))  # which holds the variables
    given = f"{saved}#pick" if way == "by name" else loaded.signatures["pick"]
    model = ep.export(given, {"x": np.ones((2, 3), np.float32), "rows": np.array([1, 0, 1], np.int32)})
    assert model.report
    assert [spec.name for spec in model.outputs] == ["picked"]


def test_a_signature_that_is_missing_is_refused_with_those_that_are_there(saved: Path) -> None:
    with pytest.raises(ep.InputError, match=r"no signature 'other'; it has: .*pick.*serving_default"):
        ep.export(f"{saved}#other")


@pytest.mark.parametrize(
    "path", ["frozen.pb", "checkpoint/model.ckpt.meta", "checkpoint", "saved", "saved/saved_model.pb"]
)
def test_graphs_of_tensorflow_1_are_exported_with_their_variables(old: Path, path: str) -> None:
    model = ep.export(old / path)
    assert model.report
    assert model.inputs[0].shape == ("batch", 3)
    np.testing.assert_array_equal(model.ir.graph.initializers["weight"].const_value.numpy(), np.full((3, 2), 0.5))


def test_a_folder_that_is_no_saved_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ep.InputError, match="cannot tell what"):
        ep.export(tmp_path)


def test_a_graph_that_is_cut_off_is_refused(old: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pb"
    broken.write_bytes((old / "frozen.pb").read_bytes()[:-30])
    with pytest.raises(ep.ModelFormatError, match="no GraphDef"):
        ep.export(broken)


def test_an_operator_that_tensorflow_does_not_know_is_named(tmp_path: Path) -> None:
    graph = V1.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    graph.node.add(name="y", op="Unheard", input=["x"])
    (tmp_path / "unheard.pb").write_bytes(graph.SerializeToString())
    with pytest.raises(ep.ModelFormatError, match="Unheard"):
        ep.export(tmp_path / "unheard.pb")


@pytest.mark.parametrize("kind", ["python", "files"])
def test_a_graph_that_reaches_beyond_its_tensors_is_refused_before_it_is_run(tmp_path: Path, kind: str) -> None:
    written = tmp_path / "written"

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def reaches(x: tf.Tensor) -> tf.Tensor:
        if kind == "python":
            return tf.py_function(lambda value: value, [x], tf.float32)
        tf.io.write_file(str(written), "text")
        return x

    module = tf.Module()
    module.reaches = reaches
    tf.saved_model.save(module, str(tmp_path / "saved"))
    with pytest.raises(ep.UnsupportedOpError, match="EagerPyFunc" if kind == "python" else "WriteFile"):
        ep.export(tmp_path / "saved")
    assert not written.exists()


@pytest.mark.parametrize("kind", ["Ragged", "Sparse"])
def test_inputs_that_are_several_tensors_in_one_are_refused(kind: str) -> None:
    given = tf.ragged.constant([[1.0], [2.0, 3.0]]) if kind == "Ragged" else tf.sparse.eye(2)
    with pytest.raises(ep.InputError, match=f"tf.{kind}Tensor cannot be an input"):
        ep.export(tf.function(lambda x: tf.reduce_sum(x.values)), given)


def test_lookup_tables_come_with_their_entries(tmp_path: Path) -> None:
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(entries, -1)
    module.find = tf.function(module.table.lookup, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path))
    model = ep.export(tmp_path)
    assert model.report
    found = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: np.array(["b", "z", "a"], object)})
    np.testing.assert_array_equal(next(iter(found.values())), [2, -1, 1])


def test_a_graph_as_text_is_exported(old: Path, tmp_path: Path) -> None:
    definition = V1.GraphDef.FromString((old / "frozen.pb").read_bytes())
    tf.io.write_graph(definition, str(tmp_path), "frozen.pbtxt", as_text=True)
    model = ep.export(tmp_path / "frozen.pbtxt", progress=False)
    assert model.report
    assert [spec.name for spec in model.outputs] == ["probabilities"]
    text = (tmp_path / "frozen.pbtxt").read_text()
    (tmp_path / "cut.pbtxt").write_text(text[: len(text) // 2])
    with pytest.raises(ep.ModelFormatError, match="it is no GraphDef"):
        ep.export(tmp_path / "cut.pbtxt", progress=False)


def test_an_empty_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.pb").touch()
    with pytest.raises(ep.ModelFormatError, match="the graph is empty"):
        ep.export(tmp_path / "graph.pb", progress=False)


def _several(folder: Path, *tags: str) -> Path:
    """A SavedModel with a graph for each of these tags, each of which multiplies by its place."""
    with tf.Graph().as_default(), V1.Session() as session:
        x = V1.placeholder(tf.float32, [None, 3], name="x")
        builder = V1.saved_model.Builder(str(folder))
        for place, tag in enumerate(tags):
            signature = V1.saved_model.predict_signature_def({"x": x}, {"y": x * (place + 2.0)})
            add = builder.add_meta_graph if place else partial(builder.add_meta_graph_and_variables, session)
            add([tag], signature_def_map={"serving_default": signature})
        builder.save()
    return folder


@pytest.mark.parametrize(("tags", "factor"), [(("train", "serve"), 3), (("hub",), 2)])
def test_of_several_graphs_that_for_serving_is_taken(tags: tuple[str, ...], factor: int, tmp_path: Path) -> None:
    model = ep.export(_several(tmp_path / "net", *tags), progress=False)
    (found,) = ep.Session(model).run({"x": np.ones((2, 3), np.float32)}).values()
    assert (found == factor).all()


def test_graphs_of_which_none_is_for_serving_are_refused_with_their_tags(tmp_path: Path) -> None:
    with pytest.raises(ep.InputError, match="their tags: train, eval"):
        ep.export(_several(tmp_path / "net", "train", "eval"), progress=False)


def test_a_saved_model_without_a_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(ep.ModelFormatError, match="it holds no graph"):
        ep.export(tmp_path, progress=False)


def test_inputs_and_outputs_of_what_a_file_holds_have_one_order(tmp_path: Path) -> None:
    module = tf.Module()
    names = "beta", "alpha", "gamma", "delta"
    module.f = tf.function(
        lambda beta, alpha, gamma, delta: {"w": beta, "v": alpha * gamma, "z": delta + 1, "u": delta - 1},
        input_signature=[tf.TensorSpec([None], name=name) for name in names],
    )
    module.nested = tf.function(
        lambda x: {"w": [x, {"q": -x, "p": x + 1}], "v": x * 2, "z": (x + 3,), "u": x - 1},
        input_signature=[tf.TensorSpec([None], name="x")],
    )
    tf.saved_model.save(module, str(tmp_path / "net"), signatures={"serving_default": module.f})
    loaded = tf.saved_model.load(str(tmp_path / "net"))
    for form in (tmp_path / "net", loaded, loaded.signatures["serving_default"]):
        model = ep.export(form, progress=False)
        assert [spec.name for spec in model.inputs] == sorted(names)
        assert [spec.name for spec in model.outputs] == ["u", "v", "w", "z"]
    for form in (loaded.nested, loaded.nested.concrete_functions[0]):
        model = ep.export(form, tf.ones([2]), progress=False)
        assert [spec.name for spec in model.outputs] == ["u", "v", "w.0", "w.1.p", "w.1.q", "z.0"]


def test_results_of_a_function_keep_the_order_that_it_gives_them() -> None:
    model = ep.export(tf.function(lambda x: {"b": x, "a": x + 1}), tf.ones([2]), progress=False)
    assert [spec.name for spec in model.outputs] == ["b", "a"]


class Scaled(tf.Module):
    """A module with a weight, and a function within the one that is saved."""

    def __init__(self) -> None:
        self.weight = tf.Variable([2.0, 3.0], name="weight")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], name="x")])
    def __call__(self, x):
        return {"y": self.scaled(x) + 1}

    @tf.function
    def scaled(self, x):
        return x * self.weight


def no_objects(*_: object) -> None:
    raise AttributeError("'_UserObject' object has no attribute 'add_slot'")


def test_a_saved_model_whose_objects_cannot_be_made_is_exported_by_its_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many of Keras 2: TensorFlow asks Keras 3 for their optimizers, and fails."""
    module = Scaled()
    tf.saved_model.save(module, str(tmp_path / "net"), signatures={"serving_default": module.__call__})
    monkeypatch.setattr(tf.saved_model, "load", no_objects)
    model = ep.export(tmp_path / "net", progress=False)
    x = np.array([[1.0, -2.0], [0.5, 4.0], [0.0, 1.0]], np.float32)
    np.testing.assert_allclose(ep.Session(model).run({"x": x})["y"], x * [2, 3] + 1, rtol=1e-6)


def test_a_saved_model_that_cannot_be_read_in_any_way_is_refused_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tf.saved_model.save(Scaled(), str(tmp_path / "net"))
    (tmp_path / "net" / "variables" / "variables.index").unlink()
    monkeypatch.setattr(tf.saved_model, "load", no_objects)
    with pytest.raises(ep.ModelFormatError, match="add_slot"):
        ep.export(tmp_path / "net", progress=False)
