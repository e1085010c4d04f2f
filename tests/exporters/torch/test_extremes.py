"""Sizes that a branch makes the larger of two, or the smaller: what is too short is padded, what is long is capped."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.capture.extremes import extreme_of_elements

NAN = float("nan")


class Filled(nn.Module):
    """As caches of convolutions are filled: what is too short is padded, and the last elements are kept."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 4, groups=8, padding=3)

    def forward(self, x):
        batch, length, _ = x.shape
        y = x.transpose(1, 2)
        if y.shape[-1] < 4:
            y = F.pad(y, (4 - y.shape[-1], 0))
        kept = y[..., -4:].clone()
        y = self.conv(y)[:, :, : y.shape[-1]][:, :, -length:]
        return y.transpose(1, 2).view(batch, length, -1, 4).flatten(2), kept


class Capped(nn.Module):
    """Takes as many columns as there are, but no more than six, in a tensor of its own."""

    def forward(self, x):
        made = torch.zeros(x.shape[0], 6)
        if x.shape[1] < 6:
            made = torch.zeros(x.shape[0], x.shape[1])
        return (made + x.sum(1, keepdim=True)).reshape(x.shape[0], -1), made.cumsum(1)


@pytest.mark.parametrize(("module", "rest"), [(Filled(), (8,)), (Capped(), ())], ids=lambda each: type(each).__name__)
def test_what_is_padded_or_capped_has_a_size_that_can_be_reasoned_about(module, rest):
    model = ep.export(module.eval(), torch.randn(2, 5, *rest))
    assert model.inputs[0].shape == ("batch", "x_dim1", *rest)
    assert None not in model.outputs[0].shape
    assert any(note.startswith("captured with its branches and loops rewritten") for note in model.notes)
    session = ep.Session(model)
    for length in (1, 3, 4, 5, 6, 7, 12):
        x = torch.randn(3, length, *rest)
        with torch.no_grad():
            expected = module(x)
        for wanted, got in zip(expected, session.run([x.numpy()]).values(), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-5)


class RelativeToLast(nn.Module):
    """As positions in a padded batch are normalised: one beside all, whose number is that of the longer."""

    def forward(self, one, other):
        present = torch.zeros(2, max(one.shape[0], other.shape[0]))
        present[0, : one.shape[0]], present[1, : other.shape[0]] = 1, 1
        places = F.interpolate(present[None], size=present.shape[1] // 4)[0].cumsum(1)
        return places / (places[:, -1:] + 1)


def test_one_row_is_one_where_several_sizes_decide_how_many_there_are():
    model = ep.export(RelativeToLast(), (torch.randn(13, 3), torch.randn(9, 3)), progress=False)
    assert not any(isinstance(spec.shape[0], int) for spec in model.inputs)
    assert not any("rewritten" in note or "parts" in note for note in model.notes)
    session = ep.Session(model)
    for lengths in ((4, 3), (5, 21), (2, 8)):
        one, other = (torch.randn(length, 3) for length in lengths)
        (found,) = session.run({"one": one.numpy(), "other": other.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), RelativeToLast()(one, other))


class OfElements(nn.Module):
    """Python's own, of tensors of one element; it keeps the first that nothing exceeds."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        capped = max(0, min(x.sum(), 3.0))
        return max(x[0], x[1], x[2]), min([each * 2 for each in x[:3]]), x[0] * capped, max(x[:1], x[1:2])


@pytest.mark.parametrize(
    "values", [(1.0, 2.0, -3.0), (float("nan"), 1.0, 2.0), (1.0, float("nan"), 5.0), (0.0, 0.0, 0.0)]
)
def test_extremes_of_elements_are_those_that_python_finds(values):
    module, x = OfElements().eval(), torch.tensor([*values, 1.0])
    model = ep.export(module, torch.randn(5), progress=False)
    found = ep.Session(model).run({"x": x.numpy()}).values()
    for result, right in zip(found, module(x), strict=True):
        torch.testing.assert_close(torch.from_numpy(result), right, equal_nan=True)


def test_extremes_of_several_types_are_left_to_python():
    tensors = [torch.tensor(1), torch.tensor(2.0), torch.tensor([1.0, 2.0])]
    assert extreme_of_elements(tensors[:2], largest=True) is None
    assert extreme_of_elements([tensors[0], 2.5], largest=True) is None
    assert extreme_of_elements([tensors[2], tensors[2]], largest=True) is None
    assert extreme_of_elements([1, 2], largest=True) is None


class Adaptive(nn.Module):
    """Steps of an equation that become longer and shorter as their error wants it; the last ends at one."""

    def forward(self, y):
        t, step, count = 0.0, 0.3, 0
        while t < 1.0 and count < 50:
            step = min(step, 1.0 - t)
            first = -y * y
            simple = y + step * first
            better = y + step * (first - simple * simple) / 2
            error = (better - simple).abs().max().item()
            if error < 0.05:
                t = t + step
                y = better
            step = step * min(2.0, max(0.3, 0.9 * (0.05 / (error + 1e-8)) ** 0.5))
            count += 1
        return y


def test_steps_are_as_long_as_their_error_allows():
    module, starts = Adaptive(), (torch.rand(2, 3), torch.rand(5, 4) * 2, torch.full((1, 1), 0.01))
    session = ep.Session(ep.export(module, starts[0]), providers=["onnxruntime"])
    for y in starts:
        (found,) = session.run({"y": y.numpy()}).values()
        np.testing.assert_allclose(found, module(y).numpy(), rtol=1e-4)
