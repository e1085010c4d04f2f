"""``dynamic_shapes`` means here what it means to torch.export, which is asked for the expected axes."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.export import Dim, ShapesCollection

import entrepot as ep


class Sum(nn.Module):
    """Takes tensors in every way that they can be given."""

    def forward(self, x, pair, *rest, scale=2.0, extra=None):
        y = x + pair["a"] + pair["b"][0]
        for each in rest:
            y = y + each
        return y * scale if extra is None else y * extra


def t(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


SAMPLE = ep.Sample((t(4, 6), {"a": t(4, 6), "b": [t(4, 6)]}, t(4, 6)), {"extra": t(4, 6)})
NAMES = ["x", "pair.a", "pair.b.0", "rest.0", "extra"]
B = Dim("b")
PAIR = {"a": {0: B}, "b": [{0: B}]}

SHAPES = {
    "by name": {"x": {0: B}, "pair": PAIR, "rest": ({0: B},), "extra": {0: B}},
    "rows": {
        "x": (B, None),
        "pair": {"a": [B, None], "b": [(B, Dim.STATIC)]},
        "rest": ((B, 6),),
        "extra": (B, None),
    },
    "auto": {
        "x": {0: Dim.AUTO},
        "pair": {"a": {0: Dim.AUTO}, "b": [{0: Dim.AUTO}]},
        "rest": ({0: Dim.AUTO},),
        "extra": {0: Dim.AUTO},
    },
    "mixed": {
        "x": {0: B},
        "pair": {"a": {0: Dim.AUTO}, "b": [{0: Dim.AUTO}]},
        "rest": ({0: Dim.DYNAMIC},),
        "extra": {0: Dim.AUTO},
    },
    "nothing": {"x": None, "pair": {"a": None, "b": [None]}, "rest": (None,), "extra": None},
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_axes_that_vary_are_those_that_torch_export_lets_vary(name):
    shapes = SHAPES[name]
    model = ep.export(Sum(), SAMPLE, dynamic_shapes=shapes)
    varying = {
        (spec.name, axis) for spec in model.inputs for axis, dim in enumerate(spec.shape) if isinstance(dim, str)
    }
    assert [spec.name for spec in model.inputs] == NAMES
    if name != "mixed":  # which torch.export does not take for axes that must be equal
        program = torch.export.export(Sum().eval(), SAMPLE.args, SAMPLE.kwargs, dynamic_shapes=shapes)
        values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
        assert varying == {
            (given, axis)
            for given, value in zip(NAMES, values, strict=True)
            for axis, size in enumerate(value.shape)
            if isinstance(size, torch.SymInt)
        }
    else:
        assert varying == {(given, 0) for given in NAMES}
    if "b" in str(shapes.get("x")):
        assert {spec.shape[0] for spec in model.inputs} == {"b"}
    assert model.report.ok


@pytest.mark.parametrize(
    "shapes", [({0: "n"}, None), [("n", None), None], {"a": {0: "n"}, "b": None}, {"a": {-2: Dim("n")}}]
)
def test_positions_and_names_and_words_mean_the_same(shapes):
    class Outer(nn.Module):
        def forward(self, a, b):
            return a @ b

    model = ep.export(Outer(), (t(3, 4), t(4, 2)), dynamic_shapes=shapes)
    assert [spec.shape for spec in model.inputs] == [("n", 4), (4, 2)]


def test_a_range_is_a_condition_and_beyond_it_nothing_is_asked():
    class Table(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] <= 9 else x

    model = ep.export(Table(), t(5, 3), dynamic_shapes={"x": {0: Dim("n", min=3, max=9)}})
    assert model.conditions == ("n >= 3", "n <= 9")
    assert {run.label for run in model.report.refusals} == {"n=0"}
    assert {"n=3", "n=6", "n=9"} <= {run.label for run in model.report.runs if run.ok}
    assert not any(run.label.startswith("n=10") for run in model.report.runs)
    with pytest.raises(ep.InputError, match="n <= 9"):
        ep.Session(model).run(t(10, 3))


def test_a_dataclass_of_tensors_is_spelled_as_one():
    @dataclass
    class Pair:
        first: object
        second: object

    class Take(nn.Module):
        def forward(self, pair):
            return pair.first * 2, pair.second * 2

    model = ep.export(Take(), (Pair(t(3, 2), t(3, 2)),), dynamic_shapes=(Pair({0: "n"}, None),))
    assert [spec.shape for spec in model.inputs] == [("n", 2), (3, 2)]


def test_a_shapes_collection_is_taken():
    x, y = t(3, 4), t(4, 2)
    shapes = ShapesCollection()
    shapes[x] = {0: Dim("rows")}

    class Product(nn.Module):
        def forward(self, a, b):
            return a @ b

    assert ep.export(Product(), (x, y), dynamic_shapes=shapes).inputs[0].shape == ("rows", 4)


def test_what_must_vary_and_cannot_is_an_error_and_what_may_is_fixed_with_a_note():
    class Ones(nn.Module):
        def forward(self, x):
            return x * format(int(x.shape[1]), "b").count("1")

    for dim in Dim("time"), Dim.DYNAMIC, "time":
        with pytest.raises(ep.ConversionError, match=r"axis 1 of 'x' cannot be dynamic"):
            ep.export(Ones(), t(2, 5, 4), dynamic_shapes={"x": {1: dim}})
    model = ep.export(Ones(), t(2, 5, 4), dynamic_shapes={"x": {0: Dim("b"), 1: Dim.AUTO}})
    assert model.inputs[0].shape == ("b", 5, 4)
    assert any("x.1 = 5: the capture fixed it" in note for note in model.notes)
    assert any("x.2 = 4: it was not asked to vary" in note for note in model.notes)
    with pytest.raises(ep.ConversionError, match="the module itself refuses any size other than 3"):
        ep.export(nn.Linear(3, 2), t(2, 3), dynamic_shapes={"input": {1: Dim.DYNAMIC}})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": {0: B}}, r"names \['y'\].*arguments: input"),
        (({0: B}, None), "has 2 entries for 1 arguments"),
        ({"input": {2: B}}, "for a tensor of rank 2"),
        ({"input": (B,)}, "for a tensor of rank 2"),
        ({"input": {0: 2 * Dim("half")}}, r"2\*half is derived from another dimension"),
        ({"input": {0: 7}}, "says 7, the sample has 4"),
        ({"input": {0: Dim("n", min=5)}}, "asks for 5 to any, the sample has 4"),
        ({"input": {1: Dim.AUTO(max=3)}}, "asks for 0 to 3, the sample has 6"),
        ({"input": {0: 1.5}}, r"has 1\.5 for an axis"),
        ({"input": {"0": B}}, "for a tensor of rank 2"),
        (7, "dynamic_shapes is a int"),
        ("auto", "dynamic_shapes is a str"),
    ],
)
def test_what_does_not_fit_is_refused_in_plain_words(shapes, message):
    with pytest.raises(ep.InputError, match=message):
        ep.export(nn.ReLU(), t(4, 6), dynamic_shapes=shapes)


def test_two_ways_at_once_and_other_sources_are_refused():
    with pytest.raises(ep.InputError, match="two ways to say the same thing"):
        ep.export(nn.ReLU(), t(4, 6), dynamic=False, dynamic_shapes={"input": {0: B}})
    program = torch.export.export(nn.ReLU(), (t(4, 6),))
    with pytest.raises(ep.InputError, match="has the dynamic axes it was captured with"):
        ep.export(program, dynamic_shapes={"input": {0: B}})
