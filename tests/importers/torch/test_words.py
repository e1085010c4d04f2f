"""Steps in torch's own words, layers that are recovered, and what is written where torch has none."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from tests.importers.torch.networks import HEAD, model
from tests.judges.oracle import run_onnxruntime

F32 = np.float32


def source(text: str, **weights: np.ndarray) -> str:
    return ep.to_torch(_with(text, weights), verify=False).source()


def _with(text: str, weights: dict[str, np.ndarray]) -> ep.Model:
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return ep.load(proto)


WORDS = [
    ("y = Relu(x)", "y = torch.relu(x)"),
    ("y = Reshape(x, s)", "y = x.reshape(-1, 3)"),
    ("y = Transpose<perm = [0, 2, 1]>(x)", "y = x.transpose(-2, -1)"),
    ("y = Softmax(x)", "y = torch.softmax(x, dim=-1)"),
    ("y = Gelu(x)", "y = F.gelu(x)"),
    ("q = QuantizeLinear(x, t, z)  y = Cast<to = 1>(q)", "q = quantized(x, 0.25, 3, torch.uint8)"),
    ("q = QuantizeLinear(x, t, z)  y = DequantizeLinear(q, t, z)", "y = (q.to(x.dtype) - 3) * 0.25"),
    ("q = QuantizeLinear(x, t)  y = DequantizeLinear(q, t)", "y = q.to(x.dtype) * 0.25"),
    (
        "q = QuantizeLinear<axis = 1>(x, v, w)  y = Cast<to = 1>(q)",
        "(x, self.v.reshape(-1, 1), self.w.reshape(-1, 1), ",
    ),
    ("y = ReduceMean<keepdims = 0>(x, a)", "y = x.mean(-1)"),
    ("n = NonZero(x)  y = Cast<to = 1>(n)", "n = x.nonzero().T"),
    ("f = Cast<to = 9>(x)  j = Cast<to = 7>(f)  k = ScatterElements(f, j, f)  y = Cast<to = 1>(k)", ".scatter(0, "),
    ("y = Slice(x, a, b, a)", "y = x[..., -1:9]"),
    ("p = SplitToSequence<axis = 1, keepdims = 0>(x)  y = SequenceAt(p, i)", "p = list(x.unbind(1))"),
    ("p = SplitToSequence<axis = 1>(x, i)  y = SequenceAt(p, i)", "p = list(x.split(2, dim=1))"),
    ("p = SplitToSequence<axis = 1>(x, c)  y = SequenceAt(p, i)", "p = list(x.split([1, 2], dim=1))"),
    ("p = SequenceConstruct(x, x)  y = SequenceAt(p, i)", "y = p[2]"),
    ("p = SequenceConstruct(x)  q = SequenceInsert(p, x)  y = SequenceAt(q, i)", "q = [*p, x]"),
    ("p = SequenceConstruct(x)  q = SequenceInsert(p, x, i)  y = SequenceAt(q, i)", "q = [*p[:2], x, *p[2:]]"),
    ("p = SequenceConstruct(x, x)  q = SequenceErase(p)  y = SequenceAt(q, i)", "q = p[:-1]"),
    ("p = SequenceConstruct(x, x)  q = SequenceErase(p, i)  y = SequenceAt(q, i)", "q = [*p[:2], *p[3:]]"),
    ("p = SequenceConstruct(x, x)  y = ConcatFromSequence<axis = 0>(p)", "y = torch.cat(p, dim=0)"),
    ("p = SequenceConstruct(x, x)  y = ConcatFromSequence<axis = 0, new_axis = 1>(p)", "y = torch.stack(p, dim=0)"),
    ("p = SequenceConstruct(x, x)  n = SequenceLength(p)  s2 = Range(o, n, o)  y = Cast<to = 1>(s2)", "len(p)"),
]


@pytest.mark.parametrize(("node", "line"), WORDS)
def test_steps_are_written_as_a_reader_would(node: str, line: str) -> None:
    constants = (
        "int64[2] s = {-1, 3}, int64[1] a = {-1}, int64[1] b = {9}, int64 i = {2}, int64[2] c = {1, 2}, int64 o = {1}, "
        "float t = {0.25}, uint8 z = {3}, float[3] v = {1, 2, 3}, int8[3] w = {1, 2, 3}"
    )
    assert line in source(f"g (float[2, 3, 3] x) => (float[N, M] y) <{constants}> {{ {node} }}")


def test_padded_means_in_three_dimensions_take_inputs_smaller_than_a_window() -> None:
    pool = "y = AveragePool<kernel_shape = [3, 3, 3], pads = [1, 1, 1, 1, 1, 1]>(x)"
    given = _with(f"g (float[2, 3, D, 4, 5] x) => (float[A, B, C, E, F] y) {{ {pool} }}", {})
    assert ep.to_torch(given)(torch.ones(2, 3, 1, 4, 5)).eq(1).all()
    assert "F.avg_pool3d(" in source(f"g (float[2, 3, 3, 4, 5] x) => (float[A, B, C, E, F] y) {{ {pool} }}")


LAYERS = [
    ("y = Conv<strides = [2, 2]>(x, w, b)", {"w": (4, 3, 5, 5), "b": (4,)}, "nn.Conv2d(3, 4, 5, stride=2)"),
    ("y = ConvTranspose(x, w)", {"w": (3, 4, 2, 2)}, "nn.ConvTranspose2d(3, 4, 2, bias=False)"),
    ("y = BatchNormalization(x, w, w, w, v)", {"w": (3,), "v": (3,)}, "nn.BatchNorm2d(3)"),
    ("y = InstanceNormalization(x, w, w)", {"w": (3,)}, "nn.InstanceNorm2d(3, affine=True)"),
    ("y = LayerNormalization(x, w, w)", {"w": (8,)}, "nn.LayerNorm(8)"),
    ("y = RMSNormalization(x, w)", {"w": (8,)}, "nn.RMSNorm(8, eps=1e-05)"),
    ("y = MatMul(x, w)", {"w": (8, 5)}, "nn.Linear(8, 5, bias=False)"),
    ("y = PRelu(x, w)", {"w": (3, 1, 1)}, "nn.PReLU(num_parameters=3)"),
    ("y = Dropout(x)", {}, "nn.Dropout(0.5)"),
    (
        "r = Constant<value_float = 0.25>() t = Constant<value = bool {0}>() y = Dropout(x, r, t)",
        {},
        "nn.Dropout(0.25)",
    ),
]


@pytest.mark.parametrize(("node", "shapes", "layer"), LAYERS)
def test_steps_with_constant_weights_are_layers(node: str, shapes: dict[str, tuple[int, ...]], layer: str) -> None:
    rng = np.random.default_rng(0)
    weights = {name: rng.random(shape).astype(F32) + 0.5 for name, shape in shapes.items()}
    made = _with(f"g (float[N, 3, 8, 8] x) => (float[N, A, B, C] y) {{ {node} }}", weights)
    net = ep.to_torch(made)
    assert layer in net.source()


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_recurrent_layers_have_their_gates_in_torchs_order(kind: str, direction: str) -> None:
    rng, gates, ways = np.random.default_rng(0), {"LSTM": 4, "GRU": 3}[kind], 1 + (direction == "bidirectional")
    shapes = {"w": (ways, gates * 5, 3), "r": (ways, gates * 5, 5), "b": (ways, gates * 10)}
    weights = {name: rng.standard_normal(shape).astype(F32) for name, shape in shapes.items()}
    reset = "linear_before_reset = 1, " if kind == "GRU" else ""
    node = f'y, h = {kind}<{reset}hidden_size = 5, direction = "{direction}">(x, w, r, b)'
    net = ep.to_torch(_with(f"g (float[S, N, 3] x) => (float[S, D, N, 5] y, float[D, N, 5] h) {{ {node} }}", weights))
    assert f"nn.{kind}(3, 5" in net.source()


@pytest.mark.parametrize("fill", [0.0, 0.5, None], ids=["zero", "alike", "each its own"])
def test_recurrent_layers_begin_at_states_that_the_file_has(fill: float | None) -> None:
    rng = np.random.default_rng(0)
    shapes = {"w": (1, 20, 3), "r": (1, 20, 5), "b": (1, 40), "h": (1, 1, 5), "c": (1, 1, 5)}
    weights = {name: rng.standard_normal(shape).astype(F32) for name, shape in shapes.items()}
    if fill is not None:
        weights |= {name: np.full((1, 1, 5), fill, F32) for name in "hc"}
    node = 'y = LSTM<hidden_size = 5>(x, w, r, b, "", h, c)'
    net = ep.to_torch(_with(f"g (float[S, 1, 3] x) => (float[S, 1, 1, 5] y) {{ {node} }}", weights))
    assert "nn.LSTM(3, 5)" in net.source()
    assert net.report.ok


def test_no_sizes_are_integers_too() -> None:
    proto = onnx.parser.parse_model(HEAD + "g (float x) => (int64[M] y) { y = Shape(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    net = ep.to_torch(proto, verify=False)
    assert net(torch.tensor(1.0)).dtype == torch.int64
    assert net(torch.ones(2, 3)).tolist() == [2, 3]


def test_integers_are_divided_without_ending_the_process() -> None:
    net = ep.to_torch(model("g (int64[N] x, int64[N] d) => (int64[N] y, int64[N] z) { y = Div(x, d) z = Mod(x, d) }"))
    least = torch.iinfo(torch.int64).min
    quotient, remainder = net(torch.tensor([least, -7]), torch.tensor([-1, 2]))
    assert quotient.tolist() == [least, -3]
    assert remainder.tolist() == [0, 1]


LOOPS = """g (float[N] x, int64 n, bool c) => (float[N] y, float[K, N] s, float[N] z, float[N] w, float[K, N] u) {
    y, s = Loop(n, , x) <body = b (int64 i, bool go, float[N] a) => (bool on, float[N] a2, float[N] p) {
        on = Constant<value = bool {1}>()  a2 = Add(a, x)  p = Neg(a2)
    }>
    z = If(c) <then_branch = t () => (float[N] q) { q = Exp(x) }, else_branch = e () => (float[N] r) { r = Neg(x) }>
    w, u = Scan(x, s) <num_scan_inputs = 1, body = d (float[N] a, float[N] p) => (float[N] a2, float[N] o) {
        a2 = Add(a, p)  o = Identity(a2)
    }>
}"""


@pytest.mark.parametrize(("turns", "condition"), [(3, False), (0, True)])
def test_control_flow_is_pythons_own(turns: int, condition: bool) -> None:
    feeds = {"x": np.array([1, 2], F32), "n": np.array(turns), "c": np.array(condition)}
    made = ep.to_torch(model(LOOPS), verify=False)(*map(torch.from_numpy, feeds.values()))
    expected = ep.Session(model(LOOPS), providers=["reference"]).run(feeds)
    for left, right in zip(made, expected.values(), strict=True):
        np.testing.assert_allclose(left.numpy(), right, rtol=1e-6)


def test_layers_that_torch_refuses_are_named_each_time() -> None:
    text = "net (float[1, 4, 6, 6] x) => (float[1, 4, 3, 3] y) { y = Conv<group = 3, kernel_shape = [2, 2]>(x, w) }"
    given = _with(text, {"w": np.ones((4, 1, 2, 2), np.float32)})
    for _ in range(2):
        with pytest.raises(ep.ConversionError, match=r"nn\.Conv2d\(.*groups=3.*divisible"):
            ep.to_torch(given, verify=False)


def test_a_module_that_differs_is_refused_with_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "relu", torch.abs)
    with pytest.raises(ep.VerificationError) as caught:
        ep.to_torch(model("g (float[N, 8] x) => (float[N, 8] y) { y = Relu(x) }"))
    assert caught.value.report.failures


def test_a_vector_that_an_exporter_kept_once_is_split_and_a_matrix_stays_tied() -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = torch.nn.Embedding(50, 32)
            self.first = torch.nn.LayerNorm(32)
            self.second = torch.nn.LayerNorm(32)
            self.head = torch.nn.Linear(32, 50, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.second(torch.relu(self.first(self.tokens(ids)))))

    network = Two().eval()
    net = ep.to_torch(ep.export(network, torch.zeros(1, 3, dtype=torch.int64), verify=False))
    assert net.first.weight is not net.second.weight
    assert net.head.weight is net.tokens.weight
    assert net.state_dict().keys() == network.state_dict().keys()


def test_batch_normalisation_comes_back_from_an_export_that_left_it_alone() -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    for parameter in network.parameters():
        torch.nn.init.uniform_(parameter)
    sample = torch.randn(2, 3, 8, 8)
    net = ep.to_torch(ep.export(network.eval(), sample, optimize="none", verify=False), verify=False)
    assert net.state_dict().keys() == network.state_dict().keys()
    assert {type(part) for part in net.modules()} >= {torch.nn.BatchNorm2d}
    torch.testing.assert_close(net(sample), network(sample), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(net.train()(sample), network.train()(sample), rtol=1e-5, atol=1e-6)


PLACES = {
    "v, i = TopK(x, k)": "torch.gather(x, -1, i)",
    "i = ArgMax(x)": "torch.gather(x, -1, i)",
    "v, j = TopK(x, k) a = Unsqueeze(j, one) i = Squeeze(a, one)": "torch.gather(x, -1, i)",
    "v, j = TopK(x, k) i = Add(j, one)": "torch.gather(x, -1, i)",
    "i = Mod(w, k)": "torch.gather(x, -1, i)",
    "i = Identity(w)": "from_front(",
    "v, j = TopK(x, k) i = Sub(j, one)": "from_front(",
    "i = Mod<fmod = 1>(w, k)": "from_front(",
    "c = Cast<to = 2>(w) i = Cast<to = 7>(c)": "torch.gather(x, -1, i)",
    "c = Cast<to = 3>(w) i = Cast<to = 7>(c)": "from_front(",
}


@pytest.mark.parametrize("nodes", PLACES)
def test_places_that_cannot_be_below_0_are_read_as_they_are(nodes: str) -> None:
    net = ep.to_torch(
        model(
            f"""g (float[N, 3] x, int64[N, 1] w) => (float[N, M] y) <int64[1] k = {{2}}, int64[1] one = {{1}}>
            {{ {nodes} y = GatherElements<axis = 1>(x, i) }}"""
        ),
        verify=False,
    )
    assert PLACES[nodes] in net.source()


@pytest.mark.parametrize("alpha", [np.nan, np.inf])
def test_numbers_that_are_none_are_written_so_that_python_reads_them(alpha: float) -> None:
    proto = onnx.parser.parse_model(HEAD + "g (float[N, 3] x) => (float[N, 3] y) { y = LeakyRelu(x) }")
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("alpha", alpha))
    module = ep.to_torch(ep.load(proto), verify=False)
    assert torch.equal(torch.isfinite(module(torch.tensor([[-1.0, 1.0, 2.0]]))), torch.tensor([[False, True, True]]))


SCALES = "float[3] s = {0.5, 0.1, 0.02}, int8[3] z = {0, 5, -7}, uint8[3] u = {3, 0, 200}"


@pytest.mark.parametrize(("scale", "zero"), [("s", "z"), ("s", "u")])
def test_steps_of_an_axis_are_those_of_the_file(scale: str, zero: str) -> None:
    text = f"q = QuantizeLinear<axis = 1>(x, {scale}, {zero})  y = DequantizeLinear<axis = 1>(q, {scale}, {zero})"
    head = HEAD.replace("28", "21")
    proto = onnx.parser.parse_model(head + f"g (float[N, 3, M] x) => (float[N, 3, M] y) <{SCALES}> {{ {text} }}")
    x = np.random.default_rng(0).normal(0, 3, (2, 3, 50)).astype(np.float32)
    (expected,) = run_onnxruntime(proto, {"x": x})
    np.testing.assert_allclose(ep.to_torch(ep.load(proto))(torch.from_numpy(x)).detach(), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin"])
def test_the_extreme_of_what_was_selected_may_be_that_of_nothing(kind: str) -> None:
    text = f"g (float[N] x, bool[N] c) => (float y) {{ s = Compress(x, c)  y = {kind}<keepdims = 0>(s) }}"
    proto = onnx.parser.parse_model(HEAD.replace("28", "21") + text)
    module, x = ep.to_torch(ep.load(proto)), np.arange(4, dtype=F32)
    for chosen in ([True, False, True, False], [False] * 4):
        feeds = {"x": x, "c": np.array(chosen)}
        (expected,) = run_onnxruntime(proto, feeds)
        np.testing.assert_array_equal(module(*map(torch.from_numpy, feeds.values())), expected)


def test_a_table_of_no_rows_is_a_tensor_of_its_type() -> None:
    text = "g (int64[N, 2] x) => (int64[M, 2] y) { y = Concat<axis = 0>(x, e) }"
    module = ep.to_torch(_with(text, {"e": np.zeros((0, 2), np.int64)}))
    assert "ml_dtypes" not in module.source()
    assert module(torch.tensor([[1, 2]])).tolist() == [[1, 2]]


@pytest.mark.parametrize("value", ["-inf", "inf", "nan", "0.5"])
def test_an_image_is_padded_by_any_number_up_to_an_even_size(value: str) -> None:
    text = """g (float[1, 2, H] x) => (float[1, 2, K] y) <int64 two = {2}, int64[5] none = {0, 0, 0, 0, 0}> {
        n = Shape<start = 2>(x)  r = Mod(n, two)  p = Concat<axis = 0>(none, r)  y = Pad(x, p, c) }"""
    loaded = _with(text, {"c": np.array(float(value), F32)})
    net = ep.to_torch(loaded)
    written = value if value == "0.5" else f'float("{value}")'
    assert f"value={written}" in net.source()
    x = torch.ones(1, 2, 3)
    expected = torch.cat([x, torch.full((1, 2, 1), float(value))], 2)
    torch.testing.assert_close(torch.compile(net, fullgraph=True, backend="eager")(x), expected, equal_nan=True)


@pytest.mark.parametrize(
    ("size", "attributes", "rest"),
    [
        (1, "", ""),
        (1, "<onesided = 1>", ", n"),
        (1, "", ", n, axis"),
        (2, "", ", n"),
        (2, "<inverse = 1>", ""),
        (2, "<inverse = 1, onesided = 1>", ", , axis"),
    ],
)
def test_fourier_transforms_are_those_of_torch(size: int, attributes: str, rest: str) -> None:
    stored = "<int64 n = {6}, int64 axis = {1}>"
    graph = _with(
        f"g (float[B, T, 5, {size}] x) => (float[B, C, D, E] y) {stored} {{ y = DFT{attributes}(x{rest}) }}", {}
    )
    net = ep.to_torch(graph)
    assert "torch.fft." in net.source()
    x = torch.randn(2, 4, 5, size, generator=torch.Generator().manual_seed(0))
    (expected,) = ep.Session(graph, providers=["reference"]).run({"x": x.numpy()}).values()
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    for module in (net, compiled):
        np.testing.assert_allclose(module(x).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_the_lowest_number_follows_half_precision() -> None:
    made = "m = ConstantOfShape<value = float[1] {-3.4028234663852886e+38}>(s)"
    net = ep.to_torch(_with(f"g (float[N, 3] x) => (float[N, 3] y) {{ s = Shape(x)  {made}  y = Max(x, m) }}", {}))
    x = torch.ones(2, 3, dtype=torch.float16)
    torch.testing.assert_close(net.half()(x), x)


def test_optionals_are_written_in_python() -> None:
    text = """g (float[N] x) => (float[N] y) {
        o = Optional(x)  v = OptionalGetElement(o)  h = OptionalHasElement(o)  y = If(h) <
            then_branch = t () => (float[N] p) { p = Neg(v) }, else_branch = e () => (float[N] q) { q = Abs(x) }> }"""
    net = ep.to_torch(_with(text, {}))
    assert "torch.tensor(o is not None" in net.source()
    x = torch.tensor([1.0, -2.0])
    assert torch.equal(torch.compile(net, fullgraph=True, backend="eager")(x), -x)


def test_attributes_that_are_arrays_may_hold_nan() -> None:
    node = onnx.helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_tensor=onnx.numpy_helper.from_array(np.array([1, 2])),
        values_tensor=onnx.numpy_helper.from_array(np.array([0.5, np.inf], F32)),
        default_tensor=onnx.numpy_helper.from_array(np.array([np.nan], F32)),
    )  # fmt: skip
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["N"])]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N"])]
    imports = [onnx.helper.make_opsetid("ai.onnx.ml", 4), onnx.helper.make_opsetid("", 20)]
    graph = onnx.helper.make_graph([node], "g", inputs, outputs)
    net = ep.to_torch(ep.load(onnx.helper.make_model(graph, opset_imports=imports, ir_version=9)))
    expected = torch.tensor([0.5, torch.inf, torch.nan])
    torch.testing.assert_close(net(torch.tensor([1, 2, 3])), expected, equal_nan=True)


@pytest.mark.parametrize("op_type", ["CumSum", "CumProd"])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_sums_up_to_each_element_from_either_end(op_type: str, exclusive: int, reverse: int) -> None:
    attributes = f"<exclusive = {exclusive}, reverse = {reverse}>"
    text = f"g (float[N, 4, 3] x) => (float[N, 4, 3] y) <int64 axis = {{1}}> {{ y = {op_type}{attributes}(x, axis) }}"
    net = ep.to_torch(_with(text, {}))
    assert f"torch.{op_type.lower()}(" in net.source()
    x = np.random.default_rng(0).standard_normal((2, 4, 3))
    run = np.cumsum if op_type == "CumSum" else np.cumprod
    turned = x[:, ::-1] if reverse else x
    if exclusive:
        turned = np.concatenate([np.full((2, 1, 3), op_type == "CumProd"), turned[:, :-1]], 1)
    expected = run(turned, 1)[:, ::-1] if reverse else run(turned, 1)
    np.testing.assert_allclose(net(torch.from_numpy(x.astype(F32))).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert net(torch.zeros(0, 4, 3)).shape == (0, 4, 3)


def test_kernels_that_are_written_beside_a_module_compile_with_it() -> None:
    text = "g (float[2, 3, 4] x, int64[2, 2, 1] k) => (float[2, 2, 4] y) { y = GatherND<batch_dims = 1>(x, k) }"
    net = ep.to_torch(_with(text, {}))
    x, k = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([[[0], [2]], [[1], [1]]])
    expected = torch.stack([x[0, [0, 2]], x[1, [1, 1]]])
    assert torch.equal(net(x, k), expected)
    assert torch.equal(torch.compile(net, fullgraph=True, backend="eager")(x, k), expected)


@pytest.mark.parametrize(("op_type", "expected"), [("Div", np.floor_divide), ("Mod", np.remainder)])
def test_divisors_of_uint8_are_what_they_say(op_type: str, expected: np.ufunc) -> None:
    net = ep.to_torch(_with(f"g (uint8[N] x, uint8[N] z) => (uint8[N] y) {{ y = {op_type}(x, z) }}", {}), verify=False)
    x, z = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(1, 256, dtype=np.uint8))
    made = net(torch.from_numpy(x.ravel()), torch.from_numpy(z.ravel()))
    np.testing.assert_array_equal(made.numpy(), expected(x.ravel(), z.ravel()))


@pytest.mark.parametrize("node", ["y = GatherElements<axis = 2>(x, i)", "y = ReduceMax(x, a)", "y = Pad(x, p, q, a)"])
def test_an_axis_that_is_not_there_is_refused(node: str) -> None:
    constants = "int64[1] a = {5}, int64[2] p = {1, 1}, float q = {0}"
    with pytest.raises(ep.InputError, match="out of range"):
        source(f"g (float[2, 3] x, int64[2, 3] i) => (float[N, M] y) <{constants}> {{ {node} }}")


@pytest.mark.parametrize(
    "node", ["LayerNormalization(x, one)", "LayerNormalization(x, w, one)", "RMSNormalization(x, one)"]
)
def test_scales_that_are_repeated_along_an_axis_are_no_layer_of_torch(node: str) -> None:
    weights = {"one": np.full(1, 1.5, np.float32), "w": np.arange(8, dtype=np.float32)}
    given = _with(f"g (float[N, 8] x) => (float[N, 8] y) {{ y = {node} }}", weights)
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True) if node.startswith("Layer") else wide
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    expected = expected * weights["w"] + 1.5 if "w" in node else expected * 1.5
    np.testing.assert_allclose(ep.to_torch(given)(torch.from_numpy(x)).detach(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ends", [(0, 4, 1), (4, 0, 1), (4, 0, -1), (0, 4, -1), (-3, 9, 5), (2, 2, 1)])
def test_a_range_whose_steps_lead_away_from_its_end_is_empty(ends: tuple[int, int, int]) -> None:
    graph = model("g (int64 a, int64 b, int64 c) => (int64[N] y) { y = Range(a, b, c) }")
    net = ep.to_torch(graph, sample={name: np.array(8 * at) for at, name in enumerate("abc", 1)}, verify=False)
    assert net(*map(torch.tensor, ends)).tolist() == list(range(*ends))


def test_a_length_less_one_may_be_below_nothing() -> None:
    text = """g (float[N] x) => (int64[M] y) <int64 z = {0}, int64[1] one = {1}> {
        n = Shape(x)  m = Sub(n, one)  k = Squeeze(m)  o = Squeeze(one)  y = Range(z, k, o) }"""
    net = ep.to_torch(_with(text, {}))
    assert [net(torch.ones(n)).tolist() for n in (0, 1, 3)] == [[], [], [0, 1]]
