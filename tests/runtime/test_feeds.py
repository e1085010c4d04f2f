from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnx_ir
import pytest

import entrepot as ep

TEXT = """<ir_version: 10, opset_import: ["": 28]>
g (float[N, 2] x, float[N, 2] y, int64[1] k) => (float[N, 2] z, int64[1] k2) { z = Add(x, y)  k2 = Add(k, k) }"""


@pytest.fixture(scope="module")
def session() -> ep.Session:
    return ep.Session(ep.load(onnx.parser.parse_model(TEXT)))


def feeds(**changes: object) -> dict[str, object]:
    good = {"x": np.ones((3, 2), np.float32), "y": np.ones((3, 2), np.float32), "k": np.array([1])}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def test_missing_and_extra_feeds_are_told_together(session: ep.Session) -> None:
    with pytest.raises(ep.InputError, match=r"missing \['y'\], not inputs of the model: \['q'\].*\['x', 'y', 'k'\]"):
        session.run(feeds(y=None, q=np.ones(1)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((3, 2))}, r"value 'x': expected float32, got float64.*astype\('float32'\)"),
        ({"x": np.ones((3, 2), np.int64)}, "expected float32, got int64"),
        ({"k": np.array([1], np.int32)}, "expected int64, got int32"),
        ({"x": np.ones((3, 2, 1), np.float32)}, r"expected rank 2 \(N, 2\), got shape \(3, 2, 1\)"),
        ({"x": np.ones((3, 5), np.float32)}, r"value 'x': axis 1 is 5, expected 2"),
        ({"y": np.ones((4, 2), np.float32)}, r"value 'y': axis 0 is 4, but axis 0 of 'x' makes 'N' 3"),
        ({"k": [1.5]}, "do not fit int64"),
        ({"k": [True]}, "do not fit int64"),
        ({"k": ["a"]}, "do not fit int64"),
        ({"x": [[1.0, 2.0], [3.0]]}, "ragged"),
        ({"x": [[1, 2**24 + 1]] * 3}, "not exact as float32"),
        ({"k": object()}, "cannot be read as an array"),
        ({"x": np.ma.masked_less(np.ones((3, 2), np.float32), 2)}, r"masked elements has no values.*array\.filled"),
    ],
)
def test_a_wrong_feed_is_refused_by_name(session: ep.Session, change: dict[str, object], message: str) -> None:
    with pytest.raises(ep.InputError, match=message):
        session.run(feeds(**change))


def test_python_numbers_take_the_declared_type(session: ep.Session) -> None:
    out = session.run({"x": [[1, 2]], "y": [[0.5, 0.25]], "k": [7]})
    assert out["z"].dtype == np.float32
    np.testing.assert_array_equal(out["z"], [[1.5, 2.25]])
    assert out["k2"].item() == 14


def test_torch_tensors_are_fed_as_they_are(session: ep.Session) -> None:
    import torch

    out = session.run(feeds(x=torch.ones(3, 2, requires_grad=True)))
    np.testing.assert_array_equal(out["z"], np.full((3, 2), 2))


def test_the_order_of_bytes_is_no_part_of_a_type(session: ep.Session) -> None:
    out = session.run(feeds(x=np.full((3, 2), 2, ">f4"), k=np.array([7], ">i8")))
    np.testing.assert_array_equal(out["z"], np.full((3, 2), 3))
    assert out["z"].dtype.isnative
    assert out["k2"].item() == 14


@pytest.mark.parametrize("kind", ["sparse", "meta"])
def test_tensors_that_hold_no_numbers_here_are_refused_after_others_of_their_shape(kind: str) -> None:
    import torch

    tensor = torch.ones(3, 2)
    session = ep.Session(ep.load(onnx.parser.parse_model(TEXT)), providers=["torch"])
    session.run(feeds(x=tensor))
    with pytest.raises(ep.InputError, match="value 'x': a Tensor cannot be read as an array"):
        session.run(feeds(x=tensor.to_sparse() if kind == "sparse" else tensor.to("meta")))


