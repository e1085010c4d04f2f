"""Modules that torch has quantised: every result equals eager's, up to the step that it is rounded to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir
import pytest
import torch
from torch import nn
from torch.ao.nn import quantized as nnq
from torch.ao.quantization import (
    convert,
    float_qparams_weight_only_qconfig,
    fuse_modules,
    get_default_qconfig,
    prepare,
    quantize_dynamic,
)
from torch.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx

import entrepot as ep
from entrepot.ir.errors import InputError, UnsupportedOpError

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Wrapped(nn.Module):
    """Quantise, some layers, dequantise."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dequant(self.layers(self.quant(x)))


class Functional(nn.Module):
    """Layers joined by operations that have steps of their own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.first, self.second = nn.Linear(6, 5), nn.Linear(6, 5)
        self.joined = nnq.FloatFunctional()
        self.name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.quant(x)
        a, b = self.first(x), self.second(x)
        if self.name == "cat":
            return self.dequant(self.joined.cat([a, b], dim=1))
        if self.name.endswith("scalar"):
            return self.dequant(getattr(self.joined, self.name)(a, -0.37))
        return self.dequant(getattr(self.joined, self.name)(a, b))


class Applied(nn.Module):
    """A function of torch on a quantised tensor."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(torch.quantize_per_tensor(x, 0.04, 61, torch.quint8)).dequantize()


def static(module: nn.Module, x: torch.Tensor, fuse: list[list[str]] | None = None) -> nn.Module:
    module.eval()
    module = fuse_modules(module, fuse) if fuse else module
    module.qconfig = get_default_qconfig("fbgemm")  # type: ignore[assignment]
    prepared = prepare(module)
    prepared(x)
    return convert(prepared)


def fx(module: nn.Module, x: torch.Tensor, *, reference: bool = False) -> nn.Module:
    mapping = torch.ao.quantization.get_default_qconfig_mapping("fbgemm")
    prepared = prepare_fx(module.eval(), mapping, (x,))
    prepared(x)
    return (convert_to_reference_fx if reference else convert_fx)(prepared)


def conv_net() -> nn.Module:
    return Wrapped(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, groups=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
    )  # fmt: skip


def embedded(module: nn.Module) -> nn.Module:
    module.qconfig = float_qparams_weight_only_qconfig  # type: ignore[assignment]
    return convert(prepare(module.eval()))


class Recurrent(nn.Module):
    """A recurrent layer with a state, or without."""

    def __init__(self, kind: Any, **given: Any) -> None:
        super().__init__()
        self.layer = kind(6, 5, **given)

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x)


class Stepping(nn.Module):
    """One step of a recurrent cell."""

    def __init__(self, kind: Any, **given: Any) -> None:
        super().__init__()
        self.cell = kind(6, 5, **given)

    def forward(self, x: torch.Tensor) -> Any:
        return self.cell(x)


X = torch.randn(4, 6, generator=torch.Generator().manual_seed(5))
IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(6))
SIGNAL = torch.randn(2, 3, 11, generator=torch.Generator().manual_seed(7))
VOLUME = torch.randn(1, 2, 4, 5, 6, generator=torch.Generator().manual_seed(8))
INDICES = torch.tensor([[1, 5, 3], [0, 11, 2]])

DYNAMIC: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "linear": (lambda: quantize_dynamic(nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4)), {nn.Linear}), X),
    "linear without bias": (lambda: quantize_dynamic(nn.Sequential(nn.Linear(6, 9, bias=False)), {nn.Linear}), X),
    "linear by channel": (
        lambda: quantize_dynamic(
            nn.Sequential(nn.Linear(6, 9)), {nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        ),
        X,
    ),
    "linear of three axes": (lambda: quantize_dynamic(nn.Sequential(nn.Linear(6, 4)), {nn.Linear}), X[None]),
    "half": (lambda: quantize_dynamic(nn.Sequential(nn.Linear(6, 9)), {nn.Linear}, dtype=torch.float16), X),
    "lstm": (lambda: quantize_dynamic(Recurrent(nn.LSTM), {nn.LSTM}), X[:, None]),
    "lstm, two ways": (
        lambda: quantize_dynamic(Recurrent(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True), {nn.LSTM}),
        X[None],
    ),
    "lstm, half": (lambda: quantize_dynamic(Recurrent(nn.LSTM), {nn.LSTM}, dtype=torch.float16), X[:, None]),
    "gru": (lambda: quantize_dynamic(Recurrent(nn.GRU, bidirectional=True), {nn.GRU}), X[:, None]),
    "lstm cell": (lambda: quantize_dynamic(Stepping(nn.LSTMCell), {nn.LSTMCell}), X),
    "gru cell": (lambda: quantize_dynamic(Stepping(nn.GRUCell), {nn.GRUCell}), X),
    "rnn cell": (lambda: quantize_dynamic(Stepping(nn.RNNCell, nonlinearity="relu"), {nn.RNNCell}), X),
    "embedding": (lambda: embedded(nn.Sequential(nn.Embedding(12, 8))), INDICES),
}

