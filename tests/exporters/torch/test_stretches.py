"""Stretches whose bounds are data, and what is written into them."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, b):
        return self.function(x, b)


def filled(x, b):
    y = x.clone()
    y[b[0] : b[1]] = 7
    return y


def cleared_behind(x, b):
    y = x.clone()
    y[:, b[0] :] = 0.0
    return y


def a_row_for_all(x, b):
    y = x.clone()
    y[b[0] : b[1], 1:] = x[:1, 1:] * 2
    return y


def within_bounds(x, b):
    y = torch.zeros_like(x)
    low, high = max(b[0], 0), min(b[1], x.shape[0])
    y[low:high] = x[: high - low]
    return y


def patch(x, b):
    y = torch.zeros_like(x)
    y[b[0] : b[1], b[0] : b[2]] = x[b[0] : b[1], b[0] : b[2]] + 1
    return y


def in_one_row(x, b):
    y = x.clone()
    y[1, b[0] : b[1]] = torch.arange(x.shape[1])[b[0] : b[1]]
    return y


def with_axes_of_one(x, b):
    y = x.round().long()
    y[b[0] : b[1]] = (x[b[0] : b[1]] * 3)[None, None]
    return y


FUNCTIONS = [with_axes_of_one, filled, cleared_behind, a_row_for_all, within_bounds, patch, in_one_row]
BOUNDS = [(1, 3, 4), (0, 0, 5), (2, 3, 3), (0, 5, 6), (-3, -1, -2), (1, 40, 50), (3, 1, 2)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_written_between_bounds_that_are_data(function):
    model = ep.export(Function(function).eval(), (torch.randn(5, 6), torch.tensor([1, 3, 4])), progress=False)
    assert not [size for size in model.inputs[0].shape if isinstance(size, int)]
    assert "captured" not in model.metadata.get("entrepot.notes", "")  # in another way than as it is
    sessions = [ep.Session(model, providers=[provider]) for provider in ("cpu", "onnxruntime")]
    tried = 0
    for bounds in BOUNDS:
        x, b = torch.randn(5, 7), torch.tensor(bounds)
        try:
            wanted = function(x, b)
        except RuntimeError:  # sizes that do not go together
            continue
        tried += 1
        for session in sessions:
            (found,) = session.run({"x": x.numpy(), "b": b.numpy()}).values()
            torch.testing.assert_close(torch.from_numpy(found), wanted, msg=f"{bounds}")
    assert tried >= 4


class Pasted(nn.Module):
    """Masks of objects, each stretched to its box and put where that is, as torchvision does."""

    def forward(self, masks, boxes, image):
        height, width = image.shape[-2:]
        found = []
        for mask, box in zip(masks, boxes, strict=True):
            size = max(int(box[3] - box[1] + 1), 1), max(int(box[2] - box[0] + 1), 1)
            looks = F.interpolate(mask.expand((1, 1, -1, -1)), size=size, mode="bilinear", align_corners=False)[0][0]
            whole = torch.zeros((height, width))
            left, right = max(box[0], 0), min(box[2] + 1, width)
            top, bottom = max(box[1], 0), min(box[3] + 1, height)
            whole[top:bottom, left:right] = looks[top - box[1] : bottom - box[1], left - box[0] : right - box[0]]
            found.append(whole)
        return torch.stack(found, 0)


def test_masks_are_put_into_pictures_of_any_size():
    boxes = torch.tensor([[1, 2, 5, 6], [0, 0, 3, 9], [4, 4, 8, 8]])
    model = ep.export(Pasted().eval(), (torch.rand(3, 4, 4), boxes, torch.rand(1, 12, 14)), progress=False)
    assert "torch.jit" not in model.metadata["entrepot.notes"]
    session = ep.Session(model, providers=["onnxruntime"])
    boxes = torch.tensor([[-2, 2, 5, 20], [0, 0, 30, 9]])
    sample = torch.rand(2, 5, 3), boxes, torch.rand(1, 10, 11)
    (found,) = session.run({"masks": sample[0].numpy(), "boxes": boxes.numpy(), "image": sample[2].numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), Pasted()(*sample), rtol=1e-5, atol=1e-6)


def test_a_result_that_is_a_tensor_for_some_values_only_is_refused():
    def largest(x, n):
        return x.relu(), max(n, x.shape[0])  # torch gives a number for the sample

    with pytest.raises(ep.InputError, match="returns 1 tensors for the sample, and its graph 2"):
        ep.export(Function(largest).eval(), (torch.randn(5, 3), torch.tensor(4)), progress=False)
