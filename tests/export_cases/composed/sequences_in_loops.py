"""What is done with sequences [batch, length, 8] by steps, rows or layers, each a method of ``Sequences``."""

from __future__ import annotations

import torch


def recurrence(self, x):
    h = torch.zeros(x.shape[0], 8)
    out = []
    for t in range(x.shape[1]):
        h = torch.tanh(self.lin(x[:, t]) + h)
        out.append(h)
    return torch.stack(out, 1)


def cell_by_cell(self, x):
    h = x.new_zeros(x.size(0), 8)
    out = []
    for t in range(x.size(1)):
        h = self.cell(x[:, t], h)
        out.append(h.unsqueeze(1))
    return torch.cat(out, dim=1)


def rows_reversed(self, x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i].flip(0))
    return torch.stack(rows)


def until_small(self, x):
    n = 0
    while x.abs().max() > 0.5 and n < 6:
        x = x * 0.7
        n += 1
    return x


def pieces_centred(self, x):
    parts = torch.split(x, 3, dim=1)
    return torch.cat([p - p.mean(1, keepdim=True) for p in parts], 1)


def experts(self, x):
    flat = x.reshape(-1, 8)
    choice = self.router(flat).argmax(-1)
    out = torch.zeros_like(flat)
    for e, expert in enumerate(self.experts):
        at = torch.where(choice == e)[0]
        if at.numel() > 0:
            out[at] = expert(flat[at])
    return out.view_as(x)


def beginnings_doubled(self, x):
    lens = (x[..., 0] > 0).sum(1).tolist()
    out = []
    for i, n in enumerate(lens):
        y = x[i, :n] * 2
        out.append(torch.cat([y, x[i, n:]], 0))
    return torch.stack(out)


def residual_layers(self, x):
    for layer in self.layers:
        x = x + torch.relu(layer(x))
    return x


def running_mean(self, x):
    state = {"sum": torch.zeros_like(x[:, 0]), "n": 0}
    out = []
    for step in x.unbind(1):
        state["sum"] = state["sum"] + step
        state["n"] += 1
        out.append(state["sum"] / state["n"])
    return torch.stack(out, 1)


def written_in_place(self, x):
    y = x.clone()
    for t in range(1, y.shape[1]):
        y[:, t] = y[:, t] + 0.5 * y[:, t - 1]
    return y


def backward_in_time(self, x):
    out = []
    h = torch.zeros_like(x[:, 0])
    for t in reversed(range(x.shape[1])):
        h = 0.9 * h + x[:, t]
        out.insert(0, h)
    return torch.stack(out, dim=1)


def left_early(self, x):
    for layer in self.layers:
        x = torch.tanh(layer(x))
        if x.mean() > 0.05:
            break
    return x


def every_other_row(self, x):
    return torch.stack([self.lin(r) if i % 2 == 0 else r for i, r in enumerate(x)])


def beside_its_reverse(self, x):
    out = []
    for a, b in zip(x.unbind(1), x.flip(1).unbind(1), strict=True):
        out.append(a * torch.sigmoid(b))
    return torch.stack(out, 1)


def branch_for_each_row(self, x):
    out = []
    for r in x:
        if r.mean() > 0:
            out.append(r * 2)
        else:
            out.append(-r)
    return torch.stack(out)


def best_so_far(self, x):
    best = x[:, 0]
    for t in range(1, x.size(1)):
        better = x[:, t].sum(-1) > best.sum(-1)
        best = torch.where(better[:, None], x[:, t], best)
    return x + best[:, None]


def viterbi(self, x):
    score = x[:, 0]
    back = []
    for t in range(1, x.shape[1]):
        step = score.unsqueeze(2) + self.lin.weight
        score, i = step.max(1)
        score = score + x[:, t]
        back.append(i)
    last = score.argmax(-1)
    path = [last]
    for i in reversed(back):
        last = i.gather(1, last[:, None])[:, 0]
        path.append(last)
    path.reverse()
    return x + torch.stack(path, 1).unsqueeze(-1).float()


def sliding_mean(self, x):
    T = x.shape[1]
    out = []
    for t in range(T):
        lo = max(0, t - 2)
        hi = min(T, t + 3)
        out.append(x[:, lo:hi].mean(1))
    return torch.stack(out, 1)


def power_iteration(self, x):
    v = torch.ones(x.shape[0], 8, 1)
    m = x.transpose(1, 2) @ x
    for _ in range(4):
        v = m @ v
        v = v / (v.norm(dim=1, keepdim=True) + 1e-6)
    return x * v.transpose(1, 2)


def block_by_block(self, x):
    outs = []
    for start in range(0, x.shape[1], 3):
        piece = x[:, start : start + 3]
        outs.append(piece - piece.amax(1, keepdim=True))
    return torch.cat(outs, 1)


def layers_by_name(self, x):
    found = {}
    for name, layer in zip(("a", "b", "c"), self.layers, strict=True):
        found[name] = layer(x)
    return sum(found.values()) / len(found)


def while_over_steps(self, x):
    t = 0
    out = []
    while t < x.shape[1]:
        out.append(x[:, t] * (t + 1))
        t += 1
    return torch.stack(out, 1) / x.shape[1]


def two_layers_in_a_list(self, x):
    h = [torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])]
    out = []
    for t in range(x.shape[1]):
        h[0] = torch.tanh(self.layers[0](x[:, t]) + h[0])
        h[1] = torch.tanh(self.layers[1](h[0]) + h[1])
        out.append(h[1])
    return torch.stack(out, 1)


def on_what_came_before(self, x):
    out = [x[:, 0]]
    for step in x[:, 1:].unbind(1):
        out.append(step + 0.5 * out[-1])
    return torch.stack(out, 1)


ALL = (
    recurrence,
    cell_by_cell,
    rows_reversed,
    until_small,
    pieces_centred,
    experts,
    beginnings_doubled,
    residual_layers,
    running_mean,
    written_in_place,
    backward_in_time,
    left_early,
    every_other_row,
    beside_its_reverse,
    branch_for_each_row,
    best_so_far,
    viterbi,
    sliding_mean,
    power_iteration,
    block_by_block,
    layers_by_name,
    while_over_steps,
    two_layers_in_a_list,
    on_what_came_before,
)