STATIC: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "linear": (lambda: static(Wrapped(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4)), X), X),
    "linear and relu": (lambda: static(Wrapped(nn.Linear(6, 9), nn.ReLU()), X, [["layers.0", "layers.1"]]), X),
    "conv1d": (lambda: static(Wrapped(nn.Conv1d(3, 4, 3, stride=2, padding=1)), SIGNAL), SIGNAL),
    "conv2d": (lambda: static(conv_net(), IMAGE, [["layers.0", "layers.1", "layers.2"]]), IMAGE),
    "conv3d": (lambda: static(Wrapped(nn.Conv3d(2, 3, 2)), VOLUME), VOLUME),
    "batch norm": (lambda: static(Wrapped(nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1)), IMAGE), IMAGE),
    "fx": (lambda: fx(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)), IMAGE), IMAGE),
    "fx, reference": (lambda: fx(nn.Sequential(nn.Linear(6, 9), nn.ReLU()), X, reference=True), X),
    **{
        name: (lambda name=name: static(Functional(name), X), X)
        for name in ("add", "mul", "cat", "add_relu", "add_scalar", "mul_scalar")
    },
    **{
        type(layer).__name__: (lambda layer=layer: static(Wrapped(nn.Linear(6, 8), layer), X), X)
        for layer in (nn.Hardswish(), nn.ELU(), nn.LeakyReLU(0.1), nn.Sigmoid(), nn.ReLU6())
    },
}

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "in place": lambda q: q.relu_(),
    "hardtanh": lambda q: nn.functional.hardtanh(q, -0.51, 0.73),
    "tanh": torch.tanh,
    "reshape": lambda q: q.reshape(2, -1).transpose(0, 1),
    "mean": lambda q: q.mean(1, keepdim=True),
    "cat": lambda q: torch.cat([q, q.relu()], 1),
    "chunk": lambda q: q.chunk(2, 1)[1],
    "topk": lambda q: q.topk(2)[0],
    "choice": lambda q: q if q.is_quantized and q.dtype is torch.quint8 else q[:1],
    "steps": lambda q: torch.quantize_per_tensor(q.int_repr() * q.q_scale(), 0.04, q.q_zero_point(), torch.qint8),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamically_quantised_modules_are_exported(name: str) -> None:
    torch.manual_seed(1)
    build, sample = DYNAMIC[name]
    module = build()
    model = ep.export(module, sample)
    assert model.report is not None
    assert model.report.ok, model.report
    for weight in model.ir.graph.initializers.values():  # no weight is stored as float
        assert weight.const_value is not None
        assert weight.dtype.itemsize < 4 or "weight" not in str(weight.name) or "_" in str(weight.name), weight


@pytest.mark.parametrize("name", STATIC)
def test_statically_quantised_modules_are_exported(name: str) -> None:
    torch.manual_seed(1)
    build, sample = STATIC[name]
    model = ep.export(build(), sample)
    assert model.report is not None
    assert model.report.ok, model.report
    assert isinstance(model.inputs[0].shape[0], str) or name == "conv3d"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_quantised_tensors_are_exported(name: str) -> None:
    module = Applied(FUNCTIONS[name])
    model = ep.export(module, X)
    (found,) = ep.Session(model).run({"x": X.numpy()}).values()
    np.testing.assert_allclose(found, module(X).numpy(), atol=1e-6)


