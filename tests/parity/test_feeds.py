from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnx_ir
import pytest

import entrepot as ep
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.parity import feeds
from entrepot.parity.proposals import that_runs


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def model():
    text = """<ir_version: 10, opset_import: ["": 20]>
    net (float[batch, 3, height] x, int64[batch] ids, bool[2] flag, float16[?] h) => (float[batch, 3, height] y)
    { y = Identity(x) }"""
    return Model(onnx_ir.from_onnx_text(text))


# --- resize


@pytest.mark.parametrize("size", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16, object])
def test_resize_changes_one_axis_and_nothing_else(size, axis, dtype, rng):
    array = np.arange(24).reshape(2, 3, 4)[::-1].astype(dtype)
    resized = feeds.resize(array, axis, size, rng)
    shape = list(array.shape)
    shape[axis] = size
    assert resized.shape == tuple(shape)
    assert resized.dtype == array.dtype


def test_resize_draws_only_values_the_array_has(rng):
    ids = np.array([[7, 3, 900]])
    grown = feeds.resize(ids, 0, 6, rng)
    assert set(grown.ravel()) == {7, 3, 900}
    np.testing.assert_array_equal(grown[:1], ids)


def test_resize_does_not_repeat_rows_where_they_can_differ(rng):
    grown = feeds.resize(rng.standard_normal((1, 50)), 0, 5, rng)
    assert len(np.unique(grown, axis=0)) == 5


def test_resize_keeps_the_first_slices_when_it_shrinks(rng):
    np.testing.assert_array_equal(feeds.resize(np.array([[1, 1, 0]]), 1, 2, rng), [[1, 1]])


def test_resize_keeps_offsets_ascending(rng):
    np.testing.assert_array_equal(feeds.resize(np.array([0, 2, 5]), 0, 5, rng), [0, 2, 5, 5, 5])


def test_resize_grows_an_empty_axis_with_zeros(rng):
    np.testing.assert_array_equal(feeds.resize(np.zeros((0, 2)), 0, 2, rng), np.zeros((2, 2)))


# --- vary


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_vary_stays_in_the_range_of_the_array(dtype, rng):
    array = rng.uniform(0, 1, (20, 20)).astype(dtype)
    varied = feeds.vary(array, rng)
    assert varied.dtype == array.dtype
    assert not np.array_equal(varied, array)
    assert array.min() <= varied.min()
    assert varied.max() <= array.max()


def test_vary_keeps_about_the_spread_of_the_array(rng):
    array = rng.standard_normal(10_000)
    assert 0.7 < feeds.vary(array, rng).std() < 1.1


@pytest.mark.parametrize("array", [np.zeros((2, 3), np.float32), np.ones((), np.float64), np.full(4, 1e4, np.float32)])
def test_vary_moves_a_constant_too(array, rng):
    varied = feeds.vary(array, rng)
    assert varied.shape == array.shape
    assert (varied != array).all()


def test_vary_shuffles_integers_and_booleans(rng):
    ids = rng.integers(0, 1000, (4, 25))
    varied = feeds.vary(ids, rng)
    assert not np.array_equal(varied, ids)
    assert sorted(varied.ravel()) == sorted(ids.ravel())
    mask = rng.integers(0, 2, 50).astype(bool)
    assert feeds.vary(mask, rng).sum() == mask.sum()


def test_vary_keeps_positions_and_offsets(rng):
    np.testing.assert_array_equal(feeds.vary(np.array([0, 3, 3, 9]), rng), [0, 3, 3, 9])


def test_vary_with_infinities_only_picks(rng):
    array = np.array([1.0, -np.inf, 2.0, np.nan])
    varied = feeds.vary(array, rng)
    assert all(np.isnan(value) or value in array for value in varied)


def test_vary_leaves_an_empty_array_alone(rng):
    assert feeds.vary(np.zeros((0, 3)), rng).shape == (0, 3)


def test_vary_mixes_complex_numbers(rng):
    array = rng.standard_normal(10) + 1j * rng.standard_normal(10)
    assert not np.array_equal(feeds.vary(array, rng), array)


# --- from a model


def test_symbols_are_bound_to_the_sizes_of_the_feeds(model):
    bound = feeds.bind(model, {"x": np.zeros((4, 3, 8)), "ids": np.zeros(4), "h": np.zeros(6)})
    assert bound == {"batch": 4, "height": 8, "h.0": 6}


def test_a_symbol_with_two_sizes_is_refused(model):
    with pytest.raises(InputError, match="'batch' is 4"):
        feeds.bind(model, {"x": np.zeros((4, 3, 8)), "ids": np.zeros(5)})


def test_a_feed_of_another_rank_is_refused(model):
    with pytest.raises(InputError, match="rank 3"):
        feeds.bind(model, {"x": np.zeros((4, 3))})


def test_feeds_are_made_up_from_the_specs(model):
    made = feeds.generate(model, dims={"batch": 5, "h.0": 2})
    assert {name: (array.shape, array.dtype.name) for name, array in made.items()} == {
        "x": ((5, 3, 2), "float32"),
        "ids": ((5,), "int64"),
        "flag": ((2,), "bool"),
        "h": ((2,), "float16"),
    }
    np.testing.assert_array_equal(made["x"], feeds.generate(model, dims={"batch": 5, "h.0": 2})["x"])


def test_given_inputs_say_the_sizes_of_the_others(model):
    made = feeds.generate(model, given={"ids": np.zeros(9, np.int64)})
    assert made["x"].shape[0] == 9


def test_an_unknown_symbol_is_refused_with_the_known_ones(model):
    with pytest.raises(InputError, match="batch, height"):
        feeds.generate(model, dims={"bach": 5})


