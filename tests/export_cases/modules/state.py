"""State: buffers that forward changes, caches on the module, lazy attributes, tied and parametrised weights, hooks."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn
from torch.nn.utils import parametrizations, parametrize, weight_norm
from torch.utils.checkpoint import checkpoint

from tests.export_cases.case import case


class Tied(nn.Module):
    """Input and output embeddings are one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.body = nn.Embedding(12, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.body(self.embed(ids))))


@case("ids.0", "ids.1")
def tied_embeddings():
    return Tied(), (torch.randint(0, 12, (2, 5)),), (torch.randint(0, 12, (3, 8)),)


@case("x.0")
def spectral_norm():
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 6)), nn.ReLU()), (randn(2, 4),), (randn(5, 4),)


@case("x.0", "x.2")
def weight_norm_old_and_new():
    net = nn.Sequential(parametrizations.weight_norm(nn.Conv1d(3, 4, 3)), nn.ReLU(), _old_weight_norm())
    return net, (randn(2, 3, 9),), (randn(3, 3, 14),)


def _old_weight_norm() -> nn.Module:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return weight_norm(nn.Conv1d(4, 2, 3))


class Symmetric(nn.Module):
    """A matrix made symmetric."""

    def forward(self, w: Tensor) -> Tensor:
        return w.triu() + w.triu(1).transpose(-1, -2)


@case("x.0")
def custom_parametrisation():
    layer = nn.Linear(4, 4)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer, (randn(2, 4),), (randn(5, 4),)


@case("x.0")
def orthogonal_parametrisation():
    return parametrizations.orthogonal(nn.Linear(4, 4)), (randn(2, 4),), (randn(5, 4),)


class LazyTable(nn.Module):
    """A position table that is made at the first call and grows."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if self.table is None or self.table.shape[0] < length:
            self.table = torch.outer(torch.arange(length).float(), 1 / torch.arange(1, 5).float()).sin()
        return x + self.table[:length]


@case("x.0", "x.1")
def table_made_at_the_first_call():
    return LazyTable(), (randn(2, 5, 4),), (randn(3, 9, 4),)


class Counter(nn.Module):
    """Counts its calls, and does not use the count."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.net = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.net(x)


@case("x.0")
def counter_that_is_not_used():
    return Counter(), (randn(2, 4),), (randn(5, 4),)


class Remembers(nn.Module):
    """Keeps its last activation for the curious."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.last = self.net(x)
        self.shape = tuple(x.shape)
        return torch.relu(self.last)


@case("x.0")
def activation_kept_on_the_module():
    return Remembers(), (randn(2, 4),), (randn(5, 4),)


@case("x.0")
def hooks():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    net[0].register_forward_hook(lambda _m, _i, out: out * 2)
    net[2].register_forward_pre_hook(lambda _m, args: (args[0] + 1,))
    return net, (randn(2, 4),), (randn(5, 4),)


class Dropouts(nn.Module):
    """Dropout and a training branch, exported in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.drop = nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        y = self.net(self.drop(x))
        y = F.dropout(y, 0.3, self.training)
        return (y, y.mean()) if self.training else y


@case("x.0")
def dropout_in_evaluation():
    return Dropouts().eval(), (randn(2, 4),), (randn(5, 4),)


class Checkpointed(nn.Module):
    """Gradient checkpointing and autocast left in place."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return checkpoint(self.net, x, use_reentrant=False)


@case("x.0")
def checkpointing():
    return Checkpointed(), (randn(2, 4),), (randn(5, 4),)


@case("x.0")
def compiled():
    return torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager"), (randn(2, 4),), (randn(5, 4),)


@case("x.0")
def data_parallel():
    return nn.DataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), (randn(2, 4),), (randn(5, 4),)


@case("x.0")
def averaged_weights():
    from torch.optim.swa_utils import AveragedModel

    return AveragedModel(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), (randn(2, 4),), (randn(5, 4),)


class Functional(nn.Module):
    """A hypernetwork: another module called with weights that are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.hyper = nn.Linear(4, 3), nn.Linear(2, 15)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        flat = self.hyper(z)
        weights = {"weight": flat[:12].view(3, 4), "bias": flat[12:]}
        return torch.func.functional_call(self.inner, weights, (x,))


@case("x.0")
def hypernetwork():
    return Functional(), (randn(2, 4), randn(2)), (randn(5, 4), randn(2))


class Lora(nn.Module):
    """A low-rank update beside a frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(6, 6).requires_grad_(False)
        self.a, self.b = nn.Parameter(randn(2, 6)), nn.Parameter(randn(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + (x @ self.a.T @ self.b.T) * 0.5


@case("x.0", "x.1")
def low_rank_update():
    return Lora(), (randn(2, 5, 6),), (randn(3, 8, 6),)
