"""Variables that matter only while a block runs are not carried from turn to turn, nor out of a branch."""

from __future__ import annotations

import ast
import textwrap

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import entrepot as ep
from entrepot.exporters.torch.rewriting.jumps import straighten
from entrepot.exporters.torch.rewriting.liveness import Passing, passing
from entrepot.exporters.torch.rewriting.scopes import Names
from tests.exporters.torch.control_flow import Module
from tests.exporters.torch.test_control_flow import tensors


def unread_after_blocks(source: str) -> list[Passing]:
    """What nothing reads after each block, in the order of the source."""
    function = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(function, ast.FunctionDef)
    straighten(function)
    made = passing(function, Names.of(function))
    return [made[node] for node in sorted(made, key=lambda node: node.lineno)]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param("for i in xs: y = i; out.append(y)", [{"i", "y"}], id="temporaries"),
        pytest.param("for i in xs: y = i\nreturn y", [{"i"}], id="read after the loop"),
        pytest.param("y = 0\nfor i in xs: y = y + i; out.append(y)", [{"i"}], id="read in the next turn"),
        pytest.param("for i in xs: out.append(y); y = i", [{"i"}], id="read before it is written"),
        pytest.param("for i in xs: y += i", [{"i"}], id="changed in place"),
        pytest.param("for y in y: out.append(y)", [set()], id="the sequence itself"),
        pytest.param("for y in xs: out.append(y)\nout = [y for y in out]\nreturn out", [{"y"}], id="a comprehension"),
        pytest.param("for y in xs: out.append(y)\nout = [y for z in out]\nreturn out", [set()], id="read in it"),
        pytest.param("for y in xs: out.append(lambda: y)", [set()], id="a function reads it at any time"),
        pytest.param("for y in xs: out.append(locals())", [set()], id="all variables at once"),
        pytest.param("if c: y = 1; out.append(y)", [{"y"}], id="a branch"),
        pytest.param("if c:\n    y = 1\nelse:\n    y = 2\nreturn y", [set()], id="read after the branch"),
        pytest.param("y = 0\nif c: y = y + 1; out.append(y)", [set()], id="read at its beginning"),
        pytest.param("y = 0\nif c:\n    y = 1; f(y)\nelse:\n    f(y)", [set()], id="in the other arm"),
        pytest.param("while c: y = f(); c = g(y)", [{"y"}], id="the condition is read in each turn"),
        pytest.param("for i in xs:\n    for j in xs:\n        y = j\n    out.append(y)", [{"i", "j"}, {"j"}], id="two"),
        pytest.param(
            "for i in xs:\n    for j in xs: out.append(y)\n    y = i", [{"i", "j"}, {"j"}], id="from turn to turn"
        ),
        pytest.param("try:\n    for y in xs: out.append(y)\nexcept E:\n    pass\nreturn y", [set()], id="in a try"),
        pytest.param("with c:\n    for y in xs: out.append(y)\n    y = 1\nreturn y", [set()], id="left in the middle"),
        pytest.param("with c:\n    for y in xs: out.append(y)\nreturn 1", [{"y"}], id="inside of with"),
        pytest.param("for i in xs:\n    if c: break\n    y = i", [{"i", "y"}, {"y"}], id="a jump"),
        pytest.param("for i in xs:\n    if c: continue\n    y = i\nreturn y", [{"i"}, set()], id="a jump, and then"),
    ],
)
def test_what_is_new_in_each_run_of_a_block(body, wanted):
    found = unread_after_blocks(f"def f(c, xs, out, y):\n{textwrap.indent(body, '    ')}")
    assert [set(block.new) for block in found] == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param("if c: y = f(y); out.append(y)", [{"y"}], id="read before it is written"),
        pytest.param("if c: y = f(y)\nreturn y", [set()], id="read after the branch"),
        pytest.param("for i in xs:\n    out.append(y)\n    if c: y = f(y)", [{"i"}, set()], id="in the next turn"),
        pytest.param("for i in xs:\n    y = i\n    if c: y = f(y); out.append(y)", [{"i", "y"}, {"y"}], id="in a loop"),
        pytest.param("if c: y = f(y)\ng = lambda: y", [set()], id="a function reads it"),
    ],
)
def test_what_a_branch_makes_of_a_variable_for_itself(body, wanted):
    found = unread_after_blocks(f"def f(c, xs, out, y):\n{textwrap.indent(body, '    ')}")
    assert [set(block.all) for block in found] == wanted


