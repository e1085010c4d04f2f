"""Images as tokens and back, sequences in chunks, latents: what vision, diffusion and state-space models share."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Diffuser(nn.Module):
    """Patches of a latent, modulated by time and class, and put together again as a square."""

    def __init__(self, width: int = 16, patch: int = 2) -> None:
        super().__init__()
        self.patch, self.embed = patch, nn.Conv2d(4, width, patch, patch)
        self.time, self.label = nn.Linear(8, width), nn.Embedding(5, width)
        self.modulation, self.norm = nn.Linear(width, 6 * width), nn.LayerNorm(width, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp, self.out = nn.Sequential(nn.Linear(width, 32), nn.GELU("tanh")), nn.Linear(width, patch * patch * 4)
        self.back = nn.Linear(32, width)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        rates = torch.exp(-math.log(10000) * torch.arange(4) / 4)
        angles = t[:, None].float() * rates[None]
        c = self.time(torch.cat([angles.cos(), angles.sin()], -1)) + self.label(y)
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(F.silu(c)).unsqueeze(1).chunk(6, -1)
        h = self.norm(tokens) * (1 + scale) + shift
        tokens = tokens + gate * self.attention(h, h, h, need_weights=False)[0]
        tokens = tokens + gate2 * self.back(self.mlp(self.norm(tokens) * (1 + scale2) + shift2))
        p = self.patch
        side = int(tokens.shape[1] ** 0.5)
        assert side * side == tokens.shape[1]
        image = self.out(tokens).reshape(-1, side, side, p, p, 4)
        return torch.einsum("nhwpqc->nchpwq", image).reshape(-1, 4, side * p, side * p)


@case("x.0", "x.2", "x.3", "t.0", "y.0")
def patches_put_together_as_a_square():
    def call(b: int, s: int) -> tuple[Tensor, Tensor, Tensor]:
        return randn(b, 4, s, s), torch.randint(0, 999, (b,)), torch.randint(0, 5, (b,))

    return Diffuser(), call(2, 8), call(1, 12), call(3, 6)


class Guided(nn.Module):
    """Steps of a sampler with guidance: both predictions in one batch, coefficients looked up by step."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.prompt = nn.Conv2d(4, 4, 3, padding=1), nn.Linear(6, 4)
        self.register_buffer("alphas", torch.linspace(0.999, 0.9, 10).cumprod(0))
        self.steps = [9, 6, 3, 0]

    def forward(self, x: Tensor, text: Tensor, scale: Tensor) -> Tensor:
        both = torch.cat([torch.zeros_like(text), text])
        for at, t in enumerate(self.steps):
            batch = torch.full((x.shape[0],), t, dtype=torch.long)
            alpha = self.alphas.gather(0, batch).reshape(x.shape[0], *((1,) * (x.dim() - 1)))
            noise = torch.tanh(self.net(torch.cat([x, x])) + self.prompt(both.mean(1))[:, :, None, None])
            without, given = noise.chunk(2)
            noise = without + scale.view(-1, 1, 1, 1) * (given - without)
            start = ((x - (1 - alpha).sqrt() * noise) / alpha.sqrt()).clamp(-1, 1)
            before = self.alphas[self.steps[at + 1]] if at + 1 < len(self.steps) else torch.tensor(1.0)
            x = before.sqrt() * start + (1 - before).sqrt() * noise
        return x


@case("x.0", "x.2", "x.3", "text.0", "text.1")
def sampler_with_guidance():
    return (
        Guided(),
        (randn(2, 4, 8, 8), randn(2, 5, 6), torch.tensor([7.5])),
        (randn(1, 4, 6, 10), randn(1, 3, 6), torch.tensor([3.0])),
    )


