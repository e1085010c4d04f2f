"""Steps over time and over spans, with memories that are addressed, alignments and charts."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class Clockwork(nn.Module):
    """Groups of a state that are renewed every 1, 2 and 4 steps."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 12), nn.Linear(12, 12)
        self.periods = (1, 2, 4)

    def forward(self, x: Tensor) -> Tensor:
        state, out = x.new_zeros(x.size(0), 12), []
        for t in range(x.size(1)):
            new = torch.tanh(self.inner(x[:, t]) + self.outer(state))
            groups = [
                new[:, 4 * i : 4 * i + 4] if t % period == 0 else state[:, 4 * i : 4 * i + 4]
                for i, period in enumerate(self.periods)
            ]
            state = torch.cat(groups, 1)
            out.append(state)
        return torch.stack(out, 1)


@case("x.0", "x.1")
def groups_renewed_at_their_own_rate():
    return Clockwork(), (randn(2, 6, 3),), (randn(1, 9, 3),), (randn(3, 3, 3),)


class PhasedCell(nn.Module):
    """An LSTM with a gate that opens periodically in time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 5)
        self.period, self.shift = nn.Parameter(rand(5) * 4 + 1), nn.Parameter(rand(5))

    def forward(self, x: Tensor, times: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h = c = torch.zeros(x.shape[0], 5, dtype=x.dtype)
        out = []
        for xt, now in zip(x.unbind(1), times.unbind(1), strict=True):
            phase = torch.fmod(now[:, None] - self.shift, self.period) / self.period
            gate = torch.where(phase < 0.1, 20 * phase, torch.where(phase < 0.2, 4 - 20 * phase, 0.001 * phase))
            new_h, new_c = self.cell(xt, (h, c))
            h, c = gate * new_h + (1 - gate) * h, gate * new_c + (1 - gate) * c
            out.append(h)
        return torch.stack(out, 1), (h, c)


@case("x.0", "x.1")
def gates_open_periodically():
    def inputs(b, t):
        return randn(b, t, 3), (rand(b, t) + 1).cumsum(1)

    return PhasedCell(), inputs(2, 5), inputs(1, 8), inputs(3, 2)


class TuringMachine(nn.Module):
    """A memory addressed by content and by rotation, read and written in every step."""

    def __init__(self, cells: int = 7, width: int = 4) -> None:
        super().__init__()
        self.memory = nn.Parameter(randn(cells, width))
        self.controller = nn.GRUCell(3 + width, 10)
        self.head = nn.Linear(10, width + 1 + 1 + 3 + 1 + 2 * width)
        self.out, self.width = nn.Linear(10 + width, 2), width

    def _address(self, h: Tensor, memory: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        w = self.width
        key, strength, gate, shift, sharp, erase, add = self.head(h).split([w, 1, 1, 3, 1, w, w], dim=1)
        likeness = F.cosine_similarity(memory, key.tanh()[:, None], dim=-1)
        content = torch.softmax(F.softplus(strength) * likeness, 1)
        gate = gate.sigmoid()
        mixed = gate * content + (1 - gate) * before
        around = torch.stack([mixed.roll(1, 1), mixed, mixed.roll(-1, 1)], -1)
        turned = (around * shift.softmax(-1)[:, None]).sum(-1).clamp(min=1e-6)
        sharpened = turned ** (1 + F.softplus(sharp))
        return sharpened / sharpened.sum(1, keepdim=True), erase.sigmoid(), add.tanh()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b = x.shape[0]
        memory = self.memory.expand(b, -1, -1)
        h, read = x.new_zeros(b, 10), x.new_zeros(b, self.width)
        where = F.one_hot(torch.zeros(b, dtype=torch.long), memory.shape[1]).to(x)
        out = []
        for t in range(x.shape[1]):
            h = self.controller(torch.cat([x[:, t], read], -1), h)
            where, erase, add = self._address(h, memory, where)
            memory = memory * (1 - where[..., None] * erase[:, None]) + where[..., None] * add[:, None]
            read = torch.bmm(where[:, None], memory)[:, 0]
            out.append(self.out(torch.cat([h, read], -1)))
        return torch.stack(out, 1), memory


@case("x.0", "x.1")
def memory_addressed_by_content_and_rotation():
    return TuringMachine(), (randn(2, 5, 3),), (randn(1, 8, 3),), (randn(3, 2, 3),)


class Retrieval(nn.Module):
    """Patterns recalled by a modern Hopfield network, until nothing moves."""

    def __init__(self) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(2.0))

    def forward(self, state: Tensor, stored: Tensor, steps: int = 20) -> tuple[Tensor, Tensor]:
        taken = torch.zeros(state.shape[0], dtype=torch.long)
        for _ in range(steps):
            new = torch.softmax(self.beta * state @ stored.T, -1) @ stored
            moving = (new - state).norm(dim=-1) > 1e-2
            if not moving.any():
                break
            state = torch.where(moving[:, None], new, state)
            taken = taken + moving.long()
        return state, taken


@case("state.0", "stored.0")
def patterns_recalled():
    return Retrieval(), (randn(3, 6), randn(5, 6)), (randn(1, 6), randn(9, 6)), (randn(4, 6), randn(2, 6))


class LearnsWhileReading(nn.Module):
    """A layer whose state is a linear map, trained on every piece that is read."""

    def __init__(self, width: int = 4, piece: int = 4) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.start, self.rate, self.piece = nn.Parameter(torch.eye(width)), 0.1, piece

    def forward(self, x: Tensor) -> Tensor:
        length = x.size(1)
        padding = (-length) % self.piece
        x = F.pad(x, (0, 0, 0, padding))
        q, k, v = self.q(x), self.k(x), self.v(x)
        w, out = self.start.expand(len(x), -1, -1), []
        for i in range(0, x.size(1), self.piece):
            ks, vs, qs = k[:, i : i + self.piece], v[:, i : i + self.piece], q[:, i : i + self.piece]
            error = ks @ w - vs
            scores = torch.tril(qs @ ks.transpose(1, 2))
            out.append(qs @ w - self.rate * scores @ error)
            w = w - self.rate * ks.transpose(1, 2) @ error
        return torch.cat(out, 1)[:, :length]


@case("x.0", "x.1")
def layer_that_learns_while_reading():
    return LearnsWhileReading(), (randn(2, 10, 4),), (randn(1, 16, 4),), (randn(3, 5, 4),)


class DeltaPieces(nn.Module):
    """The gated delta rule in pieces, with a triangular inverse written row by row."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
        size, (b, h, n, d) = 4, k.shape
        pad = (size - n % size) % size
        q, k, v = (F.pad(a, (0, 0, 0, pad)) for a in (F.normalize(q, dim=-1), F.normalize(k, dim=-1), v))
        decay, beta = F.pad(decay, (0, pad)), F.pad(beta, (0, pad))
        k_beta, v_beta = k * beta[..., None], v * beta[..., None]
        q, k, k_beta, v_beta = (a.reshape(b, h, -1, size, a.shape[-1]) for a in (q, k, k_beta, v_beta))
        decay = decay.reshape(b, h, -1, size).cumsum(-1)
        upper = torch.triu(torch.ones(size, size, dtype=torch.bool), 0)
        fading = (decay[..., None] - decay[..., None, :]).tril().exp().tril()
        inverse = -((k_beta @ k.transpose(-1, -2)) * fading).masked_fill(upper, 0)
        for i in range(1, size):
            row, above = inverse[..., i, :i].clone(), inverse[..., :i, :i].clone()
            inverse[..., i, :i] = row + (row.unsqueeze(-1) * above).sum(-2)
        inverse = inverse + torch.eye(size)
        values, keys = inverse @ v_beta, inverse @ (k_beta * decay.exp()[..., None])
        state, out = torch.zeros(b, h, d, v.shape[-1]), torch.zeros_like(values)
        for i in range(k.shape[2]):
            new = values[:, :, i] - keys[:, :, i] @ state
            inside = (q[:, :, i] @ k[:, :, i].transpose(-1, -2) * fading[:, :, i]).tril()
            out[:, :, i] = (q[:, :, i] * decay[:, :, i, :, None].exp()) @ state + inside @ new
            last = decay[:, :, i, -1, None]
            state = (
                state * last[..., None].exp()
                + (k[:, :, i] * (last - decay[:, :, i]).exp()[..., None]).transpose(-1, -2) @ new
            )
        return out.reshape(b, h, -1, out.shape[-1])[:, :, :n], state


