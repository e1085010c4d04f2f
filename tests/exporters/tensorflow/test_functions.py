"""Functions, concrete functions and modules: recognised, called as their users call them, traced, flattened by name."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep
from entrepot.exporters.tensorflow.table import rules


def _x(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


class Scaled(tf.Module):
    def __init__(self) -> None:
        self.factor = tf.Variable(3.0, name="factor")
        self.shift = tf.Variable([1.0, 2.0], name="shift")

    @tf.function(jit_compile=True)
    def inner(self, x: tf.Tensor) -> tf.Tensor:
        return tf.identity(x) if self.shift is None else self.shift

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"kept": tf.identity(x), "shift": self.inner(x)}


def test_a_module_is_exported_with_its_variables_under_their_names() -> None:
    model = ep.export(Scaled(), _x(3, 2))
    assert model.report
    assert [spec.name for spec in model.outputs] == ["kept", "shift"]
    assert "shift" in model.ir.graph.initializers


def test_a_function_that_says_what_it_takes_needs_no_sample() -> None:
    taken = [tf.TensorSpec([None, 4]), {"by": tf.TensorSpec([4])}]
    scaled = tf.function(lambda x, more: x * more["by"], input_signature=taken)
    model = ep.export(scaled)
    assert model.report
    assert [str(spec) for spec in model.inputs] == ["x: float32[batch, 4]", "more.by: float32[4]"]


def test_an_image_that_a_window_does_not_fit_in_is_no_end_of_the_process() -> None:
    model = ep.export(lambda x: tf.nn.max_pool2d(x, 3, 1, "VALID"), tf.constant(_x(2, 7, 7, 4)))
    assert model.report
    assert all(isinstance(dim, str) for dim in model.inputs[0].shape)


def test_a_loop_of_python_over_a_size_becomes_one_of_the_graph() -> None:
    weight = tf.constant(_x(4, 4))

    def unrolled(x: tf.Tensor) -> tf.Tensor:
        state, found = tf.zeros([tf.shape(x)[0], 4]), []
        for at in range(x.shape[1]):
            state = tf.tanh(state @ weight + x[:, at])
            found.append(state)
        return tf.stack(found, 1) / x.shape[1] ** 0.5

    model = ep.export(tf.function(unrolled), tf.constant(_x(2, 6, 4)))
    assert [isinstance(size, str) for size in model.inputs[0].shape] == [True, True, False]
    for size in (1, 2, 9):
        (found,) = ep.Session(model).run({"x": _x(3, size, 4)}).values()
        np.testing.assert_allclose(found, unrolled(tf.constant(_x(3, size, 4))), atol=1e-5)


def test_training_a_module_afterwards_does_not_change_the_model() -> None:
    module = Scaled()
    model = ep.export(module, _x(3, 2))
    module.shift.assign_add([10.0, 10.0])
    module.shift.scatter_update(tf.IndexedSlices(tf.constant([7.0]), tf.constant([0])))
    np.testing.assert_array_equal(model.ir.graph.initializers["shift"].const_value.numpy(), [1.0, 2.0])


def test_an_operator_without_a_counterpart_is_named_with_its_layer() -> None:
    def network(x: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("encoder"):
            return tf.raw_ops.Fingerprint(data=tf.io.encode_base64([tf.io.serialize_tensor(x)]), method="farmhash64")

    assert "EncodeBase64" not in rules()
    with pytest.raises(
        ep.UnsupportedOpError, match=r"encoder/.*TensorFlow's \w+ has no counterpart in layer 'encoder'"
    ):
        ep.export(network, tf.ones(3))


def test_a_function_that_mentions_tensorflow_is_recognised_without_a_tensor() -> None:
    assert ep.export(lambda x: {"y": tf.identity(x)}, _x(2, 3)).report


def _doubled(x):
    return tf.add(x, x)


def test_a_function_that_calls_one_of_tensorflow_is_recognised_without_a_tensor() -> None:
    assert ep.export(lambda x: _doubled(x), _x(2, 3)).report  # noqa: PLW0108


def test_constants_are_computed_by_tensorflow() -> None:
    model = ep.export(lambda x: {"x": tf.identity(x), "c": tf.cumsum(tf.range(5) * 2, exclusive=True)}, _x(2))
    assert model.report
    assert {node.op_type for node in model.ir.graph} <= {"Identity", "Constant"}


class Counting(tf.Module):
    """Counts its calls; results depend on that where ``shown``."""

    def __init__(self, *, shown: bool) -> None:
        self.calls, self.shown = tf.Variable(0.0, name="calls"), shown

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        self.calls.assign_add(1.0)
        return x + tf.minimum(self.calls, 1.0) if self.shown else tf.identity(x)


def test_state_that_no_result_depends_on_is_left_out_and_given_back() -> None:
    module = Counting(shown=False)
    assert ep.export(module, _x(2)).report
    assert float(module.calls.numpy()) == 0.0


def test_a_result_that_depends_on_what_calls_leave_behind_is_refused() -> None:
    module = Counting(shown=True)
    module.calls.assign(5.0)  # from where on nobody sees it in the results
    with pytest.raises(ep.ConversionError, match="depends on variable 'calls', which each call changes"):
        ep.export(module, _x(2))
    assert float(module.calls.numpy()) == 5.0


def test_a_variable_that_is_written_before_it_is_read_is_no_state() -> None:
    class Scratch(tf.Module):
        def __init__(self) -> None:
            self.space = tf.Variable([0.0, 0.0])

        @tf.function
        def __call__(self, x: tf.Tensor) -> tf.Tensor:
            self.space.assign(tf.reduce_sum(x, 0))
            self.space.assign_add([1.0, 2.0])
            return x * self.space

    assert ep.export(Scratch(), _x(3, 2)).report


def test_a_constant_is_computed_by_an_operator_whose_python_names_are_others() -> None:
    def network(x: tf.Tensor) -> dict[str, tf.Tensor]:
        first, second = tf.split(tf.constant([[1.0, 2.0, 3.0, 4.0]]), [1, 3], axis=1)
        return {"first": x + first, "second": tf.reduce_sum(second, axis=1), "flat": tf.squeeze(second, [0])}

    model = ep.export(network, _x(2, 1))
    assert model.report


def test_a_convolution_leaves_every_other_axis_open() -> None:
    weight = tf.Variable(_x(3, 3, 3, 4))
    model = ep.export(lambda x: tf.nn.conv2d(x, weight, 2, "SAME"), _x(2, 8, 9, 3))
    assert [isinstance(size, str) for size in model.inputs[0].shape] == [True, True, True, False]


@pytest.mark.parametrize("channels", [2, 4, 8])
def test_a_convolution_of_open_channels_has_as_many_groups_as_it_is_run_with(channels: int) -> None:
    weight = tf.Variable(_x(3, 3, 2, 8))
    model = ep.export(lambda x, n: tf.nn.conv2d(x[..., :n], weight, 1, "SAME"), (_x(2, 6, 6, 8), np.int32(channels)))
    assert model.report
    image = _x(3, 5, 5, 8)
    for count in (2, 4, 8):
        found = ep.Session(model).run(
            dict(zip((each.name for each in model.inputs), (image, np.int32(count)), strict=True))
        )
        expected = tf.nn.conv2d(image[..., :count], weight, 1, "SAME")
        np.testing.assert_allclose(next(iter(found.values())), expected, rtol=1e-4, atol=1e-5)


def test_an_axis_of_size_one_that_has_to_be_fixed_keeps_its_size() -> None:
    weight = tf.Variable(_x(3, 3, 1, 12))
    model = ep.export(lambda x: tf.nn.conv2d(x, weight, 1, "SAME"), _x(2, 8, 9, 1))
    assert [size for size in model.inputs[0].shape if isinstance(size, int)] == [1]


def test_an_axis_whose_size_an_operator_has_to_know_is_fixed() -> None:
    def widened(x: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        return tf.nn.dilation2d(x, k, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])

    model = ep.export(widened, (_x(2, 6, 5, 3), _x(3, 2, 3)))
    assert [isinstance(size, str) for size in model.inputs[0].shape] == [True, True, True, False]
    assert model.inputs[1].shape == (3, 2, 3)


def test_a_pseudo_inverse_is_of_matrices_of_any_shape() -> None:
    model = ep.export(tf.linalg.pinv, _x(2, 4, 3))
    assert [isinstance(size, str) for size in model.inputs[0].shape] == [True, True, True]


@pytest.mark.parametrize("full", [False, True])
def test_singular_values_of_matrices_of_any_shape(full: bool) -> None:
    def rebuilt(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        sizes, left, right = tf.linalg.svd(x, full_matrices=full)
        count = tf.shape(sizes)[-1]
        return sizes, tf.matmul(left[:, :count] * sizes, right[:, :count], adjoint_b=True)

    model = ep.export(tf.function(rebuilt), np.random.default_rng(0).random((5, 3), np.float32), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for shape in ((9, 4), (2, 6), (7, 7)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        sizes, found = session.run({"x": x}).values()
        np.testing.assert_allclose(sizes, np.linalg.svd(x, compute_uv=False), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found, x, atol=1e-4)


def test_the_similarity_of_images_has_filters_as_large_as_their_channels_are_many() -> None:
    model = ep.export(lambda x, y: tf.image.ssim(x, y, 1.0), (_x(2, 16, 16, 1), _x(2, 16, 16, 1) + 0.1))
    assert model.report


def test_a_result_called_like_a_variable_gets_a_name_of_its_own() -> None:
    mean = tf.Variable(_x(3), name="mean")
    model = ep.export(lambda x: {"mean": x + mean, "x": x * 2.0}, _x(2, 3))
    assert model.report
    assert "mean" in model.ir.graph.initializers
    assert model.outputs[0].name == "mean_out"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_transform_of_no_length_does_not_end_the_process(compiled: bool) -> None:
    def back_and_forth(x: tf.Tensor) -> tf.Tensor:
        return tf.signal.irfft(tf.signal.rfft(x) * 2.0)

    model = ep.export(tf.function(back_and_forth) if compiled else back_and_forth, _x(2, 8))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    assert model.report


def test_a_network_in_mixed_precision_is_as_close_as_its_halves_are() -> None:
    kernel, weight = tf.Variable(_x(3, 3, 3, 8) * 0.2), tf.Variable(_x(8, 4) * 0.3)

    @tf.function
    def network(x: tf.Tensor) -> tf.Tensor:
        half = tf.nn.relu(tf.nn.conv2d(tf.cast(x, tf.float16), tf.cast(kernel, tf.float16), 2, "SAME"))
        scores = tf.reduce_mean(half, [1, 2]) @ tf.cast(weight, tf.float16)
        return tf.nn.softmax(tf.cast(scores, tf.float32))

    model = ep.export(network, _x(2, 8, 8, 3))
    assert model.report
    image = _x(3, 10, 6, 3)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: image}).values()
    # a sum of 27 products, a mean of 15 and a sum of 8 in half precision, of numbers of about 1
    np.testing.assert_allclose(found, network(image), atol=50 * float(np.finfo(np.float16).eps))


class UnfitError(Exception):
    """As libraries for shapes have it: neither a ValueError nor a TypeError."""


@tf.function
def fours(x: tf.Tensor) -> tf.Tensor:
    if x.shape[1] != 4:
        raise UnfitError("not four")
    if x.shape[0] is None:
        raise UnfitError("no number")
    return x * 2


def test_errors_of_any_kind_are_refusals_that_name_the_line() -> None:
    model = ep.export(fours, _x(2, 4), progress=False)
    assert model.inputs[0].shape == ("batch", 4)  # a trace refuses a size that is open, and takes every number
    assert "(UnfitError: not four)" in model.metadata["entrepot.fixed_axes"]
    with pytest.raises(
        ep.InputError, match=r"UnfitError: not four, at test_functions.py:\d+ in fours: raise UnfitError"
    ):
        ep.export(fours, _x(2, 5), progress=False)


def test_a_function_that_no_trace_gets_through_is_refused_with_the_line() -> None:
    def eager_alone(x: tf.Tensor) -> tf.Tensor:
        if tf.inside_function():
            raise UnfitError("a graph")
        return x * 2

    with pytest.raises(
        ep.ConversionError, match=r"cannot be traced: UnfitError: a graph, at test_functions.py:\d+ in eager"
    ):
        ep.export(eager_alone, tf.ones([2, 4]), progress=False)


def test_axes_of_one_element_are_dropped_where_others_vary() -> None:
    model = ep.export(tf.function(lambda x: tf.squeeze(tf.reduce_sum(x, 1, keepdims=True)) + 1.0), _x(3, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1")
    x = _x(7, 5)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run({"x": x}).values()
    np.testing.assert_allclose(found, x.sum(1) + 1, rtol=1e-5)


def test_results_of_more_axes_than_arrays_have_are_refused() -> None:
    with pytest.raises(ep.InputError, match="101 dimensions"):
        ep.export(tf.function(tf.zeros), np.full(101, 1, np.int32), progress=False)


def test_integers_without_elements_do_not_end_the_process() -> None:
    """As oneDNN's kernel does in TensorFlow 2.21, where it brings them back to numbers."""

    def to_steps_and_back(x: tf.Tensor) -> tf.Tensor:
        found, low, high = tf.quantization.quantize(x, -1.0, 1.0, tf.qint8, mode="SCALED")
        return tf.quantization.dequantize(found, low, high, mode="SCALED")

    model = ep.export(tf.function(to_steps_and_back), _x(3, 4), progress=False)
    assert model.inputs[0].shape == ("batch", "x_dim1")