class Folded(nn.Module):
    """A map unfolded into patches of two by two, resized first where the sizes are odd, mixed, and folded back."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.local, self.mix = (
            nn.Conv2d(3, width, 3, padding=1),
            nn.TransformerEncoderLayer(width, 2, 16, batch_first=True),
        )
        self.out = nn.Conv2d(2 * width, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = res = self.local(x)
        b, c, h, w = y.shape
        new_h, new_w = int(math.ceil(h / 2) * 2), int(math.ceil(w / 2) * 2)
        resized = False
        if new_w != w or new_h != h:
            y = F.interpolate(y, size=(new_h, new_w), mode="bilinear", align_corners=False)
            resized = True
        n_h, n_w = new_h // 2, new_w // 2
        y = y.reshape(b * c * n_h, 2, n_w, 2).transpose(1, 2).reshape(b, c, n_h * n_w, 4)
        y = self.mix(y.permute(0, 3, 2, 1).reshape(b * 4, n_h * n_w, c))
        y = y.reshape(b, 4, n_h * n_w, c).transpose(1, 3).reshape(b * c * n_h, n_w, 2, 2)
        y = y.transpose(1, 2).reshape(b, c, n_h * 2, n_w * 2)
        if resized:
            y = F.interpolate(y, size=(h, w), mode="bilinear", align_corners=False)
        return self.out(torch.cat([res, y], 1))


@case("x.0", "x.2", "x.3")
def map_unfolded_and_folded():
    return Folded(), (randn(2, 3, 8, 12),), (randn(1, 3, 7, 10),), (randn(3, 3, 9, 5),)


class Merged(nn.Module):
    """Tokens that are alike are merged, a given number of them, between layers."""

    def __init__(self, width: int = 8, fewer: int = 3) -> None:
        super().__init__()
        self.fewer, self.layer, self.head = fewer, nn.Linear(width, width), nn.Linear(width, 4)

    def _merge(self, x: Tensor) -> Tensor:
        metric = F.normalize(x, dim=-1)
        a, b = metric[..., ::2, :], metric[..., 1::2, :]
        r = min(self.fewer, x.shape[1] // 2)
        best, to = (a @ b.transpose(-1, -2)).max(-1)
        order = best.argsort(-1, descending=True)[..., None]
        rest, merged = order[..., r:, :], order[..., :r, :]
        to = to[..., None].gather(-2, merged)
        source, target = x[..., ::2, :], x[..., 1::2, :]
        n, t1, c = source.shape
        kept = source.gather(-2, rest.expand(n, t1 - r, c))
        moved = source.gather(-2, merged.expand(n, r, c))
        return torch.cat([kept, target.scatter_reduce(-2, to.expand(n, r, c), moved, reduce="mean")], 1)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = self._merge(x + torch.tanh(self.layer(x)))
        return self.head(x.mean(1))


@case("x.0", "x.1")
def tokens_alike_are_merged():
    return Merged(), (randn(2, 16, 8),), (randn(1, 25, 8),), (randn(3, 12, 8),)


class ChunkedStates(nn.Module):
    """A state-space layer in chunks: padded to whole chunks, sums of segments, states passed from chunk to chunk."""

    def __init__(self, heads: int = 2, width: int = 3, states: int = 4, chunk: int = 4) -> None:
        super().__init__()
        self.shape, self.chunk = (heads, width, states), chunk
        self.inner = nn.Linear(6, heads * width + 2 * states + heads)
        self.rates, self.out = nn.Parameter(torch.rand(heads)), nn.Linear(heads * width, 6)

    @staticmethod
    def _segments(x: Tensor) -> Tensor:
        size = x.size(-1)
        x = x[..., None].expand(*x.size(), size)
        lower = torch.tril(torch.ones(size, size, dtype=torch.bool), diagonal=-1)
        sums = x.masked_fill(~lower, 0).cumsum(-2)
        return sums.masked_fill(~torch.tril(torch.ones(size, size, dtype=torch.bool)), -torch.inf)

    def forward(self, u: Tensor) -> Tensor:
        heads, width, states = self.shape
        b, length, _ = u.shape
        x, bs, cs, dt = self.inner(u).split([heads * width, states, states, heads], -1)
        pad = (self.chunk - length % self.chunk) % self.chunk
        dt = F.softplus(dt)
        x = F.pad(x.view(b, length, heads, width) * dt[..., None], (0, 0, 0, 0, 0, pad))
        a = F.pad(-dt * self.rates.exp(), (0, 0, 0, pad))
        bs, cs = F.pad(bs, (0, 0, 0, pad)), F.pad(cs, (0, 0, 0, pad))
        x, a, bs, cs = (t.reshape(b, -1, self.chunk, *t.shape[2:]) for t in (x, a, bs, cs))
        a = a.permute(0, 3, 1, 2)
        total = a.cumsum(-1)
        inside = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", cs, bs, self._segments(a).exp(), x)
        decay = torch.exp(total[..., -1:] - total)
        state = torch.einsum("bcln,bhcl,bclhp->bchpn", bs, decay, x)
        state = torch.cat([torch.zeros_like(state[:, :1]), state], 1)
        between = self._segments(F.pad(total[..., -1], (1, 0))).exp()
        state = torch.einsum("bhzc,bchpn->bzhpn", between, state)[:, :-1]
        outside = torch.einsum("bcln,bchpn,bhcl->bclhp", cs, state, total.exp())
        y = (inside + outside).reshape(b, -1, heads * width)
        return self.out(y[:, :length])


@case("u.0", "u.1")
def states_from_chunk_to_chunk():
    return ChunkedStates(), (randn(2, 10, 6),), (randn(1, 16, 6),), (randn(3, 5, 6),)


class Doubling(nn.Module):
    """A linear recurrence by doubling: steps of one, two, four, until the length is reached."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        a, b = torch.sigmoid(self.gate(x)), self.value(x)
        step = 1
        while step < x.shape[1]:
            moved_a = F.pad(a, (0, 0, step, 0), value=1.0)[:, : x.shape[1]]
            moved_b = F.pad(b, (0, 0, step, 0))[:, : x.shape[1]]
            b = b + a * moved_b
            a = a * moved_a
            step *= 2
        return b


