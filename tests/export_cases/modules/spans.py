"""Text beyond rows of tokens: words of pieces, all spans, documents of sentences, characters, logits forbidden."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn
from torch.nn.utils.rnn import pad_sequence

from tests.export_cases.case import case


class WordsOfPieces(nn.Module):
    """Pieces are averaged into the words that they belong to."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.tag = nn.Embedding(20, 6), nn.Linear(6, 3)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        x = self.emb(batch["ids"])
        words = batch["words"]
        n = int(words.max()) + 1
        out = torch.zeros(x.size(0), n + 1, x.size(2))
        index = torch.where(words < 0, torch.full_like(words, n), words)
        out.scatter_add_(1, index.unsqueeze(-1).expand_as(x), x)
        count = torch.zeros(x.size(0), n + 1).scatter_add_(1, index, torch.ones(index.shape))
        return self.tag(out[:, :n] / count[:, :n].clamp(min=1).unsqueeze(-1))


def _pieces(batch: int, length: int) -> dict[str, Tensor]:
    words = (rand(batch, length) > 0.4).long().cumsum(1) - 1
    words[0, -2:] = -1
    return {"ids": randint(0, 20, (batch, length)), "words": words}


@case("batch.ids.0", "batch.ids.1")
def words_of_pieces():
    return WordsOfPieces(), (_pieces(2, 8),), (_pieces(3, 5),), (_pieces(1, 13),)


class AllSpans(nn.Module):
    """Every span up to a width, from its ends and a vector of its width; those beyond the end are masked."""

    def __init__(self, width: int = 6, longest: int = 3) -> None:
        super().__init__()
        self.longest = longest
        self.lstm = nn.LSTM(width, 4, bidirectional=True, batch_first=True)
        self.widths, self.score = nn.Embedding(longest, 3), nn.Linear(19, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        h, _ = self.lstm(x)
        b, t, _ = h.shape
        starts = torch.arange(t).repeat_interleave(self.longest)
        widths = torch.arange(self.longest).repeat(t)
        ends = (starts + widths).clamp(max=t - 1)
        spans = torch.cat([h[:, starts], h[:, ends], self.widths(widths).expand(b, -1, -1)], -1)
        valid = (starts + widths)[None] < lengths[:, None]
        return self.score(spans).masked_fill(~valid[..., None], float("-inf")), valid


@case("x.0", "x.1")
def spans_up_to_a_width():
    return (
        AllSpans(),
        (randn(2, 7, 6), torch.tensor([7, 4])),
        (randn(3, 5, 6), torch.tensor([3, 5, 1])),
        (randn(1, 10, 6), torch.tensor([10])),
    )


class Documents(nn.Module):
    """Words are read sentence by sentence, then sentences; empty ones don't count."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(30, 6, padding_idx=0)
        self.words, self.sentences = nn.GRU(6, 4, batch_first=True), nn.GRU(4, 5, batch_first=True)
        self.attend, self.out = nn.Linear(4, 1), nn.Linear(5, 2)

    def forward(self, ids: Tensor) -> Tensor:
        b, s, w = ids.shape
        flat = ids.view(b * s, w)
        h, _ = self.words(self.emb(flat))
        score = self.attend(torch.tanh(h)).squeeze(-1).masked_fill(flat == 0, -1e4)
        pooled = (h * score.softmax(-1).unsqueeze(-1)).sum(1).view(b, s, -1)
        there = (ids != 0).any(-1)
        y, _ = self.sentences(pooled)
        last = there.sum(1).clamp(min=1) - 1
        return self.out(y[torch.arange(b), last])


def _documents(b: int, s: int, w: int) -> Tensor:
    ids = randint(1, 30, (b, s, w))
    ids[0, -1] = 0
    ids[:, :, -1] *= torch.randint(0, 2, (b, s))
    return ids


@case("ids.0", "ids.1", "ids.2")
def documents_of_sentences():
    return Documents(), (_documents(2, 3, 5),), (_documents(1, 5, 4),), (_documents(3, 2, 7),)


class CharactersOfWords(nn.Module):
    """Convolutions of several widths over the characters of each word, then a highway."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(25, 5, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(5, 4, k) for k in (1, 2, 3))
        self.gate, self.plain = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, chars: Tensor) -> Tensor:
        shape = chars.shape
        x = self.emb(chars.reshape(-1, shape[-1])).transpose(1, 2)
        pooled = torch.cat([conv(x).max(dim=-1)[0].tanh() for conv in self.convs], dim=-1)
        g = self.gate(pooled).sigmoid()
        return (g * self.plain(pooled).relu() + (1 - g) * pooled).reshape(*shape[:-1], -1)


