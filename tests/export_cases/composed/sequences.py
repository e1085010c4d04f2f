"""What is done with sequences [batch, length, 8] at once, each a method of ``Sequences``."""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def mixed(self, x):
    return torch.tanh(self.lin(x))


def normalised(self, x):
    return self.norm(x)


def lstm(self, x):
    y, _ = self.lstm(x)
    return y


def convolved(self, x):
    return self.conv(x.transpose(1, 2)).transpose(1, 2)


def attended(self, x):
    y, _ = self.att(x, x, x)
    return x + y


def attended_causally(self, x):
    T = x.shape[1]
    mask = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    s = (self.lin(x) @ self.lin2(x).transpose(1, 2)) / math.sqrt(8)
    return s.masked_fill(mask, float("-inf")).softmax(-1) @ x


def windows_padded(self, x):
    B, T, D = x.shape
    pad = (4 - T % 4) % 4
    y = F.pad(x, (0, 0, 0, pad))
    y = y.view(B, -1, 4, D)
    y = y - y.mean(2, keepdim=True)
    return y.reshape(B, -1, D)[:, :T]


def branch_on_a_sum(self, x):
    if x.sum() > 0:
        return x * 0.5
    return torch.relu(x) - 0.1


def branch_on_an_odd_length(self, x):
    if x.shape[1] % 2 == 1:
        return x + 1
    else:
        return x - x.mean(1, keepdim=True)


def best_half(self, x):
    k = max(1, x.shape[1] // 2)
    _, i = self.gate(x).squeeze(-1).topk(k, dim=1)
    picked = x.gather(1, i.unsqueeze(-1).expand(-1, -1, 8))
    return x + picked.mean(1, keepdim=True)


def sorted_by_score(self, x):
    _, i = torch.sort(self.gate(x).squeeze(-1), dim=1)
    return x.gather(1, i[..., None].expand(-1, -1, x.size(-1)))


def rolled(self, x):
    return torch.roll(x, shifts=x.shape[1] // 2, dims=1)


def table_of_places(self, x):
    return x + self.table[: x.shape[1]]


def waves_of_places(self, x):
    T = x.shape[1]
    p = torch.arange(T, dtype=torch.float32).unsqueeze(1)
    f = torch.exp(torch.arange(0, 8, 2).float() * (-math.log(10000.0) / 8))
    pe = torch.zeros(T, 8)
    pe[:, 0::2] = torch.sin(p * f)
    pe[:, 1::2] = torch.cos(p * f)
    return x + pe


def chunks_exchanged(self, x):
    a = x.chunk(2, dim=1)
    return torch.cat([a[-1], *a[:-1]], dim=1)


def masked_rows_mixed(self, x):
    m = x[..., 0] > 0
    y = x.clone()
    y[m] = self.lin(x[m])
    return y


def rows_found_and_doubled(self, x):
    idx = (x[..., 0] > 0).nonzero()
    y = torch.zeros_like(x)
    y[idx[:, 0], idx[:, 1]] = x[idx[:, 0], idx[:, 1]] * 2
    return y


def scaled_by_a_count(self, x):
    n = int((x[..., 0] > 0).sum().item())
    return x * (n / (1 + x.shape[0] * x.shape[1]))


def spectrum_halved(self, x):
    return torch.fft.irfft(torch.fft.rfft(x, dim=1) * 0.5, n=x.shape[1], dim=1)


def stretched_and_pooled(self, x):
    T = x.shape[1]
    y = F.interpolate(x.transpose(1, 2), scale_factor=2, mode="linear", align_corners=False)
    return F.adaptive_avg_pool1d(y, T).transpose(1, 2)


def neighbours_averaged(self, x):
    y = F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1)
    return y.mean(-1)


def pairs_below_the_diagonal(self, x):
    T = x.shape[1]
    i, j = torch.tril_indices(T, T)
    w = torch.zeros(x.shape[0], T, T)
    w[:, i, j] = (x[:, i] * x[:, j]).sum(-1)
    return w.softmax(-1) @ x


def cumulative_mean(self, x):
    return torch.cumsum(x, 1) / torch.arange(1, x.shape[1] + 1).view(1, -1, 1)


def unit_rows(self, x):
    return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)


