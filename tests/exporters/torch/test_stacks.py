"""Lists that are used as stacks: what is put there, and how much is taken, follows the data."""

from __future__ import annotations

import numpy as np
import torch

import entrepot as ep
from tests.exporters.torch.control_flow import Module


class Reduced(Module):
    """A parser that shifts words or joins the last two, by what they are."""

    def forward(self, words):
        stack, at, count = [], 0, words.shape[0]
        while at < count or len(stack) > 1:
            if at >= count:
                joins = 1
            elif len(stack) < 2:
                joins = 0
            else:
                joins = int(stack[-1].sum() > stack[-2].sum())
            if joins == 0:
                stack.append(words[at])
                at += 1
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(torch.tanh(left * 0.5 + right))
        return stack[0]


class Told(Module):
    """The same as it is told."""

    def forward(self, words, steps):
        stack, at = [], 0
        for step in steps.tolist():
            if step == 0:
                stack.append(words[at])
                at += 1
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(torch.tanh(left * 0.5 + right))
        return stack[-1]


def compared(module, sample, *others):
    model = ep.export(module, sample)
    assert isinstance(model.inputs[0].shape[0], str)
    session = ep.Session(model, providers=["onnxruntime"])
    for call in (sample, *others):
        feeds = {spec.name: each.numpy() for spec, each in zip(model.inputs, call, strict=True)}
        (found,) = session.run(feeds).values()
        np.testing.assert_allclose(found, module(*call).numpy(), rtol=1e-5, atol=1e-6)


def test_words_decide_what_a_parser_does():
    compared(Reduced(), *((torch.randn(size, 3),) for size in (4, 7, 1, 2, 12)))


def test_a_parser_is_told_what_to_do():
    calls = [([0, 0, 1, 0, 1], 3), ([0, 0, 0, 1, 1], 3), ([0, 0, 0, 0, 1], 6)]
    compared(Told(), *((torch.randn(words, 3), torch.tensor(steps)) for steps, words in calls))
