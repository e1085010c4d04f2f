"""What people make of scores: the next token, spans, tags, samples, and generation in the graph."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn, randn

from tests.export_cases.calls import case
from tests.export_cases.calls.tiny import SIZES, Around, bert, gpt2, llama, mask, words


class NextToken(Around):
    """Scores of the last token that a mask leaves, and the best of them."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        last = attention_mask.sum(-1) - 1
        best, places = logits[torch.arange(logits.shape[0]), last].softmax(-1).topk(5)
        return {"best": best, "places": places}


@case
def the_next_token():
    return NextToken(llama()), *((words(*size), mask(*size)) for size in SIZES)


class Classifier(transformers.LlamaForSequenceClassification):
    """It looks for the last token that is no padding."""


@case
def classes_of_padded_rows():
    model = llama(Classifier, pad_token_id=0, num_labels=3)
    return model, *({"input_ids": words(*size) * mask(*size)} for size in SIZES)


class Pooled(Around):
    """The last token on whichever side the padding is not, as embedding models document it."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        if attention_mask[:, -1].sum() == attention_mask.shape[0]:
            return found[:, -1]
        return found[torch.arange(found.shape[0]), attention_mask.sum(1) - 1]


@case
def the_last_token_on_either_side():
    model = llama(transformers.LlamaModel)
    return Pooled(model), (words(2, 7), mask(2, 7)), (words(3, 5), mask(3, 5, left=True)), (words(1, 11), mask(1, 11))


class Tagged(Around):
    """The best path of tags, by Viterbi's algorithm."""

    def __init__(self, model: Any, tags: int = 4) -> None:
        super().__init__(model)
        self.head = nn.Linear(16, tags)
        self.first, self.then = nn.Parameter(randn(tags)), nn.Parameter(randn(tags, tags))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        scores, seen = self.head(self.model(input_ids, attention_mask)[0]), attention_mask.bool()
        best, back = self.first + scores[:, 0], []
        for at in range(1, scores.shape[1]):
            found, places = (best[:, :, None] + self.then + scores[:, at, None]).max(1)
            best = torch.where(seen[:, at, None], found, best)
            back.append(torch.where(seen[:, at, None], places, torch.arange(places.shape[1])))
        path = [best.argmax(-1)]
        for places in reversed(back):
            path.append(places.gather(1, path[-1][:, None]).squeeze(1))
        return torch.stack(path[::-1], 1)


@case
def the_best_path_of_tags():
    return Tagged(bert()), *((words(*size), mask(*size)) for size in SIZES)


class Filtered(Around):
    """Probabilities of the likeliest tokens, others being out of the question."""

    def forward(self, input_ids: Tensor, top_p: Tensor) -> Tensor:
        logits = self.model(input_ids, use_cache=False).logits[:, -1]
        ordered, places = logits.sort(descending=True)
        likely = ordered.softmax(-1)
        ordered = ordered.masked_fill(likely.cumsum(-1) - likely > top_p, float("-inf"))
        return torch.full_like(logits, float("-inf")).scatter(1, places, ordered).softmax(-1)


@case
def the_likeliest_tokens():
    return Filtered(llama()), *((words(*size), torch.tensor(p)) for size, p in zip(SIZES, (0.9, 0.5, 0.3), strict=True))


class Verified(Around):
    """How many tokens of a draft are those of the model, and the one that follows."""

    def forward(self, input_ids: Tensor, draft: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model(torch.cat([input_ids, draft], 1), use_cache=False).logits
        best = logits[:, -draft.shape[1] - 1 :].argmax(-1)
        right = (best[:, :-1] == draft).long().cumprod(-1).sum(-1)
        return right, best.gather(1, right[:, None])


@case
def a_draft_that_is_verified():
    return Verified(llama()), *((words(b, t), words(b, n)) for b, t, n in ((2, 5, 3), (3, 4, 2), (1, 7, 4)))


class Greedy(Around):
    """Up to four tokens more, until every row has ended."""

    def forward(self, input_ids: Tensor) -> Tensor:
        for _ in range(4):
            token = self.model(input_ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, token], -1)
            if (token == 2).all():
                break
        return input_ids


@case
def greedy_until_all_rows_end():
    return Greedy(gpt2()), *((words(*size),) for size in SIZES)
