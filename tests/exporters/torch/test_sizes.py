import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.sizes import affine_grid


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 3, 4, 5)])
def test_grids_are_those_of_torch(align, shape):
    theta = torch.randn(
        2, len(shape) - 2, len(shape) - 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    torch.testing.assert_close(affine_grid(theta, shape, align), F.affine_grid(theta, list(shape), align))


class Counting(nn.Module):
    """What is made of a length in ways that torch.export would fix it."""

    def forward(self, x):
        length = x.shape[1]
        ramp = torch.linspace(0, 1, length) + torch.logspace(0, 1, length, base=2.0)
        first, second = x.chunk(2, 1)
        return x * ramp, first, second, x.topk(length // 2, dim=1).values, x[:, length // 2 :]


class Warp(nn.Module):
    def forward(self, x, theta):
        return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)


def test_what_counts_a_length_leaves_it_dynamic():
    model = ep.export(Counting(), torch.randn(3, 8))
    assert model.inputs[0].shape == ("batch", "x_dim1")


class Numbering(nn.Module):
    def forward(self, x):
        return x if x.shape.numel() == 0 else x.reshape(x.size(0), x.shape[1:].numel()) / x.size().numel()


def test_a_shape_says_how_many_elements_there_are():
    model = ep.export(Numbering(), torch.randn(4, 2, 3), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    x = torch.randn(5, 4, 7)
    (found,) = ep.Session(model).run({model.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(found, Numbering()(x).numpy(), rtol=1e-6)


def test_height_and_width_of_what_is_warped_are_dynamic():
    model = ep.export(Warp(), (torch.randn(2, 3, 5, 6), torch.randn(2, 2, 3)))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)


class Triangles(nn.Module):
    """Each element of a square, a triangle, a diagonal or a list with each other one."""

    def forward(self, x):
        size, rows = x.shape[-1], torch.arange(x.shape[-1])
        triangles = [torch.triu_indices(size, size, offset) for offset in (0, 1)]
        triangles += [torch.tril_indices(size, size, offset) for offset in (0, -1)]
        pairs = torch.combinations(rows), torch.combinations(rows, with_replacement=True)
        taken = x.take_along_dim((x.argsort(-1) + 1) % size, -1)
        diagonal = torch.cdist(x, x).fill_diagonal_(torch.inf), x.clone().fill_diagonal_(2.0, wrap=True)
        return *triangles, *pairs, taken, torch.pdist(x), *diagonal


def test_triangles_of_a_length_leave_it_dynamic():
    sample = torch.randn(3, 5)
    model = ep.export(Triangles(), sample)
    assert model.inputs[0].shape == ("batch", "x_dim1")
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for sizes in ((3, 5), (4, 7), (8, 3), (1, 1)):
        x = torch.randn(sizes)
        found = session.run(None, {"x": x.numpy()})
        for one, other in zip(found, Triangles()(x), strict=True):
            assert np.allclose(one, other.numpy(), rtol=1e-5, atol=1e-5)


class Boxes(nn.Module):
    """The greatest value in each box, which names its picture by a number beside its sides."""

    def forward(self, pictures, boxes):
        made = []
        for box in boxes:
            left, top = int(box[1]), int(box[2])
            made.append(pictures[int(box[0]), :, top:, left:].amax((1, 2)))
        return torch.stack(made)


def test_pictures_that_boxes_name_may_be_as_few_as_one():
    """The sample names its second picture, which a batch of one does not have."""
    boxes = torch.tensor([[1, 0.5, 1.5], [0, 1.25, 0.75]])
    model = ep.export(Boxes(), (torch.randn(2, 3, 5, 4), boxes))
    pictures, boxes = torch.randn(1, 3, 6, 7), torch.tensor([[0, 2.5, 1.0]])
    (found,) = ep.Session(model).run({"pictures": pictures.numpy(), "boxes": boxes.numpy()}).values()
    np.testing.assert_allclose(found, Boxes()(pictures, boxes).numpy(), rtol=1e-6)


class Diagonals(nn.Module):
    """Diagonals that a size tells, above, below and beyond; a matrix with one; elements that are turned round."""

    def forward(self, x):
        n = x.size(0)
        square = x @ x.T
        parts = torch.diag(square, n // 2), square.diagonal(-(n // 2)), torch.diagonal(x, n - x.size(1))
        beyond = square.diag(n + 2), torch.diagonal(x.unsqueeze(0), n, 1, 2)
        return *parts, *beyond, torch.diag(x[0], n), x.roll(n // 2, 0), torch.roll(x, (n + 3, -2 * n), (1, 0))


def test_diagonals_and_turns_that_a_size_tells():
    same(ep.export(Diagonals(), torch.randn(4, 5), progress=False), Diagonals(), (7, 3), (5, 5), (1, 2))


class Others(nn.Module):
    """Each row without itself: how many elements there are, torch knows from the data only."""

    def forward(self, x):
        alike = x @ x.T
        rest = alike[~torch.eye(x.size(0), dtype=torch.bool)].view(x.size(0), -1)
        return rest.logsumexp(1), torch.logsumexp(rest, (0, 1), keepdim=True), rest.reshape(-1, 1, x.size(0))


def test_rows_whose_number_of_elements_depends_on_data():
    model = ep.export(Others(), torch.randn(4, 5), progress=False)
    same(model, Others(), (7, 3), (5, 5), (2, 2))
    x = torch.full((3, 3), 1e30)  # whose products are infinite
    (found, *_) = ep.Session(model).run({model.inputs[0].name: x.numpy()}).values()
    np.testing.assert_array_equal(found, Others()(x)[0].numpy())


def same(model, module, *shapes):
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for shape in shapes:
        x = torch.randn(shape)
        for found, wanted in zip(session.run(None, {model.inputs[0].name: x.numpy()}), module(x), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_rows_that_data_count_are_rolled():
    def rolled(x):
        rows = x[x[:, 0] > 0]
        return torch.roll(rows, 1, 0), rows.roll((2, -1), dims=(0, 1)), torch.roll(rows, shifts=3)

    model = ep.export(rolled, torch.randn(9, 4), progress=False)
    session = ep.Session(model)
    for count in (9, 5, 2):
        x = torch.randn(count, 4)
        for found, wanted in zip(session.run({"x": x.numpy()}).values(), rolled(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted)