class Held(nn.Module):
    """Quantised tensors that nobody packed: a buffer and an attribute."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(5, 6, generator=torch.Generator().manual_seed(2))
        scales = torch.full((5,), 0.03)
        self.register_buffer(
            "table", torch.quantize_per_channel(weight, scales, torch.zeros(5, dtype=torch.long), 0, torch.qint8)
        )
        self.added = torch.quantize_per_tensor(weight[:, 0], 0.02, 3, torch.qint8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.table.dequantize(), torch.dequantize(self.added))


def test_tensors_that_a_module_holds_quantised_stay_integers_in_the_file() -> None:
    module = Held()
    model = ep.export(module, X)
    assert model.report
    kinds = {str(name): str(value.dtype) for name, value in model.ir.graph.initializers.items()}
    assert kinds["table_steps"] == kinds["added"] == "INT8"
    assert module.table.is_quantized
    assert module.added.is_quantized


def test_a_module_is_left_as_it_was() -> None:
    build, sample = DYNAMIC["lstm, two ways"]
    module = build()
    before = [(name, set(vars(part)), list(part._buffers)) for name, part in module.named_modules()]
    expected = module(sample)
    ep.export(module, sample)
    assert before == [(name, set(vars(part)), list(part._buffers)) for name, part in module.named_modules()]
    torch.testing.assert_close(module(sample), expected, rtol=0, atol=0)


def test_a_step_too_many_is_found() -> None:
    """The slack for what is rounded to the other step does not hide a wrong weight."""
    module = STATIC["linear"][0]()
    model = ep.export(module, X)
    for name in ("layers.0.bias", "layers.2.bias"):
        weight = model.ir.graph.initializers[name]
        assert weight.const_value is not None
        weight.const_value = onnx_ir.Tensor(weight.const_value.numpy() + np.float32(0.1), name=name)
    assert not ep.verify(module, model, X)


def test_a_quantised_result_is_refused_with_what_to_return_instead() -> None:
    with pytest.raises(InputError, match=r"quantised tensor.*y\.dequantize"):
        ep.export(Returning(), X)


class Returning(nn.Module):
    """Forgets to dequantise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)


def test_packed_weights_are_not_shared() -> None:
    with pytest.raises(InputError, match="packed"):
        ep.export(DYNAMIC["linear"][0](), X, share=True)


def test_a_quantised_bag_is_refused_before_it_can_crash() -> None:
    with pytest.raises(UnsupportedOpError, match="outside of its memory"):
        ep.export(nnq.EmbeddingBag(12, 8), (INDICES.reshape(-1), torch.tensor([0, 2])))


def test_an_operator_without_counterpart_is_named() -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
            return torch.ops.quantized.cat_out([q], 0, torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)).dequantize()

    with pytest.raises(UnsupportedOpError, match="quantized::cat_out"):
        ep.export(Odd(), X)


class WeightOnly(nn.Module):
    """Only the weight is quantised; the product is of any rank."""

    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        weight = torch.randn(64, 32, generator=torch.Generator().manual_seed(3))
        scales, zeros = torch.rand(32, generator=torch.Generator().manual_seed(4)) / 50 + 0.01, torch.zeros(32).long()
        self.weight = torch.quantize_per_channel(weight, scales, zeros, 1, torch.qint8)
        self.turned = turned

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.dequantize()
        return nn.functional.linear(x, weight.mT.contiguous()) if self.turned else x @ weight


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(5, 64), (2, 5, 64)])
def test_weights_that_alone_are_quantised_are_exact_on_onnxruntime(shape: tuple[int, ...], turned: bool) -> None:
    module, x = WeightOnly(turned=turned), torch.randn(*shape)
    model = ep.export(module, x)
    assert model.report
    kinds = [str(value.dtype) for name, value in model.ir.graph.initializers.items() if name == "weight"]
    assert kinds == ["INT8"]
    assert "Unsqueeze" not in [node.op_type for node in model.ir.graph]


class Pt2e(nn.Module):
    """What PT2E makes of a linear layer, with a range narrower than its type, and one that the inputs give."""

    def __init__(self, chosen: str) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(9)
        self.register_buffer("weight", torch.randint(-127, 128, (4, 6), generator=generator).to(torch.int8))
        self.register_buffer("scales", torch.rand(4, generator=generator) / 100 + 0.001)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))
        self.chosen = chosen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops = torch.ops.quantized_decomposed
        weight = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        if self.chosen:
            scale, zero = getattr(ops, self.chosen).tensor(x, -128, 127, 1e-5, torch.int8)
            steps = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
            x = ops.dequantize_per_tensor.tensor(steps, scale, zero, -128, 127, torch.int8)
        else:
            steps = ops.quantize_per_tensor(x, 0.02, 64, 0, 127, torch.uint8)
            x = ops.dequantize_per_tensor(steps, 0.02, 64, 0, 127, torch.uint8)
        y = nn.functional.linear(x, weight)
        wide = ops.quantize_per_tensor(y, 1e-4, 0, -(2**15), 2**15 - 1, torch.int16)
        return ops.dequantize_per_tensor(wide, 1e-4, 0, -(2**15), 2**15 - 1, torch.int16)