class Repeated(Module):
    """Frames held as long as they last: pieces of different lengths, filled up, by names that come up again."""

    def forward(self, x, times):
        made, lengths = [], []
        for row, counts in zip(x, times, strict=True):
            parts = []
            for at, frame in enumerate(row):
                parts.append(frame.expand(max(int(counts[at].item()), 0), -1))
            piece = torch.cat(parts)
            made.append(piece)
            lengths.append(piece.shape[0])
        longest = max(lengths)
        padded = [torch.nn.functional.pad(piece, (0, 0, 0, longest - piece.size(0))) for piece in made]
        return torch.stack(padded), torch.LongTensor(lengths)


class Written(Module):
    """Pieces written into a table by a loop that names them as the one before did."""

    def forward(self, x, times):
        pieces = []
        for row, counts in zip(x, times, strict=True):
            piece = row.repeat_interleave(counts, dim=0)
            pieces.append(piece)
        table = x.new_zeros(len(pieces), max(piece.shape[0] for piece in pieces), x.shape[-1])
        for at, piece in enumerate(pieces):
            table[at, : piece.shape[0]] = piece
        return table


class Last(Module):
    """The last of several pieces, whose length is known once the loop has ended."""

    def forward(self, x, times):
        pieces = []
        for row, counts in zip(x, times, strict=True):
            piece = row.repeat_interleave(counts, dim=0)
            pieces.append(piece * 2)
        return pad_sequence(pieces, batch_first=True), piece


class Begun(Module):
    """What the first turn begins and the others go on with, and no other line knows of."""

    def forward(self, x):
        made = []
        for t in range(x.shape[1]):
            if t == 0:
                state = torch.tanh(x[:, t])
            else:
                state = torch.tanh(x[:, t] + state)
            made.append(state)
        return torch.stack(made, 1)


class Alias(Module):
    """A list that a branch is given by another name."""

    def forward(self, x):
        lists = {"a": [x], "b": [x + 1]}
        for chosen in lists.values():
            if x.sum() > 0:
                chosen[0] = chosen[0] * 2
        return lists["a"][0], lists["b"][0]


class Spline(Module):
    """Numbers within bounds are bent, others kept: a branch goes on with the rows of those, by the same names."""

    def forward(self, x):
        inside, widths = (x >= -1) & (x <= 1), torch.stack([x, x + 1, x * 2], -1)
        made = x.clone()
        if torch.any(inside):
            within, widths = x[inside], widths[inside, :]

            def shares(sizes):
                return sizes.softmax(-1)

            widths = shares(widths)
            made[inside] = within + (widths * widths).sum(-1)
        return made


TIMES = torch.tensor([[1, 2, 0, 3], [2, 2, 1, 1]])
MORE = torch.tensor([[1, 2, 1, 3, 1], [2, 2, 1, 1, 0], [4, 0, 0, 1, 2]])


@pytest.mark.parametrize("kind", [Repeated, Written, Last])
def test_pieces_of_different_lengths(kind):
    compared(kind(), (torch.randn(2, 4, 3), TIMES), (torch.randn(3, 5, 3), MORE), (torch.randn(1, 4, 3), TIMES[1:]))


@pytest.mark.parametrize("kind", [Begun, Alias])
def test_what_a_block_leaves_is_there_where_it_is_read(kind):
    compared(kind(), (torch.randn(2, 4, 3),), (torch.rand(3, 7, 3),), (-torch.rand(3, 7, 3),))


def test_a_branch_makes_something_else_of_a_variable_for_itself():
    calls = torch.randn(3, 4), torch.randn(5, 2), torch.full((2, 3), 7.0), torch.zeros(1, 6)
    model = compared(Spline(), *((x,) for x in calls))
    assert "captured with its branches and loops rewritten" in str(model)


def compared(module, sample, *others):
    model = ep.export(module, sample)
    assert all(isinstance(size, str) for spec in model.inputs for size in spec.shape[:2])
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for call in (sample, *others):
        feeds = {spec.name: each.numpy() for spec, each in zip(model.inputs, call, strict=True)}
        for found, wanted in zip(session.run(None, feeds), tensors(module(*call)), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)
    return model
