import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

import entrepot as ep
from entrepot.exporters.torch.capture import blame, dims
from entrepot.exporters.torch.sources.module import ModuleSource


def shapes(model: ep.Model) -> dict[str, tuple]:
    return {spec.name: spec.shape for spec in model.inputs}


class Branch(nn.Module):
    def forward(self, x):
        if x.shape[0] > 4:
            return x * 2
        return x


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 4)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return state


class Causal(nn.Module):
    """Attention whose mask is made of the length, with positions from a table of nine."""

    def __init__(self):
        super().__init__()
        self.ids = nn.Embedding(20, 8)
        self.positions = nn.Embedding(9, 8)

    def forward(self, ids, mask=None):
        length = ids.shape[1]
        x = self.ids(ids) + self.positions(torch.arange(length))
        allowed = torch.tril(torch.ones(length, length, dtype=torch.bool))
        if mask is not None:
            allowed = allowed & mask[:, None, :]
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=allowed)


def test_a_length_from_one_to_the_end_of_a_table_is_dynamic():
    sample = {"ids": torch.randint(20, (1, 9)), "mask": torch.ones(1, 9, dtype=torch.bool)}
    model = ep.export(Causal(), sample)
    assert shapes(model) == {"ids": ("batch", "sequence"), "mask": ("batch", "sequence")}
    labels = {run.label: run.verdict for run in model.report.runs}
    assert labels["sequence=1"] == "agrees"
    assert labels["sequence=10"] == "refused"


def test_an_axis_on_which_forward_branches_varies_and_the_notes_say_how():
    model = ep.export(Branch(), torch.randn(3, 2))
    assert shapes(model) == {"x": ("batch", "x_dim1")}
    assert "captured with its branches and loops rewritten, since as it is: fixes x.0" in model.notes


def test_a_loop_over_an_axis_that_one_way_fixes_is_followed_by_another():
    lines: list[str] = []
    model = ep.export(Steps(), torch.randn(2, 5, 4), progress=lines.append)
    assert shapes(model) == {"x": ("batch", "x_dim1", 4)}
    assert any(line.startswith("axis x.1 is fixed") for line in lines)
    assert "trying another way: with its branches and loops rewritten" in lines


class Bits(nn.Module):
    """A size that becomes a text, which no way follows."""

    def forward(self, x):
        return x * len(f"{x.shape[0]:b}")


def test_a_way_that_gains_nothing_is_not_translated_and_what_is_known_of_a_capture_is_not_found_out_again():
    lines: list[str] = []
    model = ep.export(Bits(), torch.randn(5, 4), progress=lines.append)
    assert shapes(model) == {"x": (5, "x_dim1")}
    assert any("branches and loops rewritten: fixes x.0; in parts: " in note for note in model.notes)
    assert lines.count("capturing the module") == 2  # it was put off before it ended, and is taken up again
    assert not any("larger sizes" in line for line in lines)  # they become no text either
    assert lines.count("translating to ONNX") == 1


class Five(nn.Module):
    """Another path at one size: a capture at this size holds for it alone."""

    def forward(self, x):
        return x * 2 if x.shape[1] == 5 else x + 1


def test_a_capture_that_made_a_number_of_a_size_is_taken_for_the_other_axes(monkeypatch):
    captures, export = [], torch.export.export
    monkeypatch.setattr(
        torch.export, "export", lambda *args, **kwargs: captures.append(args) or export(*args, **kwargs)
    )
    monkeypatch.setattr(ModuleSource, "ways", ("as it is",))
    made = {}
    ep.export(Five(), torch.randn(2, 5), progress=lambda line: made.setdefault(line, len(captures)))
    assert made["translating to ONNX"] == 1
    assert any(line.startswith("axis x.1 is fixed: the capture fixed it at test_dynamic.py") for line in made)


def test_a_required_axis_that_one_way_refuses_is_followed_by_another():
    model = ep.export(Steps(), torch.randn(2, 5, 4), dynamic={"x": {1: "time"}})
    assert shapes(model) == {"x": (2, "time", 4)}


class Ones(nn.Module):
    def forward(self, x):
        return x * format(int(x.shape[1]), "b").count("1")


def test_a_required_axis_that_every_way_fixes_is_refused_with_the_line():
    with pytest.raises(ep.ConversionError, match=r"axis 1 of 'x' cannot be dynamic as 'time'.*count\("):
        ep.export(Ones(), torch.randn(2, 5), dynamic={"x": {1: "time"}})


def test_a_required_axis_that_the_module_refuses_is_refused_with_the_line():
    with pytest.raises(
        ep.ConversionError, match=r"the module itself refuses any size other than 4 at test_dynamic\.py:\d+"
    ):
        ep.export(Steps(), torch.randn(2, 5, 4), dynamic={"x": {2: "features"}})


def test_required_axes_are_dynamic_and_no_others():
    model = ep.export(Causal(), torch.randint(20, (1, 5)), dynamic={"ids": {-1: "length"}})
    assert shapes(model) == {"ids": (1, "length")}