def test_an_input_of_unknown_rank_must_be_given():
    spec = onnx_ir.Value(name="x", type=onnx_ir.TensorType(onnx_ir.DataType.FLOAT))
    model = Model(onnx_ir.Model(onnx_ir.Graph([spec], [], nodes=[]), ir_version=10))
    with pytest.raises(InputError, match="feed it yourself"):
        feeds.generate(model)
    assert feeds.generate(model, given={"x": 1})["x"] == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float32", np.dtype(np.float32)),
        ("float64", np.dtype(np.float64)),
        ("bfloat16", np.dtype(ml_dtypes.bfloat16)),
        ("float8e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn)),
        ("int4", np.dtype(ml_dtypes.int4)),
        ("string", np.dtype(object)),
    ],
)
def test_onnx_element_types_have_numpy_dtypes(name, expected):
    assert feeds.numpy_dtype(name) == expected


def test_an_unknown_element_type_is_refused():
    with pytest.raises(InputError, match="float31"):
        feeds.numpy_dtype("float31")


# --- formulas


def test_made_up_sizes_keep_to_the_steps():
    text = '<ir_version: 10, opset_import: ["": 20]> net (float[h, w, c] x, float["2*h"] y) => () {}'
    model = Model(onnx_ir.from_onnx_text(text))
    model.ir.metadata_props["entrepot.conditions"] = '["h % 4 == 0", "w % 8 == 3", "c >= 1"]'
    assert {name: value.shape for name, value in feeds.generate(model).items()} == {"x": (4, 3, 3), "y": (8,)}


def test_made_up_sizes_keep_to_the_formulas():
    inputs = 'float["a + b"] m, float[a] x, float[b] y, float["c?"] z'
    text = f'<ir_version: 10, opset_import: ["": 20]> net ({inputs}) => () {{}}'
    made = feeds.generate(Model(onnx_ir.from_onnx_text(text)), dims={"b": 6})
    assert {name: value.shape for name, value in made.items()} == {"m": (7,), "x": (1,), "y": (6,), "z": (3,)}


def test_sequences_and_optionals_are_made_up(rng):
    text = """<ir_version: 9, opset_import: ["": 20]>
        g (seq(float[N, 3]) x, optional(float[2]) o, float[N] z) => (seq(float[N, 3]) y) { y = Identity(x) }"""
    made = feeds.generate(ep.load(onnx.parser.parse_model(text)), rng=rng)
    assert [each.shape for each in made["x"]] == [(1, 3), (1, 3)]
    assert (made["o"].shape, made["z"].shape) == ((2,), (1,))


@pytest.mark.parametrize(
    ("value", "nothing"),
    [
        (np.zeros((2, 0)), True),
        ([np.ones(2), np.ones(3)], False),
        ([np.ones(2), np.ones(0)], True),
        ([], False),
        (None, False),
        (1.0, False),
    ],
)
def test_what_holds_nothing(value, nothing):
    assert feeds.holds_nothing(value) == nothing


@pytest.mark.parametrize("given", [None, {"x": [np.ones(2, np.float32), np.ones(3, np.float32)]}])
def test_models_of_sequences_are_optimised_and_imported(given):
    text = """<ir_version: 9, opset_import: ["": 20]> g (seq(float[N]) x) => (seq(float[N]) y) {
        y = SequenceMap(x) <body = b (float[N] a) => (float[N] c) { c = Neg(a) }> }"""
    model = ep.load(onnx.parser.parse_model(text))
    assert ep.optimize(model, feeds=given).report.ok
    assert ep.to_torch(model, sample=given).report.ok


@pytest.mark.parametrize("size", [1, 2, 3, 16])
def test_a_size_is_found_that_a_model_runs_at(size):
    text = f"""<ir_version: 9, opset_import: ["": 20]> g (float[N] x) => (float[M, K] y)
        <int64[2] s = {{{size}, 1}}> {{ y = Reshape(x, s) }}"""
    model = ep.load(onnx.parser.parse_model(text))
    assert that_runs(model)["x"].shape == (size,)


@pytest.mark.parametrize("length", [400, 9000])
def test_a_model_of_sound_runs_on_as_much_as_it_needs(length):
    text = f"""<ir_version: 9, opset_import: ["": 20]> g (float[N, T] x, float[K] state) => (float[N, M] y)
        <int64[1] from = {{{length}}}, int64[1] to = {{{length + 1}}}, int64[1] axis = {{1}}, int64[2] s = {{1, 1}}> {{
        part = Slice(x, from, to, axis)
        one = Reshape(part, s)
        kept = Reshape(state, s)
        y = Add(one, kept)
    }}"""
    feeds = that_runs(ep.load(onnx.parser.parse_model(text)))
    assert feeds["x"].shape[0] == 1
    assert feeds["x"].shape[1] > length
    assert feeds["state"].shape == (1,)


def test_what_another_runtime_refuses_is_not_proposed_for_both():
    text = """<ir_version: 9, opset_import: ["": 20]> g (float[N, T] x) => (float[N, M] y) <int64[4] p = {0, 9, 0, 9}> {
        y = Pad<mode="reflect">(x, p)
    }"""
    model = ep.load(onnx.parser.parse_model(text))
    assert that_runs(model)["x"].shape[1] < 10
    assert that_runs(model, ("cpu", "onnxruntime"))["x"].shape[1] >= 10
    assert ep.to_torch(model).report.ok


def test_vary_makes_no_two_values_equal(rng):
    array = rng.standard_normal(100).astype(np.float32)
    mixed = np.concatenate([array, *(feeds.vary(array, rng) for _ in range(10))])
    assert len(np.unique(mixed)) == mixed.size