@case("x.0", "x.1")
def recurrence_by_doubling():
    return Doubling(), (randn(2, 6, 4),), (randn(1, 13, 4),), (randn(3, 3, 4),)


class Step(nn.Module):
    """One token of a selective state-space model: a window of the convolution and the state come in and go out."""

    def __init__(self, width: int = 6, states: int = 4, kernel: int = 4) -> None:
        super().__init__()
        self.conv, self.inner = nn.Conv1d(width, width, kernel, groups=width), nn.Linear(5, 2 * width)
        self.project, self.delta = nn.Linear(width, 2 * states + 1), nn.Linear(1, width)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(width, 1))
        self.out = nn.Linear(width, 5)

    def forward(self, x: Tensor, cache: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        y, gate = self.inner(x).chunk(2, -1)
        window = torch.roll(cache["window"], -1, -1)
        window[:, :, -1] = y
        y = F.silu((window * self.conv.weight.squeeze(1)).sum(-1) + self.conv.bias)
        dt, b, c = self.project(y).split([1, 4, 4], -1)
        dt = F.softplus(self.delta(dt))
        state = cache["state"] * torch.exp(dt.unsqueeze(-1) * -self.log_a.exp())
        state = state + (dt * y).unsqueeze(-1) * b.unsqueeze(1)
        y = (state @ c.unsqueeze(-1)).squeeze(-1) * F.silu(gate)
        return self.out(y), {"window": window, "state": state}


@case("x.0")
def token_of_a_state_space_model():
    def call(b: int) -> tuple:
        return randn(b, 5), {"window": randn(b, 6, 4), "state": randn(b, 6, 4)}

    return Step(), call(2), call(1), call(4)


class Typed(nn.Module):
    """Kinds of nodes and of edges between them in dictionaries, the edges' keys being triples."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.embed = nn.ModuleDict({"user": nn.Linear(3, width), "item": nn.Linear(4, width)})
        self.relations = nn.ModuleDict(
            {"user__buys__item": nn.Linear(width, width), "item__of__user": nn.Linear(width, width)}
        )

    def forward(self, x: dict[str, Tensor], edges: dict[tuple[str, str, str], Tensor]) -> dict[str, Tensor]:
        h = {kind: self.embed[kind](value).relu() for kind, value in x.items()}
        out = {kind: value.clone() for kind, value in h.items()}
        for (source, relation, target), (start, end) in edges.items():
            message = self.relations[f"{source}__{relation}__{target}"](h[source])[start]
            sums = torch.zeros_like(out[target]).index_add_(0, end, message)
            degree = torch.zeros(out[target].size(0)).scatter_add_(0, end, torch.ones(end.size(0)))
            out[target] = out[target] + sums / degree.clamp(min=1).unsqueeze(-1)
        return out


@case("x.user.0", "x.item.0")
def kinds_of_nodes_and_edges():
    def call(u: int, i: int, n: int, m: int) -> tuple:
        buys = torch.stack([torch.randint(0, u, (n,)), torch.randint(0, i, (n,))])
        of = torch.stack([torch.randint(0, i, (m,)), torch.randint(0, u, (m,))])
        edges = {("user", "buys", "item"): buys, ("item", "of", "user"): of}
        return {"user": randn(u, 3), "item": randn(i, 4)}, edges

    return Typed(), call(4, 6, 9, 7), call(3, 5, 12, 4)


class Spoken(nn.Module):
    """Frames from a wave, lengths from lengths, a mask from both; tokens until the end is said."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 6, 10, 5), nn.GELU(), nn.Conv1d(6, 6, 3, 2), nn.GELU())
        self.layer, self.head = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True), nn.Linear(6, 9)

    @staticmethod
    def _lengths(lengths: Tensor) -> Tensor:
        for kernel, stride in ((10, 5), (3, 2)):
            lengths = torch.div(lengths - kernel, stride, rounding_mode="floor") + 1
        return lengths

    def forward(self, wave: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = self.features(((wave - wave.mean(-1, keepdim=True)) / (wave.std(-1, keepdim=True) + 1e-7))[:, None])
        x = x.transpose(1, 2)
        frames = self._lengths(lengths)
        mask = torch.zeros(x.shape[:2], dtype=torch.long)
        mask[(torch.arange(x.shape[0]), frames - 1)] = 1
        mask = mask.flip([-1]).cumsum(-1).flip([-1]).bool()
        x = x.masked_fill(~mask.unsqueeze(-1), 0.0)
        x = self.layer(x, src_key_padding_mask=~mask)
        return self.head(x).log_softmax(-1) * mask.unsqueeze(-1), frames


@case("wave.0", "wave.1", "lengths.0")
def frames_of_waves_with_lengths():
    return (
        Spoken(),
        (randn(2, 80), torch.tensor([80, 61])),
        (randn(3, 100), torch.tensor([50, 100, 71])),
        (randn(1, 64), torch.tensor([64])),
    )


class Expanded(nn.Module):
    """Phonemes repeated by predicted durations, and decoded with positions; the pace is a Python number."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embed, self.duration, self.decode = (
            nn.Embedding(20, width),
            nn.Linear(width, 1),
            nn.GRU(width, 6, batch_first=True),
        )

    def forward(self, phonemes: Tensor, pace: float = 1.0) -> tuple[Tensor, Tensor]:
        x = self.embed(phonemes)
        durations = torch.clamp(torch.round((torch.exp(self.duration(x).squeeze(-1)) + 1) * pace), min=1).long()
        frames = torch.repeat_interleave(x[0], durations[0], dim=0).unsqueeze(0)
        position = torch.arange(frames.shape[1]).unsqueeze(-1) / 100
        return self.decode(frames + position)[0], durations


@case("phonemes.1")
def frames_by_predicted_durations():
    return Expanded(), (torch.randint(0, 20, (1, 6)),), (torch.randint(0, 20, (1, 11)),)


class Listening(nn.Module):
    """A decoder step with caches of itself and of what it listens to."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(12, width), nn.Embedding(40, width)
        self.qkv, self.query, self.head = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 12)

    def forward(self, tokens: Tensor, past: list[tuple[Tensor, Tensor]], heard: tuple[Tensor, Tensor]) -> tuple:
        offset = past[0][0].shape[2] if past is not None else 0
        x = self.embed(tokens) + self.position.weight[offset : offset + tokens.shape[1]]
        b, t, width = x.shape
        present = []
        for keys, values in past:
            q, k, v = (y.view(b, t, 2, width // 2).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            present.append((k, v))
            scores = q @ k.transpose(-1, -2) / (width // 2) ** 0.5
            mask = torch.full((t, offset + t), float("-inf")).triu(offset + 1)
            x = x + ((scores + mask).softmax(-1) @ v).transpose(1, 2).reshape(b, t, width)
            q = self.query(x).view(b, t, 2, -1).transpose(1, 2)
            x = x + F.scaled_dot_product_attention(q, *heard).transpose(1, 2).flatten(2)
        return self.head(x[:, -1]), present


@case("tokens.0", "tokens.1")
def step_with_two_kinds_of_cache():
    def call(b: int, t: int, p: int, s: int) -> tuple:
        pair = lambda n: (randn(b, 2, n, 4), randn(b, 2, n, 4))  # noqa: E731
        return torch.randint(0, 12, (b, t)), [pair(p), pair(p)], pair(s)

    return Listening(), call(2, 2, 3, 5), call(1, 1, 6, 7), call(3, 4, 2, 4)