def test_an_object_with_dlpack_alone_is_fed(session: ep.Session) -> None:
    class Exporter:
        def __init__(self, array: np.ndarray) -> None:
            self._array = array

        def __dlpack__(self, **options: object) -> object:
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self._array.__dlpack_device__()

    out = session.run(feeds(x=Exporter(np.ones((3, 2), np.float32))))
    np.testing.assert_array_equal(out["z"], np.full((3, 2), 2))


def test_bfloat16_strings_and_sequences_are_fed() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (bfloat16[2] x, string[2] s, seq(float[N]) q) => (bfloat16[2] y, string[2] t, float[M] c)
    { y = Add(x, x)  t = StringConcat(s, s)  c = ConcatFromSequence<axis = 0>(q) }"""
    session = ep.Session(ep.load(onnx.parser.parse_model(text)))
    parts = [np.ones(2, np.float32), np.zeros(1, np.float32)]
    out = session.run({"x": np.array([1, 2], ml_dtypes.bfloat16), "s": np.array(["a", "b"]), "q": parts})
    assert out["y"].dtype == ml_dtypes.bfloat16
    assert list(out["t"]) == ["aa", "bb"]
    np.testing.assert_array_equal(out["c"], [1, 1, 0])
    with pytest.raises(ep.InputError, match="a sequence is fed as a list, not as ndarray"):
        session.run({"x": np.array([1, 2], ml_dtypes.bfloat16), "s": np.array(["a", "b"]), "q": parts[0]})


def test_the_feeds_are_never_written_to() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[N] x) => (float[N] y) { a = Relu(x)  b = Add(a, x)  c = Mul(b, b)  y = Sub(c, x) }"""
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    before = x.copy()
    ep.Session(ep.load(onnx.parser.parse_model(text))).run({"x": x})
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("provider", ["cpu", "reference", "torch"])
def test_a_0d_result_is_an_array_of_the_declared_type(provider: str) -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (string s, float x) => (string t, float y) { t = StringConcat(s, s)  y = Exp(x) }"""
    session = ep.Session(ep.load(onnx.parser.parse_model(text)), providers=[provider])
    out = session.run({"s": "ab", "x": 0.0})
    assert {name: (type(value), value.dtype, value.shape) for name, value in out.items()} == {
        "t": (np.ndarray, np.dtype(object), ()),
        "y": (np.ndarray, np.dtype(np.float32), ()),
    }
    assert out["t"].item() == "abab"


NARROW = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("kind", ["plain", "transposed", "strided", "of rank 0", "empty", "with a gradient"])
def test_torch_tensors_of_types_that_numpy_lacks_are_fed(name: str, kind: str) -> None:
    import torch

    tensor = torch.tensor([[0.5, 1.0, 2.0, 4.0], [8.0, 16.0, 0.25, 1.0]]).to(getattr(torch, name))
    forms = {
        "plain": lambda: tensor,
        "transposed": lambda: tensor.T,
        "strided": lambda: tensor[:, ::2],
        "of rank 0": lambda: tensor[1, 0],
        "empty": lambda: tensor[:0],
        "with a gradient": lambda: tensor.requires_grad_() if name == "bfloat16" else tensor,
    }
    given = forms[kind]()
    text = """<ir_version: 13, opset_import: ["": 25]> g (float x) => (float y) { y = Cast<to = 1>(x) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.input[0].type.tensor_type.elem_type = onnx_ir.DataType.from_numpy(np.dtype(name)).value
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.ClearField("shape")
    out = ep.Session(ep.load(proto)).run(given)["y"]
    np.testing.assert_array_equal(out, given.detach().to(torch.float32).numpy())


def test_a_tensor_that_is_not_on_the_host_is_refused_with_what_helps(session: ep.Session) -> None:
    import torch

    with pytest.raises(
        ep.InputError, match=r"value 'x': a Tensor cannot be read as an array.*hint: give it as tensor\.cpu\(\)"
    ):
        session.run(feeds(x=torch.ones(3, 2, device="meta")))


def test_what_torch_puts_off_is_done_before_feeding() -> None:
    import torch

    text = """<ir_version: 10, opset_import: ["": 28]> g (float[2] x) => (float[2] y) { y = Identity(x) }"""
    late = torch.tensor([1 + 2j, 3 + 4j]).conj().imag
    assert late.is_neg()
    np.testing.assert_array_equal(ep.Session(ep.load(onnx.parser.parse_model(text))).run(late)["y"], [-2, -4])


RELATED = """<ir_version: 10, opset_import: ["": 20]>
g (float["past + sequence"] mask, float[sequence] x, float[past] cache, float["2*sequence"] pairs) => (float[N] z) {
  z = Concat <axis = 0> (mask, x, cache, pairs) }"""
STATED = '["mask.0 == past + sequence", "pairs.0 == 2*sequence"]'


def related(conditions: str) -> ep.Session:
    proto = onnx.parser.parse_model(RELATED)
    onnx.helper.set_model_props(proto, {"entrepot.conditions": conditions})
    return ep.Session(proto)


STEPS = """<ir_version: 10, opset_import: ["": 20]>
g (float[batch, width] x, float[width] y) => (float[M, N] z) { z = Add(x, y) }"""


@pytest.mark.parametrize(
    ("width", "fits"), [(0, False), (1, True), (4, False), (5, True), (7, False), (8, False), (9, True)]
)
def test_sizes_between_steps_are_refused_with_the_nearest_that_fit(width: int, fits: bool) -> None:
    proto = onnx.parser.parse_model(STEPS)
    onnx.helper.set_model_props(proto, {"entrepot.conditions": '["width % 4 == 1", "batch % 0 == 0", "width >= 1"]'})
    session = ep.Session(proto)
    feeds = [np.ones((2, width), np.float32), np.ones(width, np.float32)]
    if fits:
        assert session.run(feeds)["z"].shape == (2, width)
    else:
        with pytest.raises(ep.InputError, match=rf"axis 1 of 'x' is {width}, but the model needs width % 4 == 1"):
            session.run(feeds)


@pytest.mark.parametrize(("width", "bound"), [(2, ">= 3"), (3, ""), (9, ""), (10, "<= 9")])
def test_sizes_outside_of_the_stated_bounds_are_refused(width: int, bound: str) -> None:
    proto = onnx.parser.parse_model(STEPS)
    conditions = '["width >= 3", "width <= 9", "height >= 4", "batch.0 == width.1"]'
    onnx.helper.set_model_props(proto, {"entrepot.conditions": conditions})
    feeds = [np.ones((2, width), np.float32), np.ones(width, np.float32)]
    if not bound:
        assert ep.Session(proto).run(feeds)["z"].shape == (2, width)
        return
    with pytest.raises(ep.InputError, match=rf"axis 1 of 'x' is {width}, but the model was made for width {bound}"):
        ep.Session(proto).run(feeds)


def sized(mask: int, x: int, cache: int, pairs: int) -> list[np.ndarray]:
    return [np.ones(size, np.float32) for size in (mask, x, cache, pairs)]


def test_sizes_that_follow_from_others_are_checked() -> None:
    session = related(STATED)
    assert session.run(sized(8, 3, 5, 6))["z"].shape == (22,)
    with pytest.raises(
        ep.InputError, match=r"axis 0 of 'mask' is 9, but 'past \+ sequence' is 8, with past = 5 .axis 0"
    ):
        session.run(sized(9, 3, 5, 6))
    with pytest.raises(ep.InputError, match=r"axis 0 of 'pairs' is 5, but '2\*sequence' is 6"):
        session.run(sized(8, 3, 5, 5))


@pytest.mark.parametrize("conditions", ["[]", "not json", '["mask.0 == something else"]'])
def test_a_name_like_a_formula_that_the_file_does_not_state_as_a_condition_is_only_a_name(conditions: str) -> None:
    """Files of others take an empty cache of another length, say."""
    assert related(conditions).run(sized(9, 3, 5, 5))["z"].shape == (22,)
