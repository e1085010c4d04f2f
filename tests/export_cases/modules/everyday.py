"""What nearly every training script ends with, and tabular and time series models; these must simply work."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


@case("input.0")
def perceptron():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)), (randn(1, 6),), (randn(7, 6),)


class Basic(nn.Module):
    """A residual block with batch norms."""

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip
        self.skip = (
            nn.Sequential(nn.Conv2d(width, width, 1, stride), nn.BatchNorm2d(width)) if stride > 1 else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x))


@case("input.0", "input.2", "input.3")
def residual_network():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), Basic(4, 1), Basic(4, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)
    )
    return net, (randn(1, 3, 16, 16),), (randn(3, 3, 21, 18),)


@case("x.0")
def convolution_and_linear_of_one_size():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10), nn.LogSoftmax(1)
    )
    return net, (randn(1, 1, 8, 8),), (randn(5, 1, 8, 8),)


class Tabular(nn.Module):
    """Categories embedded beside numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(n, 3) for n in (4, 7, 5))
        self.norm, self.head = nn.BatchNorm1d(2), nn.Sequential(nn.Linear(11, 8), nn.GELU(), nn.Linear(8, 1))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        parts = [embed(categories[:, i]) for i, embed in enumerate(self.embeds)]
        return self.head(torch.cat([*parts, self.norm(numbers)], 1)).squeeze(-1)


@case("categories.0", "numbers.0")
def tabular_with_embeddings():
    def call(n: int):
        return torch.randint(0, 4, (n, 3)), randn(n, 2)

    return Tabular(), call(1), call(6)


class Bpr(nn.Module):
    """Factorisation by a product of embeddings and biases."""

    def __init__(self) -> None:
        super().__init__()
        self.user, self.item, self.bias = nn.Embedding(10, 4), nn.Embedding(20, 4), nn.Embedding(20, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return (self.user(user) * self.item(item)).sum(-1) + self.bias(item).squeeze(-1)


@case("user.0", "item.0")
def matrix_factorisation():
    def call(n: int):
        return torch.randint(0, 10, (n,)), torch.randint(0, 20, (n,))

    return Bpr(), call(3), call(8)


class Siamese(nn.Module):
    """One encoder for two inputs, a contrastive score."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        a, b = F.normalize(self.net(a), dim=-1), F.normalize(self.net(b), dim=-1)
        return self.scale.exp() * a @ b.T


@case("a.0", "b.0")
def contrastive_scores():
    return Siamese(), (randn(3, 6), randn(4, 6)), (randn(5, 6), randn(2, 6))


class Tcn(nn.Module):
    """Dilated causal convolutions on a series, by cutting what was padded."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(3 if d == 1 else 4, 4, 3, padding=2 * d, dilation=d) for d in (1, 2, 4))

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            x = F.relu(conv(x)[:, :, : -conv.padding[0]])
        return x


@case("x.0", "x.2")
def temporal_convolutions():
    return Tcn(), (randn(2, 3, 9),), (randn(1, 3, 17),)


class NLinear(nn.Module):
    """A series normalised by its last value; trend by a moving average."""

    def __init__(self) -> None:
        super().__init__()
        self.trend, self.season = nn.Linear(12, 4), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        last = x[:, -1:, :]
        x = (x - last).transpose(1, 2)
        smooth = F.avg_pool1d(F.pad(x, (2, 2), mode="replicate"), 5, stride=1)
        return (self.trend(smooth) + self.season(x - smooth)).transpose(1, 2) + last


@case("x.0", "x.2")
def decomposed_forecast():
    return NLinear(), (randn(2, 12, 3),), (randn(4, 12, 5),)


class Reversible(nn.Module):
    """Instance normalisation that is undone at the end, patches of a series."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.block = nn.Linear(4, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        patches = ((x - mean) / std).unfold(1, 4, 2)
        return self.head(self.block(self.embed(patches))).flatten(1) * std + mean


@case("x.0", "x.1")
def patches_of_a_series():
    return Reversible(), (randn(2, 12),), (randn(3, 20),)


class Policy(nn.Module):
    """Actor and critic: a distribution's parameters, log-probabilities, entropy."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.mean, self.value = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, state: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = torch.tanh(self.body(state))
        normal = torch.distributions.Normal(self.mean(h), self.log_std.exp())
        return normal.log_prob(action).sum(-1), normal.entropy().sum(-1), self.value(h).squeeze(-1)


@case("state.0", "action.0")
def actor_and_critic():
    return Policy(), (randn(3, 5), randn(3, 2)), (randn(7, 5), randn(7, 2))


class Loss(nn.Module):
    """A model that returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.net(x)
        return F.cross_entropy(logits, y, label_smoothing=0.1), logits.argmax(-1)


@case("x.0", "y.0")
def loss_and_prediction():
    return Loss(), (randn(3, 4), torch.randint(0, 3, (3,))), (randn(6, 4), torch.randint(0, 3, (6,)))


class Conformer(nn.Module):
    """Subsampling, attention and a depthwise convolution module of speech."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.sub = nn.Conv2d(1, width, 3, 2)
        self.lin = nn.Linear(width * 3, width)
        self.att = nn.MultiheadAttention(width, 2, batch_first=True)
        self.point, self.deep = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.norm, self.bn = nn.LayerNorm(width), nn.BatchNorm1d(width)

    def forward(self, mel: Tensor) -> Tensor:
        x = F.relu(self.sub(mel.unsqueeze(1)))
        b, c, t, f = x.size()
        x = self.lin(x.transpose(1, 2).contiguous().view(b, t, c * f))
        y = self.norm(x)
        x = x + self.att(y, y, y, need_weights=False)[0]
        y = F.glu(self.point(self.norm(x).transpose(1, 2)), dim=1)
        return x + F.silu(self.bn(self.deep(y))).transpose(1, 2)


@case("mel.0", "mel.1")
def conformer_block():
    return Conformer(), (randn(2, 15, 8),), (randn(1, 24, 8),)


class Wave(nn.Module):
    """Raw audio: strided convolutions, instance norm, an attentive pooling of statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(1, 6, 8, 4), nn.InstanceNorm1d(6, affine=True)
        self.score = nn.Conv1d(6, 6, 1)

    def forward(self, wave: Tensor) -> Tensor:
        h = F.gelu(self.norm(self.conv(wave.unsqueeze(1))))
        w = self.score(h).softmax(-1)
        mean = (h * w).sum(-1)
        return torch.cat([mean, ((h.pow(2) * w).sum(-1) - mean.pow(2)).clamp(min=1e-4).sqrt()], 1)


@case("wave.0", "wave.1")
def statistics_pooling():
    return Wave(), (randn(2, 60),), (randn(3, 101),)