@pytest.mark.parametrize("as_program", [False, True])
@pytest.mark.parametrize("chosen", ["", "choose_qparams", "choose_qparams_symmetric"])
def test_pt2e_graphs_are_exported_with_their_ranges(chosen: str, as_program: bool) -> None:
    module: Any = Pt2e(chosen)
    source = torch.export.export(module, (X,)) if as_program else module
    model = ep.export(source, X)
    assert model.report
    (found,) = ep.Session(model).run({model.inputs[0].name: 9 * X.numpy()}).values()  # many leave the range
    step = float(module.scales.max()) * 127 * 0.02
    np.testing.assert_allclose(found, module(9 * X).numpy(), atol=step if chosen else 1.5e-4)
    assert str(model.ir.graph.initializers["weight"].dtype) == "INT8"


def test_the_product_of_weight_only_quantisation_keeps_its_integers() -> None:
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            generator = torch.Generator().manual_seed(2)
            self.register_buffer("weight", torch.randint(-127, 128, (32, 64), generator=generator).to(torch.int8))
            self.register_buffer("scales", torch.rand(32, generator=generator) / 50)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.aten._weight_int8pack_mm(x, self.weight, self.scales)

    model = ep.export(Product(), torch.randn(5, 64))
    assert model.report
    assert str(model.ir.graph.initializers["weight"].dtype) == "INT8"
    assert "DequantizeLinear" in [node.op_type for node in model.ir.graph]


class Stored(nn.Module):
    """A weight kept as integers, with steps for groups, columns or all of it, which torch multiplies out."""

    def __init__(self, kind: str, most: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        shape = {"groups": (16, 4, 1), "columns": (16, 1), "turned": (16,), "all": ()}[kind]
        self.kind = kind
        steps = torch.randint(-most - 1, most + 1, (16, 32), generator=generator).to(torch.int8)
        self.register_buffer("weight", steps)
        self.register_buffer("scale", torch.rand(shape, generator=generator) / 50 + 0.01)
        self.register_buffer("zero", torch.randint(-3, 3, shape, generator=generator).to(torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "turned":
            return (x @ self.weight.t().to(x.dtype)) * self.scale
        weight = self.weight.reshape(16, 4, 8) if self.kind == "groups" else self.weight
        weight = (weight.to(x.dtype) - self.zero.to(x.dtype)) * self.scale
        return nn.functional.linear(x, weight.reshape(16, 32))


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("most", [7, 127])
@pytest.mark.parametrize("kind", ["groups", "columns", "turned", "all"])
def test_weights_kept_as_integers_are_dequantised_by_a_node(kind: str, most: int, opset: int) -> None:
    model = ep.export(Stored(kind, most), torch.randn(5, 32), opset=opset)
    assert model.report
    ops = [node.op_type for node in model.ir.graph]
    assert "DequantizeLinear" in ops
    assert not {"Cast", "Sub", "Mul"} & set(ops)
    (weight,) = (value for name, value in model.ir.graph.initializers.items() if name == "weight")
    assert str(weight.dtype) == ("INT4" if most == 7 and opset > 20 else "INT8")


@pytest.mark.parametrize("kind", ["columns", "all"])
def test_a_weight_kept_as_integers_is_stored_as_the_product_takes_it(kind: str) -> None:
    model = ep.export(Stored(kind, 127), torch.randn(2, 5, 32))
    assert model.report
    assert "Transpose" not in [node.op_type for node in model.ir.graph]
    (weight,) = (value for name, value in model.ir.graph.initializers.items() if name == "weight")
    assert weight.shape is not None
    assert weight.shape.numpy()[-2:] == (32, 16)


def test_four_bits_take_half_a_byte_in_the_file(tmp_path: Any) -> None:
    class Wide(Stored):
        def __init__(self) -> None:
            super().__init__("all", 7)
            self.weight = torch.randint(-8, 8, (16, 32)).to(torch.int8).repeat(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale)

    sizes = []
    for opset in (20, 21):
        path = tmp_path / f"{opset}.onnx"
        ep.export(Wide(), torch.randn(2, 2048), path, opset=opset)
        sizes.append(sum(each.stat().st_size for each in tmp_path.glob(f"{opset}*")))
    assert sizes[1] < 0.51 * sizes[0]


def test_weights_that_are_shared_stay_as_wide_as_they_are() -> None:
    model = ep.export(Stored("columns", 7), torch.randn(5, 32), opset=21, share=True)
    assert str(model.ir.graph.initializers["weight"].dtype) == "INT8"


def test_a_product_of_integers_stays_one() -> None:
    class Product(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch._int_mm(x, y)

    generator = torch.Generator().manual_seed(2)
    x = torch.randint(-128, 128, (32, 64), generator=generator).to(torch.int8)
    y = torch.randint(-128, 128, (64, 48), generator=generator).to(torch.int8)
    model = ep.export(Product(), (x, y), dynamic=False)
    assert model.report
    assert [node.op_type for node in model.ir.graph] == ["MatMulInteger"]