@case("q.0", "q.2")
def gated_delta_rule_in_pieces():
    def inputs(b, n):
        return randn(b, 2, n, 3), randn(b, 2, n, 3), randn(b, 2, n, 5), -rand(b, 2, n), rand(b, 2, n)

    return DeltaPieces(), inputs(2, 7), inputs(1, 12), inputs(3, 3)


class MonotonicAlignment(nn.Module):
    """The best path that visits every phoneme in turn, frame by frame, and the durations along it."""

    def forward(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        b, frames, phonemes = scores.shape
        best = torch.full((b, phonemes), -1e9)
        best[:, 0] = 0.0
        moved = []
        for t in range(frames):
            from_before = F.pad(best[:, :-1], (1, 0), value=-1e9) if t > 0 else torch.full_like(best, -1e9)
            moved.append(from_before > best)
            best = torch.maximum(best, from_before) + scores[:, t]
        at = torch.full((b,), phonemes - 1)
        path = torch.zeros_like(scores)
        for t in range(frames - 1, -1, -1):
            path[torch.arange(b), t, at] = 1.0
            at = at - moved[t].gather(1, at[:, None])[:, 0].long()
        return path, path.sum(1)


@case("scores.0", "scores.1", "scores.2")
def path_through_all_phonemes():
    return MonotonicAlignment(), (randn(2, 9, 4),), (randn(1, 6, 3),), (randn(3, 11, 6),)


class TransducerLoss(nn.Module):
    """Likelihood of a transcript under a transducer, diagonal after diagonal."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        scores = logits.log_softmax(-1)
        _, frames, states, _ = scores.shape
        blank = scores[..., 0]
        emit = scores[:, :, :-1].gather(-1, labels[:, None, :, None].expand(-1, frames, -1, 1)).squeeze(-1)
        alpha = F.pad(emit[:, 0].cumsum(1), (1, 0))
        for t in range(1, frames):
            stay = alpha + blank[:, t - 1]
            row = [stay[:, 0]]
            for u in range(1, states):
                row.append(torch.logaddexp(stay[:, u], row[-1] + emit[:, t, u - 1]))
            alpha = torch.stack(row, 1)
        return -(alpha[:, -1] + blank[:, -1, -1])


@case("logits.0", "logits.1")
def likelihood_under_a_transducer():
    def inputs(b, t):
        return randn(b, t, 4, 6), randint(1, 6, (b, 3))

    return TransducerLoss(), inputs(2, 5), inputs(1, 8), inputs(3, 3)


class Chart(nn.Module):
    """The inside algorithm: spans of growing width from their parts."""

    def __init__(self, symbols: int = 3) -> None:
        super().__init__()
        self.rules = nn.Parameter(randn(symbols, symbols, symbols))
        self.words = nn.Embedding(10, symbols)

    def forward(self, words: Tensor) -> Tensor:
        n = words.shape[1]
        rules = self.rules.flatten(1).log_softmax(-1).view_as(self.rules)
        spans = {(i, i + 1): self.words(words[:, i]).log_softmax(-1) for i in range(n)}
        for width in range(2, n + 1):
            for i in range(n - width + 1):
                parts = [
                    spans[i, k][:, None, :, None] + spans[k, i + width][:, None, None, :] + rules
                    for k in range(i + 1, i + width)
                ]
                spans[i, i + width] = torch.stack(parts, 1).flatten(3).logsumexp((1, 3))
        return spans[0, n].logsumexp(-1)


@case("words.0")
def chart_of_spans():
    return Chart(), (randint(0, 10, (2, 4)),), (randint(0, 10, (1, 4)),), (randint(0, 10, (5, 4)),)


class AlignmentTable(nn.Module):
    """Needleman and Wunsch's table, row by row in lists of numbers."""

    def __init__(self, gap: float = -1.0) -> None:
        super().__init__()
        self.gap = gap

    def forward(self, scores: Tensor) -> Tensor:
        rows, columns = scores.shape
        table = [torch.arange(columns + 1, dtype=torch.float32) * self.gap]
        for i in range(rows):
            above = table[-1]
            row = [above[0] + self.gap]
            for j in range(columns):
                ways = [above[j] + scores[i, j], above[j + 1] + self.gap, row[j] + self.gap]
                row.append(torch.max(torch.stack(ways)))
            table.append(torch.stack(row))
        return torch.stack(table)


@case("scores.0", "scores.1")
def alignment_in_lists_of_rows():
    return AlignmentTable(), (randn(3, 4),), (randn(5, 2),), (randn(2, 6),)