def test_a_batch_varies_where_tensorflow_gives_an_odd_shape_for_an_empty_one() -> None:
    """TensorFlow (2.21) returns an empty batch as it is, where windows would make the images smaller."""
    spec = tf.TensorSpec((None, None, None, 1))

    @tf.function(input_signature=[spec])
    def dilated(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.conv2d(x, tf.ones([2, 2, 1, 3]), strides=1, padding="VALID", dilations=2)

    model = ep.export(dilated, _x(1, 6, 6, 1))
    assert model.inputs[0].shape == ("batch", "x_dim1", "x_dim2", 1)
    (found,) = ep.Session(model).run([_x(4, 9, 5, 1)]).values()
    np.testing.assert_allclose(found, dilated(_x(4, 9, 5, 1)), rtol=1e-5)


def test_a_table_that_nothing_has_filled_is_refused() -> None:
    def function(x: tf.Tensor) -> tf.Tensor:
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        return tf.lookup.StaticHashTable(words, -1).lookup(x)

    with pytest.raises(ep.UnsupportedOpError, match="make it outside of the function"):
        ep.export(function, tf.constant(["a", "z"]))


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_white_space_of_any_kind_is_stripped_from_both_ends(provider: str) -> None:
    texts = np.array([" Hello ", "\t \n x  y\r\n", "", " ", "  \v\f", "ä ö ", " a \t b"], object)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def function(x: tf.Tensor) -> tf.Tensor:
        return tf.strings.strip(x)

    session = ep.Session(ep.export(function, tf.constant(["a ", "b"])), providers=[provider])
    for given in (texts, texts[:1], texts[3:5]):
        (found,) = session.run([given]).values()
        assert found.tolist() == [text.decode() for text in function(given).numpy()]


def test_results_that_are_passed_on_or_looked_up_have_a_shape() -> None:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), default_value=-1
    )

    @tf.function(input_signature=[tf.TensorSpec((None,)), tf.TensorSpec((None,), tf.string)])
    def function(x: tf.Tensor, words: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return x, tf.identity(x), table.lookup(words)

    model = ep.export(function, (_x(3), np.array(["a", "z"], object)))
    assert [spec.shape for spec in model.outputs] == [("batch",), ("batch",), (model.inputs[1].shape[0],)]


_ROWS = {
    "update": "scatter_update", "add": "scatter_add", "sub": "scatter_sub", "mul": "scatter_mul", "max": "scatter_max",
    "min": "scatter_min",
}  # fmt: skip


@pytest.mark.parametrize("method", _ROWS.values(), ids=_ROWS)
def test_rows_of_variables_are_written(method):
    variable = tf.Variable(tf.zeros([5, 3]))

    def function(x, at):
        variable.assign(tf.fill([5, 3], 0.5))
        getattr(variable, method)(tf.IndexedSlices(x, at))
        return variable * 2

    x, at = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3), np.array([1, 3])
    model = ep.export(function, (x, at), progress=False)
    found = ep.Session(model).run({"x": x[::-1].copy(), "at": np.array([4, 0])})
    np.testing.assert_allclose(*found.values(), function(x[::-1], [4, 0]), rtol=1e-6)


@pytest.mark.parametrize("name", ["update", "add", "sub", "max", "min"])
def test_elements_of_variables_are_written(name):
    variable = tf.Variable(tf.zeros([5, 3]))

    def function(x):
        variable.assign(tf.fill([5, 3], 0.5))
        getattr(variable, f"scatter_nd_{name}")([[1, 2], [3, 0]], x)
        variable[::2, 1].assign(x[0] + [0.0, 1.0, 2.0])
        return variable * 2

    x = np.float32([1, -1])
    (found,) = ep.Session(ep.export(function, x, progress=False)).run([x + 3]).values()
    np.testing.assert_allclose(found, function(x + 3), rtol=1e-6)
