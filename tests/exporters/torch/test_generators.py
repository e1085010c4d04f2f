"""Generators in ``forward``: what they yield is followed at other lengths, where a list can stand for them."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest
import torch

import entrepot as ep
from entrepot.exporters.torch.rewriting.generators import collected
from tests.exporters.torch.control_flow import Module, x
from tests.exporters.torch.test_control_flow import results, tensors


class InChunks(Module):
    """Pieces of three rows, the last of which may be shorter."""

    def chunks(self, x, size):
        for start in range(0, x.shape[1], size):
            yield x[:, start : start + size]

    def forward(self, x):
        return torch.cat([self.a(chunk) + chunk.shape[1] for chunk in self.chunks(x, 3)], 1)


class InPairs(Module):
    """Rows with their numbers, in two kinds of order, until one is reached."""

    def pairs(self, x):
        if x.dim() != 3:
            return
        yield from ((0, row) for row in x.unbind(1))
        for place, row in enumerate(x.unbind(1)):
            yield place, row * 2

    def forward(self, x):
        h = x[:, 0]
        for place, row in self.pairs(x):
            h = torch.tanh(h + self.a(row) * place)
        return h


@pytest.mark.parametrize("kind", [InChunks, InPairs])
def test_generators_are_followed_at_other_lengths(kind):
    module = kind().eval()
    model = ep.export(module, x(2, 7, 4))
    for given in (x(2, 7, 4), x(3, 9, 4), x(1, 2, 4)):
        with torch.no_grad():
            expected = tensors(module(given.clone()))
        for mine, theirs in zip(results(model, given), expected, strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=2e-4, atol=2e-5)


def rows(x):
    for row in x:
        if row is None:
            return
        yield row


def endless(x):
    while True:
        yield x


def numbered(x):
    for place in itertools.count():  # noqa: F821 - never run
        yield place + 1


def answered(x):
    answer = yield x
    yield answer


def with_result(x):
    yield x
    return 3


@pytest.mark.parametrize(
    ("function", "taken"), [(rows, True), (endless, False), (numbered, False), (answered, False), (with_result, False)]
)
def test_what_a_list_cannot_stand_for_is_left_alone(function, taken):
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert collected(tree) is taken
    if taken:
        space = {}
        exec(compile(ast.Module([tree], []), "<test>", "exec"), space)
        assert space["rows"]([1, 2, None, 3]) == [1, 2]
