"""torchvision's ``nms``, by an operator of its name and schema: torchvision itself is no dependency."""

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

LIBRARY = torch.library.Library("torchvision", "DEF")
LIBRARY.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def suppressed(dets, scores, iou_threshold):
    """By the definition: the best box, then the best that overlaps none so far by more than the threshold."""
    boxes, kept = dets.double().numpy(), []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for box in np.argsort(-scores.numpy(), kind="stable"):
        low, high = np.maximum(boxes[box, :2], boxes[kept, :2]), np.minimum(boxes[box, 2:], boxes[kept, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            overlap = common / (area[box] + area[kept] - common)
        if not (overlap > iou_threshold).any():
            kept.append(box)
    return torch.tensor(np.array(kept, np.int64))


def shape(dets, scores, iou_threshold):
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


LIBRARY.impl("nms", suppressed, "CPU")
torch.library.register_fake("torchvision::nms", shape, lib=LIBRARY)


class Detector(nn.Module):
    """The best boxes and their scores."""

    def forward(self, boxes, scores):
        kept = torch.ops.torchvision.nms(boxes, scores, 0.3)
        return boxes[kept], scores[kept]


def detections(count, kind=torch.float32):
    generator = torch.Generator().manual_seed(count)
    corner = torch.rand(count, 2, generator=generator) * 4
    boxes = torch.cat([corner, corner + torch.rand(count, 2, generator=generator) * 3], 1)
    return boxes.to(kind), torch.randn(count, generator=generator).to(kind)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_boxes_that_overlap_better_ones_are_left_out(kind):
    model = ep.export(Detector(), detections(20, kind))
    assert model.report
    assert model.inputs[0].shape[0] == model.inputs[1].shape[0] == "batch"
    assert "NonMaxSuppression" in [node.op_type for node in model.ir.graph]
    for count in (1, 30, 50):
        boxes, scores = detections(count, kind)
        found = ep.Session(model).run({"boxes": boxes.numpy(), "scores": scores.numpy()})
        expected = Detector()(boxes, scores)
        assert 1 <= len(expected[0]) < max(count, 2)
        for one, other in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(one, other.numpy())


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_pixel_beside_a_whole_place_counts_with_weight_zero(padding, value):
    def sampled(image, grid):
        return nn.functional.grid_sample(image, grid, padding_mode=padding, align_corners=True)

    places = torch.tensor([-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.25])
    rows, columns = torch.meshgrid(places, places, indexing="ij")
    grid = (torch.stack([columns, rows], -1) * 2 / 3 - 1)[None]
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    model = ep.export(sampled, (image, grid), dynamic=False)
    image[0, 0, 1, 1] = image[0, 0, 3, 3] = value
    found = ep.Session(model, providers=["cpu"]).run([image.numpy(), grid.numpy()])["output"]
    np.testing.assert_allclose(found, sampled(image, grid).numpy(), rtol=1e-5)
