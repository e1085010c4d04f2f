"""Modules that are more than layers: compiled, replicated, parametrised, hooked, tied, with operators of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

import entrepot as ep

pytestmark = pytest.mark.filterwarnings("ignore")  # torch announces the end of old norms and of DataParallel
X = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))


class Of(nn.Module):
    """A module of a function and parts."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


class Clipped(torch.autograd.Function):
    """Has a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0) ** 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class Scaled(torch.autograd.Function):
    """The newer form, with the context set up apart."""

    @staticmethod
    def forward(x: torch.Tensor, factor: float) -> torch.Tensor:
        return (x * factor).round()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


def compiled_inside() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    module[0] = torch.compile(module[0])  # type: ignore[assignment]
    return module


def compiled_in_place() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    module.compile()
    return module


def hooked() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    module[0].register_forward_hook(lambda part, given, result: result * 2)
    module[0].register_forward_pre_hook(lambda part, args, kwargs: ((args[0] * 3,), kwargs), with_kwargs=True)
    module.register_forward_pre_hook(lambda part, given: (given[0] + 1,))
    return module


def pruned() -> nn.Module:
    return nn.Sequential(prune.l1_unstructured(nn.Linear(4, 3), "weight", amount=0.5))


MODULES: dict[str, Callable[[], nn.Module]] = {
    "compiled": lambda: torch.compile(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), backend="eager"),  # type: ignore[dict-item,return-value]
    "compiled inside": compiled_inside,
    "compiled in place": compiled_in_place,
    "replicated": lambda: nn.DataParallel(nn.Sequential(nn.Linear(4, 3), nn.DataParallel(nn.ReLU()))),
    "hooked": hooked,
    "of symbols": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU())),
    "with other weights": lambda: Of(
        lambda self, x: torch.func.functional_call(self.layer, {"weight": self.layer.weight * 2}, (x,)),
        layer=nn.Linear(4, 3),
    ),
    "a function": lambda: Of(lambda self, x: Clipped.apply(x)),
    "a newer function": lambda: Of(lambda self, x: Scaled.apply(x, 3.0)),
    "recomputed": lambda: Of(lambda self, x: checkpoint(self.layer, x, use_reentrant=False), layer=nn.Linear(4, 4)),
}

COMPUTED: dict[str, Callable[[], nn.Module]] = {
    "spectral norm": lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 3))),
    "weight norm": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 3))),
    "orthogonal": lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 4))),
    "cayley": lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="cayley")),
    "householder": lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 3), orthogonal_map="householder")),
    "old weight norm": lambda: nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 3))),
    "old spectral norm": lambda: nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 3))),
    "pruned": pruned,
}


@pytest.mark.parametrize("name", MODULES)
def test_they_are_exported_like_any_module(name: str) -> None:
    torch.manual_seed(0)
    module = MODULES[name]().eval()
    model = ep.export(module, X)
    assert model.report
    assert isinstance(model.inputs[0].shape[0], str)
    (found,) = ep.Session(model).run({model.inputs[0].name: X.numpy()}).values()
    np.testing.assert_allclose(found, module(X).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_compiled_is_not_compiled_again_for_each_size() -> None:
    compiled = list[torch.fx.GraphModule]()

    def backend(graph: torch.fx.GraphModule, tensors: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    class Halves(nn.Module):
        @torch.compile(backend=backend)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / 2

    module = nn.Sequential(nn.Linear(4, 3), Halves())
    module[0].compile(backend=backend)
    model = ep.export(torch.compile(module, backend=backend).eval(), X, progress=False)  # type: ignore[attr-defined]
    assert isinstance(model.inputs[0].shape[0], str)
    assert not compiled


@pytest.mark.parametrize("name", COMPUTED)
def test_weights_that_are_computed_from_others_are_computed_once(name: str) -> None:
    torch.manual_seed(0)
    module = COMPUTED[name]().eval()
    kinds, keys = [type(part) for part in module.modules()], list(module.state_dict())
    expected = module(X)
    model = ep.export(module, X)
    assert model.report
    assert [node.op_type for node in model.ir.graph] == ["Gemm"]
    assert set(model.ir.graph.initializers) == {"0.weight", "0.bias"}
    assert kinds == [type(part) for part in module.modules()]
    assert keys == list(module.state_dict())
    torch.testing.assert_close(module(X), expected, rtol=0, atol=0)


def test_shared_weights_follow_what_they_are_computed_from() -> None:
    module = COMPUTED["weight norm"]().eval()
    model = ep.export(module, X, share=True)
    with torch.no_grad():
        module[0].parametrizations.weight.original0.mul_(2)  # type: ignore[index,union-attr]
    (found,) = ep.Session(model).run({model.inputs[0].name: X.numpy()}).values()
    np.testing.assert_allclose(found, module(X).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_tied_weights_stay_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(64, 4), nn.Linear(4, 64, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.table(x))

    model = ep.export(Tied(), torch.tensor([[1, 2, 3]]))
    assert list(model.ir.graph.initializers) == ["table.weight"]


LIBRARY = torch.library.Library("special_modules", "DEF")
LIBRARY.define("scale(Tensor x, float by=2.0, *, bool down=False) -> Tensor")
LIBRARY.impl("scale", lambda x, by=2.0, *, down=False: x / by if down else x * by, "CPU")
LIBRARY.define("shift(Tensor x, float by) -> Tensor")
LIBRARY.impl("shift", lambda x, by: x + by, "CompositeImplicitAutograd")
LIBRARY.define("numpy(Tensor x) -> Tensor")
LIBRARY.impl("numpy", lambda x: torch.from_numpy(np.sinh(x.numpy())), "CPU")
LIBRARY.define("python(Tensor x) -> Tensor")
LIBRARY.impl("python", lambda x: torch.tensor(list(map(math.sinh, x.view(-1).tolist()))).view(x.shape), "CPU")


@pytest.mark.parametrize(
    ("function", "nodes"),
    [
        (lambda self, x: torch.ops.special_modules.scale(x), ["Mul"]),
        (lambda self, x: torch.ops.special_modules.scale(x, 3.0, down=True), ["Div"]),
        (lambda self, x: torch.ops.special_modules.shift(x, by=1.5), ["Add"]),
        (lambda self, x: torch.ops.special_modules.numpy(x), ["Sinh"]),
    ],
)
def test_operators_of_a_library_are_followed_into_their_kernels(function: Any, nodes: list[str]) -> None:
    model = ep.export(Of(function), X)
    assert model.report
    assert [node.op_type for node in model.ir.graph] == nodes


def test_a_kernel_that_leaves_torch_is_named_with_what_to_do() -> None:
    with pytest.raises(
        ep.UnsupportedOpError, match=r"special_modules::python cannot be followed.*register_translation"
    ):
        ep.export(Of(lambda self, x: torch.ops.special_modules.python(x)), X)


def test_fake_quantisation_is_exported_with_the_ranges_that_it_has() -> None:
    from torch.ao.quantization import get_default_qat_qconfig, prepare_qat

    torch.manual_seed(0)
    module: Any = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).train()
    module.qconfig = get_default_qat_qconfig("fbgemm")
    module = prepare_qat(module)
    module(torch.randn(16, 4))
    module.eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = ep.export(module, X)
    assert model.report
    assert "QuantizeLinear" in [node.op_type for node in model.ir.graph]
    assert any("observers were off" in note for note in model.notes)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    module.apply(torch.ao.quantization.disable_observer)
    (found,) = ep.Session(model).run({model.inputs[0].name: X.numpy()}).values()
    np.testing.assert_allclose(found, module(X).detach().numpy(), atol=1e-5)


class Shadowed(nn.Module):
    """Lists its weights under the name of a method, of parts that it does not register, as some packages do."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = [nn.Linear(4, 4), nn.Linear(4, 3)]
        self.parameters = nn.ParameterList([weight for part in self.parts for weight in part.parameters()])
        self.last = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.parts[1](self.parts[0](x).relu()))
        return result


def test_a_list_under_the_name_of_a_method_is_in_nobodys_way() -> None:
    module = Shadowed().eval()
    names = [name for name, _ in module.named_modules()]
    model = ep.export(module, X)
    assert model.report.ok
    assert [spec.shape for spec in model.inputs] == [("batch", 4)]
    assert [name for name, _ in module.named_modules()] == names