@case("chars.0", "chars.1", "chars.2")
def characters_of_words():
    return (
        CharactersOfWords(),
        (randint(0, 25, (2, 4, 6)),),
        (randint(0, 25, (1, 7, 5)),),
        (randint(0, 25, (3, 2, 9)),),
    )


class Forbidden(nn.Module):
    """Logits with a penalty for what was said, what would repeat a triple is forbidden, and the rest is filtered."""

    def __init__(self, vocabulary: int = 12, penalty: float = 1.3, p: float = 0.9) -> None:
        super().__init__()
        self.emb, self.penalty, self.p = nn.Embedding(vocabulary, vocabulary), penalty, p

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.emb(ids[:, -1])
        said = torch.gather(logits, 1, ids)
        said = torch.where(said < 0, said * self.penalty, said / self.penalty)
        logits = logits.scatter(1, ids, said)
        _b, t = ids.shape
        for i in range(t - 2):
            same = (ids[:, i] == ids[:, -2]) & (ids[:, i + 1] == ids[:, -1])
            banned = F.one_hot(ids[:, i + 2], logits.shape[1]).bool() & same[:, None]
            logits = logits.masked_fill(banned, float("-inf"))
        ordered, at = torch.sort(logits, descending=True)
        beyond = ordered.softmax(-1).cumsum(-1) > self.p
        beyond[..., 1:] = beyond[..., :-1].clone()
        beyond[..., 0] = 0
        logits[beyond.scatter(1, at, beyond)] = -float("inf")
        return logits, logits.argmax(-1)


@case("ids.0", "ids.1")
def repeated_triples_forbidden():
    return Forbidden(), (randint(0, 5, (2, 9)),), (randint(0, 5, (3, 14)),), (randint(0, 5, (1, 6)),)


class RowsPackedIntoOne(nn.Module):
    """Rows of different length come as one; attention stays within each, results are rows again."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        lengths = starts[1:] - starts[:-1]
        row = torch.repeat_interleave(torch.arange(lengths.numel()), lengths)
        q, k, v = self.qkv(tokens).chunk(3, -1)
        mask = row[:, None] == row[None]
        position = torch.arange(tokens.shape[0]) - starts[row]
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask[None])[0]
        y = self.out(y) + position[:, None] * 0.01
        sums = torch.segment_reduce(y, "sum", lengths=lengths, axis=0)
        return y, sums / lengths[:, None]


@case("tokens.0", "starts.0")
def rows_packed_into_one():
    return (
        RowsPackedIntoOne(),
        (randn(9, 6), torch.tensor([0, 4, 9])),
        (randn(7, 6), torch.tensor([0, 2, 3, 7])),
        (randn(5, 6), torch.tensor([0, 5])),
    )


class ListOfRows(nn.Module):
    """A list of sequences of different length is padded and encoded; each gets its own result."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.proj = nn.Linear(width, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, rows: list[Tensor]) -> dict[str, Any]:
        lengths = torch.tensor([len(row) for row in rows])
        x = self.proj(pad_sequence(rows, batch_first=True))
        mask = torch.arange(x.shape[1])[None] >= lengths[:, None]
        y = self.layer(x, src_key_padding_mask=mask)
        return {"rows": [y[i, :n] for i, n in enumerate(lengths.tolist())], "lengths": lengths}


@case("rows.0.0", "rows.1.0")
def list_of_rows():
    return (
        ListOfRows(),
        ([randn(4, 6), randn(7, 6), randn(2, 6)],),
        ([randn(9, 6), randn(3, 6), randn(5, 6)],),
        ([randn(2, 6), randn(2, 6), randn(11, 6)],),
    )


class ByDifficulty(nn.Module):
    """Rows are sorted by length for the recurrent net, and put back."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.gru = nn.Embedding(15, 5), nn.GRU(5, 4, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        lengths, order = lengths.sort(descending=True)
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(ids[order]), lengths, batch_first=True)
        y, h = self.gru(packed)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        back = order.argsort()
        backwards = ids.flip(1)
        return y[back], h[-1][back] + self.emb(backwards[:, 0])[:, :4]


@case("ids.0", "ids.1")
def rows_sorted_by_length():
    return (
        ByDifficulty(),
        (randint(0, 15, (3, 7)), torch.tensor([4, 7, 2])),
        (randint(0, 15, (2, 5)), torch.tensor([3, 5])),
        (randint(0, 15, (4, 9)), torch.tensor([9, 1, 6, 6])),
    )
