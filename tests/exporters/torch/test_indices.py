"""Indices of int32 are widened where operators take int64 only."""

import onnx
import pytest
import torch

import entrepot as ep


class Put(torch.nn.Module):
    def forward(self, x, at, new):
        return x.index_put((at,), new, accumulate=True)


def test_a_model_with_int32_indices_passes_the_full_checker():
    sample = (torch.zeros(5, 2), torch.tensor([1, 3, 1], dtype=torch.int32), torch.ones(3, 2))
    model = ep.export(Put(), sample)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    assert [node.op_type for node in model.ir.graph].count("Cast") == 1


def picked_by_several_types(x, rows, columns):
    return x[rows.int()[:, None, None], torch.arange(x.shape[1])[None, :, None], columns.int()[:, None, :]]


def written_by_several_types(x, rows, columns):
    x = x.clone()
    x[rows.int(), :, columns[:, 0].long()] += 1.0
    return x


@pytest.mark.parametrize("function", [picked_by_several_types, written_by_several_types])
def test_places_of_several_types_name_elements_together(function):
    def sample(count):
        return torch.randn(4, 5, 9), torch.randint(-4, 4, (count,)), torch.randint(-9, 9, (count, 2))

    torch.manual_seed(0)
    session = ep.Session(ep.export(function, sample(3), progress=False), providers=["onnxruntime"])
    for count in (3, 2, 4):
        given = sample(count)
        feeds = {name: value.numpy() for name, value in zip(("x", "rows", "columns"), given, strict=True)}
        (found,) = session.run(feeds).values()
        torch.testing.assert_close(torch.from_numpy(found), function(*given))
