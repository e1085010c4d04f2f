from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def lstm_tagger(*, vocabulary: int = 200, width: int = 32, layers: int = 2, labels: int = 7, length: int = 12) -> Built:
    """A label for every token, from a stacked LSTM."""
    return _built(LSTMTagger(vocabulary, width, layers, labels), vocabulary, length)


def gru_classifier(*, vocabulary: int = 200, width: int = 24, classes: int = 4, length: int = 12) -> Built:
    """One class per text, from the last states of a bidirectional GRU."""
    return _built(GRUClassifier(vocabulary, width, classes), vocabulary, length)


def _built(module: nn.Module, vocabulary: int, length: int) -> Built:
    samples = (
        (torch.randint(1, vocabulary, (1, length)),),
        (torch.randint(1, vocabulary, (4, length + 5)),),
    )
    return Built(module, samples, frozenset({"tokens.0", "tokens.1"}))


class LSTMTagger(nn.Module):
    """Embedding, LSTM, linear, log-softmax."""

    def __init__(self, vocabulary: int, width: int, layers: int, labels: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=layers, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, labels)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.embedding(tokens))
        return torch.log_softmax(self.head(hidden), dim=-1)


class GRUClassifier(nn.Module):
    """Embedding, bidirectional GRU, the two last states side by side, linear."""

    def __init__(self, vocabulary: int, width: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        _, last = self.gru(self.embedding(tokens))
        return self.head(torch.cat([last[-2], last[-1]], dim=-1))