def test_axes_given_one_name_are_linked():
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    sample = (torch.randn(1, 3), torch.randn(1, 3))
    model = ep.export(Add(), sample, dynamic={"x": {0: "n"}, "y": {0: "n"}})
    assert shapes(model) == {"x": ("n", 3), "y": ("n", 3)}
    model = ep.export(Add(), (torch.randn(2, 3), torch.randn(2, 3)), dynamic={"x": {0: "n"}, "y": {0: "m"}})
    assert shapes(model) == {"x": ("n", 3), "y": ("n", 3)}
    assert "y.0 is not 'm', but has to be 'n'" in model.notes


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ({"y": {0: "n"}}, "dynamic names an input 'y'.*inputs are: input"),
        ({"input": {2: "n"}}, "dynamic names axis 2, but the rank is 2"),
        ({"input": {0: "two words"}}, "'two words' cannot name an axis"),
        ({"input": {0: "n", 1: "n"}}, "'n' names axes of different sizes"),
    ],
)
def test_axes_that_there_are_not_are_refused(dynamic, message):
    with pytest.raises(ep.InputError, match=message):
        ep.export(nn.ReLU(), torch.randn(2, 3), dynamic=dynamic)


def test_nothing_is_dynamic_unless_wanted():
    assert shapes(ep.export(nn.ReLU(), torch.randn(2, 3), dynamic=False)) == {"input": (2, 3)}


@pytest.mark.parametrize("axes", [None, {0: None}, {0: "batch"}])
def test_an_input_that_there_is_not_is_refused_whatever_is_said_of_it(axes):
    with pytest.raises(ep.InputError, match="dynamic names an input 'x'"):
        ep.export(nn.Linear(4, 2), torch.randn(3, 4), dynamic={"x": axes})


def test_an_axis_of_size_one_that_the_capture_fixes_has_that_size_and_leaves_the_others_dynamic():
    """The capture tries it at 3, and what it fixes there is not what the sample has."""
    assert shapes(ep.export(Ones(), torch.randn(2, 1))) == {"x": ("batch", 1)}


def test_a_branch_on_a_size_that_is_returned_as_a_number_is_followed(monkeypatch):
    monkeypatch.setattr(ModuleSource, "ways", ("in parts",))

    class Counted(nn.Module):
        def forward(self, x):
            return x.cumsum(1) if x.shape[1] > 9 else x * 2, x.shape[1]

    session = ep.Session(ep.export(Counted(), torch.randn(2, 7)))
    for size in (3, 9, 10, 14):
        x = np.random.default_rng(0).standard_normal((4, size)).astype(np.float32)
        y, count = session.run([x]).values()
        np.testing.assert_allclose(y, x.cumsum(1) if size > 9 else x * 2, rtol=1e-5, atol=1e-5)
        assert count == size


class Patches(nn.Module):
    def forward(self, x):
        height, width = x.shape[-2:]
        if height % 4 or width % 4:
            x = nn.functional.pad(x, (0, -width % 4, 0, -height % 4))
        return nn.functional.avg_pool2d(x, 4)


def test_a_capture_divides_evenly_where_the_sample_does(monkeypatch):
    seen = []

    def capture(flat, tensors, axes, *watch):
        seen.append(tuple(tensors[0].shape))
        return blame.export_flat(flat, tensors, axes, *watch)

    monkeypatch.setattr(dims, "export_flat", capture)
    model = ep.export(Patches().eval(), torch.randn(2, 3, 8, 8), progress=False)
    assert seen[0] == (2, 3, 8, 16)
    x = torch.randn(1, 3, 13, 10)
    y = ep.Session(model).run({"x": x.numpy()})["output"]
    np.testing.assert_allclose(y, Patches()(x).numpy(), rtol=1e-5, atol=1e-6)


class Shifted(nn.Module):
    """Columns from a little to the right; the places in a single column are something divided by nothing."""

    def forward(self, x):
        b, _, h, w = x.shape
        across = ((torch.arange(w) + 0.25) * 2 / (w - 1) - 1).expand(b, h, w)
        return F.grid_sample(x, torch.stack([across, torch.zeros_like(across)], -1), align_corners=True)


def test_sizes_at_which_a_module_computes_no_number_are_left_out_at_once():
    lines: list[str] = []
    model = ep.export(Shifted(), torch.randn(2, 3, 4, 5), progress=lines.append)
    assert all(isinstance(size, str) for size in shapes(model)["x"])
    assert any("x.3 is at least 2: the source itself computes nothing but NaN" in note for note in model.notes)
    assert not any(line.startswith("trying another way") for line in lines)


class Masked(nn.Module):
    """A mask that is not looked at where it does not fit, as models may do that know whether they are captured."""

    def forward(self, x, mask):
        if not torch.compiler.is_exporting() and mask.shape[1] != x.shape[1]:
            return x
        return x * mask[:, torch.arange(x.shape[1])]


def test_axes_that_a_program_takes_only_together_are_bound_before_it_is_translated():
    lines: list[str] = []
    sample = {"x": torch.randn(2, 5), "mask": torch.randint(0, 2, (2, 5)).float()}
    model = ep.export(Masked(), sample, progress=lines.append)
    assert shapes(model)["x"][1] == shapes(model)["mask"][1]
    assert lines.count("translating to ONNX") == 1


class Windowed(nn.Module):
    """NumPy computes with one of the sizes by what torch has no counterpart of, which no capture can follow."""

    def forward(self, x):
        return torch.from_numpy(np.unwrap(np.arange(x.shape[0])).astype("float32"))[:, None] * x


def test_one_axis_that_no_capture_follows_does_not_fix_others():
    model = ep.export(Windowed(), torch.randn(4, 3))
    assert model.inputs[0].shape == (4, "x_dim1")


def test_all_axes_are_refused_where_a_capture_fails_with_one():
    with pytest.raises(ep.ConversionError, match=r"not every axis varies.*x\.0: the capture fails with it dynamic"):
        ep.export(Windowed(), torch.randn(4, 3), dynamic="all")
