"""Sizes rounded to multiples: the file takes those that are none, and torch sees what divides them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import entrepot as ep
from entrepot.exporters.torch.capture.rounding import multiple, remainders_by_nothing
from entrepot.exporters.torch.upstream import size_functions
from tests.exporters.torch.test_pieces import check

L = sympy.Symbol("L", integer=True, positive=True)
Mod, PythonMod, Ceil, Floor, Trunc = (
    getattr(size_functions, name) for name in ("Mod", "PythonMod", "CeilToInt", "FloorToInt", "TruncToInt")
)
FORMULAS = [
    Mod(4 - Mod(L, 4), 4),
    PythonMod(-L, 6),
    PythonMod(3 - 2 * L, 5),
    L - Mod(L, 4),
    L + 8 - Mod(L, 8),
    2 * L - 2 * Mod(L, 3) + 1,
    Mod(L, 4) - L,
    Ceil(size_functions.IntTrueDiv(L, 3)),
    Trunc(size_functions.IntTrueDiv(L + 1, 2)),
    Trunc(size_functions.IntTrueDiv(L + 1, 2) + 3.0),
    Ceil(size_functions.IntTrueDiv(L - 8, 4)),
    Ceil(size_functions.IntTrueDiv(L - 8, 4) + 1.0),
    Ceil(size_functions.IntTrueDiv(L - 3, 1) + 1.0),
    Floor(size_functions.IntTrueDiv(L - 9, 5) - 2.0),
]


@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_the_multiple_is_the_same_number(formula):
    found = multiple(formula)
    assert not found.atoms(Mod, PythonMod)
    assert all(found.subs(L, size) == formula.subs(L, size) for size in range(1, 50))


Root = size_functions.OpaqueUnaryFn_sqrt
FloorDiv, ToFloat = size_functions.FloorDiv, size_functions.ToFloat


@pytest.mark.parametrize("inner", [L, FloorDiv(L, 16), (L + 1) * FloorDiv(L, 3)], ids=str)
def test_the_root_of_a_square_is_the_size(inner):
    assert multiple(Trunc(Root(ToFloat(inner**2)))) == inner
    assert multiple(Trunc(Root(inner**4))) == inner**2


@pytest.mark.parametrize("inner", [L, 2 * L**2, L**3, (L - 5) ** 2], ids=str)
def test_other_roots_stay(inner):
    assert multiple(Trunc(Root(ToFloat(inner)))) is None


@pytest.mark.parametrize("formula", [Mod(L, 4), PythonMod(L - 7, 4), 4 - Mod(L, 4), L + 2 * Mod(L, 4), L + 1], ids=str)
def test_what_is_no_multiple_stays(formula):
    assert multiple(formula) is None


Q = FloorDiv(L, 4)
DECIDED = [
    L - Q >= Q,
    Q <= L,
    L - 3 * Q > 0,
    L - 4 * Q < 4,
    FloorDiv(Q + L, 2) <= L,
    4 * Q > L,
    FloorDiv(FloorDiv(L, 2) + 5, 3) <= L + 1,
    FloorDiv(L + 3, 4) < 1,
]
OPEN = [Q >= 1, 2 * Q < L - 1, Q * FloorDiv(L, 2) >= 0, FloorDiv(L, sympy.Symbol("s", integer=True)) >= 0, L >= 4]


@pytest.mark.parametrize("relation", DECIDED, ids=str)
def test_an_order_of_quotients_is_seen_if_all_sizes_have_it(relation):
    found = multiple(relation)
    assert found in (sympy.true, sympy.false)
    assert all(relation.subs(L, size) == found for size in range(1, 50))


@pytest.mark.parametrize("relation", OPEN, ids=str)
def test_an_order_that_some_sizes_have_is_left_open(relation):
    assert multiple(relation) is None


class Padded(nn.Module):
    def __init__(self, missing):
        super().__init__()
        self.missing = missing

    def forward(self, x):
        batch, length, width = x.shape
        padded = nn.functional.pad(x, (0, 0, 0, self.missing(length)))
        pieces = padded.reshape(batch, -1, 4, width)
        return pieces.cumsum(1).reshape(batch, -1, width)[:, :length] + x


class Cut(nn.Module):
    def forward(self, x):
        batch, length, width = x.shape
        return x[:, : length - length % 4].reshape(batch, -1, 4, width).mean(2)


class Resized(nn.Module):
    """Only odd sizes are resized, and sizes are numbers of Python's once more."""

    def forward(self, x):
        size = int(math.ceil(x.shape[1] / 2) * 2)
        y = x
        if size != x.shape[1]:
            y = nn.functional.interpolate(x.transpose(1, 2), size, mode="nearest").transpose(1, 2)
        return y.reshape(x.shape[0], size // 2, 2, -1).amax(2)


class Contracted(nn.Module):
    """More than two factors: their order is chosen by sizes."""

    def forward(self, x):
        return torch.einsum("bid,bjd,bjc->bic", x, x, x)


class ByPowerOfTwo(nn.Module):
    """Padded to the next power of two, and folded."""

    def forward(self, x):
        length = x.shape[1]
        size = 1 << (length - 1).bit_length()
        folded = nn.functional.pad(x, (0, 0, 0, size - length)).reshape(x.shape[0], 2, size // 2, -1).amax(1)
        return folded * length.bit_length()


MODULES = {
    "to the next power of two": ByPowerOfTwo(),
    "to the next": Padded(lambda length: (4 - length % 4) % 4),
    "of a negative": Padded(lambda length: -length % 4),
    "rounded up": Padded(lambda length: math.ceil(length / 4) * 4 - length),
    "divided with a rest": Padded(lambda length: -divmod(length, 4)[1] % 4),
    "asked": Padded(lambda length: 0 if (length / 4).is_integer() else math.ceil(length / 4) * 4 - length),
    "cut": Cut(),
    "resized": Resized(),
    "contracted": Contracted(),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_length_is_taken(name, tmp_path):
    lengths = (5, 8, 21)
    check(MODULES[name], tmp_path, (torch.randn(2, 10, 3),), [(torch.randn(3, length, 3),) for length in lengths])


def test_windows_of_an_image_are_one_graph():
    class Windows(nn.Module):
        def forward(self, x):
            batch, height, width, channels = x.shape
            x = nn.functional.pad(x, (0, 0, 0, (4 - width % 4) % 4, 0, (4 - height % 4) % 4))
            x = x.view(batch, x.shape[1] // 4, 4, x.shape[2] // 4, 4, channels)
            return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels).softmax(1)

    model = ep.export(Windows(), torch.randn(2, 9, 6, 3), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape[:3])
    assert "If" not in {node.op_type for node in model.ir.graph}


def test_what_is_cut_off_a_padded_size_is_the_size():
    other = sympy.Symbol("other", integer=True)
    padded = 4 * size_functions.FloorDiv(L + 3, 4)
    assert multiple(size_functions.Min(L, padded)) == L
    assert multiple(size_functions.Min(L, padded, other)) == size_functions.Min(L, other)
    for less in (4 * size_functions.FloorDiv(L + 2, 4), 3 * size_functions.FloorDiv(L + 3, 4), other):
        assert multiple(size_functions.Min(L, less)) is None


def test_what_is_cut_off_a_quotient_that_was_padded_is_the_quotient():
    quotient, padded = size_functions.FloorDiv(L - 1, 4) + 1, 12 * size_functions.FloorDiv(L - 1, 48) + 12
    assert multiple(size_functions.Min(quotient, padded)) == quotient
    for less in (padded - 12, 12 * size_functions.FloorDiv(L, 48) + 12, 6 * size_functions.FloorDiv(L - 1, 48) + 6):
        assert multiple(size_functions.Min(quotient, less)) is None
    assert multiple(size_functions.Min(padded, 4 * L)) is None


class Cropped(nn.Module):
    """Where nothing was padded, what is cut off is the whole, and lies in its memory one element after the other."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 4)

    def forward(self, x):
        height, width = x.shape[1:3]
        x = nn.functional.pad(x, (0, 0, 0, -width % 7, 0, -height % 7))
        return self.proj(x).cumsum(1)[:, :height, :width].contiguous()


def test_a_copy_is_in_the_graph_where_a_size_decides_whether_it_is_needed():
    model = ep.export(Cropped().eval(), torch.randn(2, 16, 16, 3), progress=False)
    batch, height, width, _ = model.inputs[0].shape
    assert all(isinstance(size, str) for size in (batch, height, width))
    assert model.outputs[0].shape == (batch, height, width, 4)
    assert "captured" not in str(model)  # in parts, or otherwise than as it is


class CutWhereNeeded(nn.Module):
    """A size after a branch is the smaller of two, which torch writes with a function that programs may not call."""

    def forward(self, x):
        batch, length, width = x.shape
        if length % 3 != 0:
            x = x[:, : length - length % 3]
        return x.reshape(batch, length // 3, 3 * width)


def test_a_length_is_cut_on_one_branch(tmp_path):
    check(CutWhereNeeded(), tmp_path, (torch.randn(2, 10, 4),), [(torch.randn(3, 15, 4),), (torch.randn(1, 8, 4),)])


def test_a_remainder_by_a_size_that_is_nothing_in_the_sample_is_left_open():
    """As torch asks for it where it compares the strides of a tensor without elements."""
    sizes = ShapeEnv()
    empty, other = (
        sizes.create_symintnode(sympy.Symbol(name, integer=True, nonnegative=True), hint=hint)
        for name, hint in (("empty", 0), ("other", 5))
    )
    with pytest.raises(ZeroDivisionError):
        other % empty
    with remainders_by_nothing():
        remainder = other % empty
        with pytest.raises(ZeroDivisionError):
            other % (empty - empty)
    assert remainder.node.expr.free_symbols == {empty.node.expr, other.node.expr}
    assert isinstance(remainder == 0, torch.SymBool)


class Squares(nn.Module):
    """Asks of a root what torch (2.13) has no word for: the code that it writes is none."""

    def forward(self, x):
        return x * 2 if (x.shape[1] ** 0.5).is_integer() else x.sum(1, keepdim=True) + x


def test_a_question_without_a_word_fixes_its_axis(tmp_path):
    model = ep.export(Squares(), torch.randn(2, 9), progress=False)
    assert model.inputs[0].shape == ("batch", 9)


class Fused(nn.Module):
    """Tokens of a square picture made a map again, and maps of two levels joined, one of them resized if it differs."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 4, 4)
        self.smooth, self.halve = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 3, 2, 1)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        batch, count, width = tokens.shape
        side = int(count**0.5)
        fine = self.smooth(tokens.reshape(batch, side, side, width).permute(0, 3, 1, 2))
        coarse = nn.functional.interpolate(self.halve(fine), scale_factor=2.0, mode="bilinear")
        if coarse.shape != fine.shape:
            fine = nn.functional.interpolate(fine, size=(coarse.shape[2], coarse.shape[3]), mode="bilinear")
        return fine + coarse, torch.ones(2) if fine.size()[2:] == x.shape[2:] else torch.zeros(2)


def test_shapes_that_are_alike_at_some_sizes_only_are_compared_in_the_graph():
    module = Fused().eval()
    model = ep.export(module, torch.randn(2, 3, 16, 16), progress=False)
    assert model.inputs[0].shape == ("batch", 3, "height", "height")
    session = ep.Session(model, providers=["onnxruntime"])
    for side in (16, 12, 20, 33, 36):
        given = torch.randn(1, 3, side, side)
        with torch.no_grad():
            expected = module(given)
        for found, wanted in zip(session.run({"x": given.numpy()}).values(), expected, strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-5)
