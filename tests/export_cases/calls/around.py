"""What people put around a model: adapters, prompts of weights, hooks, a second model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn, randn

from tests.export_cases.calls import case
from tests.export_cases.calls.tiny import SIZES, Around, bert, llama, mask, words


class Adapted(nn.Module):
    """A layer with adapters beside it, of which some are active."""

    def __init__(self, layer: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.layer, self.active = layer, ["default", "absent"]
        self.down = nn.ModuleDict({"default": nn.Linear(layer.in_features, rank, bias=False)})
        self.up = nn.ModuleDict({"default": nn.Linear(rank, layer.out_features, bias=False)})

    def forward(self, x: Tensor) -> Tensor:
        found = self.layer(x)
        for name in self.active:
            if name in self.down:
                found = found + self.up[name](self.down[name](x)) * 0.5
        return found


@case
def adapters():
    model = llama()
    for layer in model.model.layers:
        layer.self_attn.q_proj = Adapted(layer.self_attn.q_proj)
        layer.self_attn.v_proj = Adapted(layer.self_attn.v_proj)
    return model, *({"input_ids": words(*size), "attention_mask": mask(*size)} for size in SIZES)


class Prompted(Around):
    """Embeddings that are weights come before those of the tokens."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.prompt = nn.Parameter(randn(4, 16))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.model.get_input_embeddings()(input_ids)
        x = torch.cat([self.prompt[None].expand(x.shape[0], -1, -1), x], 1)
        seen = torch.cat([attention_mask.new_ones(x.shape[0], 4), attention_mask], 1)
        return self.model(inputs_embeds=x, attention_mask=seen, use_cache=False).logits[:, 4:]


@case
def a_prompt_of_weights():
    return Prompted(llama()), *((words(*size), mask(*size)) for size in SIZES)


class Tapped(Around):
    """What layers return, kept by hooks."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.kept: dict[int, Any] = {}
        for at, layer in enumerate(model.encoder.layer):
            layer.register_forward_hook(lambda _layer, _args, found, at=at: self.kept.__setitem__(at, found))

    def forward(self, input_ids: Tensor) -> list[Tensor]:
        self.model(input_ids)
        return [found[0] if isinstance(found, tuple) else found for _, found in sorted(self.kept.items())]


@case
def hooks_that_keep_layers():
    return Tapped(bert()), *((words(*size),) for size in SIZES)


class TwoModels(nn.Module):
    """Questions and documents, each by a model of its own, and the documents that fit best."""

    def __init__(self) -> None:
        super().__init__()
        self.question, self.document = bert(), bert()

    def forward(self, question: dict[str, Tensor], documents: dict[str, Tensor]) -> Any:
        scores = self.question(**question).pooler_output @ self.document(**documents).pooler_output.T
        return torch.topk(scores, k=min(2, scores.shape[1]))


@case
def two_models():
    def call(rows: int, tokens: int) -> dict[str, Tensor]:
        return {"input_ids": words(rows, tokens), "attention_mask": mask(rows, tokens)}

    calls = (((2, 7), (3, 5)), ((1, 4), (5, 9)), ((3, 6), (2, 8)))
    return TwoModels(), *((call(*first), call(*second)) for first, second in calls)