def einsum_attention(self, x):
    a = torch.einsum("btd,bsd->bts", x, x).softmax(-1)
    return torch.einsum("bts,bsd->btd", a, x)


def heads(self, x):
    b, t, d = x.size()
    q = self.lin(x).view(b, t, 2, d // 2).transpose(1, 2)
    k = self.lin2(x).view(b, t, 2, d // 2).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, k, q)
    return y.transpose(1, 2).contiguous().view(b, t, d)


def quantised_and_embedded(self, x):
    ids = (x.mean(-1).sigmoid() * 9).round().long()
    return x + self.emb(ids)


def last_valid_step(self, x):
    n = (x[..., 0] > -0.5).sum(1).clamp(min=1)
    last = x[torch.arange(x.shape[0]), n - 1]
    return x + last.unsqueeze(1)


def sums_of_segments(self, x):
    ids = (x[..., 0] > 0).long() + torch.arange(x.shape[0]).unsqueeze(1) * 2
    sums = torch.zeros(2 * x.shape[0], 8).index_add_(0, ids.reshape(-1), x.reshape(-1, 8))
    return x + sums[ids]


def even_and_odd_steps(self, x):
    a, b = x[:, ::2], x[:, 1::2]
    n = b.shape[1]
    return torch.cat([a[:, :n] + b, a[:, :n] - b, a[:, n:]], 1)


def median_taken_off(self, x):
    return x - x.median(dim=1, keepdim=True).values


def differences(self, x):
    d = x[:, 1:] - x[:, :-1]
    return torch.cat([x[:, :1], d], 1)


def pooled_and_back(self, x):
    y = F.max_pool1d(x.transpose(1, 2), 2, ceil_mode=True)
    y = F.interpolate(y, size=x.shape[1], mode="nearest")
    return y.transpose(1, 2)


def distinct_numbers(self, x):
    ids = (x[..., 0] * 2).round().long()
    u, inv = torch.unique(ids, return_inverse=True)
    return x + (inv.float() / u.numel()).unsqueeze(-1)


def token_in_front(self, x):
    B, T, D = x.shape
    cls = self.table[0].expand(B, 1, D)
    y = torch.cat((cls, x), dim=1)
    y = self.norm(y + self.table[: T + 1])
    return y[:, 1:]


def buckets(self, x):
    edges = torch.linspace(-1, 1, 9)
    return x + torch.bucketize(x, edges).float() * 0.1


def partial_function(self, x):
    f = functools.partial(F.leaky_relu, negative_slope=0.3)
    return f(x)


def straight_through(self, x):
    hard = F.one_hot(x.argmax(-1), 8).float()
    return hard - x.detach() + x


def distances(self, x):
    d = torch.cdist(x, x)
    return torch.softmax(-d, -1) @ x


ALL = (
    mixed,
    normalised,
    lstm,
    convolved,
    attended,
    attended_causally,
    windows_padded,
    branch_on_a_sum,
    branch_on_an_odd_length,
    best_half,
    sorted_by_score,
    rolled,
    table_of_places,
    waves_of_places,
    chunks_exchanged,
    masked_rows_mixed,
    rows_found_and_doubled,
    scaled_by_a_count,
    spectrum_halved,
    stretched_and_pooled,
    neighbours_averaged,
    pairs_below_the_diagonal,
    cumulative_mean,
    unit_rows,
    einsum_attention,
    heads,
    quantised_and_embedded,
    last_valid_step,
    sums_of_segments,
    even_and_odd_steps,
    median_taken_off,
    differences,
    pooled_and_back,
    distinct_numbers,
    token_in_front,
    buckets,
    partial_function,
    straight_through,
    distances,
)
