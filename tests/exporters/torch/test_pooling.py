import itertools
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.pooling import REPLACEMENTS
from tests.exporters.torch.test_pieces import check

_GENERATOR = torch.Generator().manual_seed(0)
INPUTS = {
    1: torch.randn(2, 3, 11, generator=_GENERATOR, dtype=torch.float64),
    2: torch.randn(2, 3, 11, 8, generator=_GENERATOR, dtype=torch.float64),
    3: torch.randn(1, 2, 7, 8, 6, generator=_GENERATOR, dtype=torch.float64),
}
ADAPTIVE = {
    1: (torch.adaptive_avg_pool1d, F.adaptive_max_pool1d),
    2: (F.adaptive_avg_pool2d, F.adaptive_max_pool2d),
    3: (F.adaptive_avg_pool3d, F.adaptive_max_pool3d),
}
AVERAGE = {1: torch.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
MAXIMUM = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


@pytest.mark.parametrize(("axes", "count"), [*itertools.product([1, 2, 3], [1, 2, 3, 5])])
def test_adaptive_pools_are_those_of_torch(axes, count):
    for pool in ADAPTIVE[axes]:
        torch.testing.assert_close(
            REPLACEMENTS[pool](INPUTS[axes], (count,) * axes), pool(INPUTS[axes], (count,) * axes)
        )


def test_an_axis_without_a_size_is_left_as_it_is():
    for pool in ADAPTIVE[2]:
        torch.testing.assert_close(REPLACEMENTS[pool](INPUTS[2], (None, 3)), pool(INPUTS[2], (None, 3)))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_average_pools_are_those_of_torch(axes):
    pool, x = AVERAGE[axes], INPUTS[axes]
    for kernel, stride, padding, ceil, counted in itertools.product((2, 3), (1, 2, 3), (0, 1), *[(False, True)] * 2):
        args = ((kernel,), (stride,), (padding,), ceil, counted)
        torch.testing.assert_close(REPLACEMENTS[pool](x, *args), pool(x, *args))
        torch.testing.assert_close(REPLACEMENTS[pool](x[0], *args), pool(x[0], *args))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_maximum_pools_are_those_of_torch(axes):
    pool, x = MAXIMUM[axes], INPUTS[axes]
    for how in itertools.product((2, 3), (None, 1, 2, 3), (0, 1), (1, 2), (False, True)):
        torch.testing.assert_close(REPLACEMENTS[pool](x, *how), pool(x, *how))
        torch.testing.assert_close(REPLACEMENTS[pool](x[0], *how), pool(x[0], *how))


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.average, self.maximum = nn.AdaptiveAvgPool2d((3, 5)), nn.AdaptiveMaxPool2d((2, 1))
        self.windows = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.line = nn.MaxPool1d(2)

    def forward(self, x):
        return self.average(x), self.maximum(x), self.windows(x), self.line(x[:, 0])


def test_height_and_width_below_pools_of_every_kind_are_dynamic():
    model = ep.export(Pools(), torch.randn(2, 3, 12, 14))
    assert model.inputs[0].shape == ("batch", "x_dim1", "x_dim2", "x_dim3")


WINDOWS = {
    "the whole length": lambda x: F.max_pool1d(x.flatten(2), x.shape[2] * x.shape[3]).squeeze(2),
    "all but two": lambda x: F.max_pool1d(x[..., 0], x.shape[2] - 2, stride=1),
    "half of it": lambda x: F.avg_pool1d(x[..., 0], x.shape[2] // 2, padding=1)[..., :2],
    "a whole map": lambda x: F.avg_pool2d(x, x.shape[2:]).flatten(1),
    "as many as fit": lambda x: F.max_pool2d(
        x, (x.shape[2] // 2 + 1, 2), stride=(x.shape[2] // 3, 1), padding=(1, 0), ceil_mode=True
    ).sum((2, 3)),
    "every other": lambda x: F.max_pool2d(x, (2, x.shape[3] // 2), dilation=(2, 1)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_may_depend_on_the_size(name, tmp_path):
    sample, others = torch.randn(2, 3, 8, 6), [torch.randn(1, 3, 11, 7), torch.randn(3, 3, 7, 4)]
    check(Whole(WINDOWS[name]), tmp_path, (sample,), [(other,) for other in others])


class Whole(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("shape", [(2, 3, 13), (2, 3, 14, 9)])
@pytest.mark.parametrize("by", [{"size": 7}, {"scale_factor": 0.5}, {"scale_factor": 1.5}])
def test_areas_are_averaged_at_all_sizes(shape, by):
    def resized(x):
        return F.interpolate(x, mode="area", **by)

    model = ep.export(resized, torch.randn(*shape))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    for sizes in ((2,) * len(shape), (1, 1, *range(8, 4 + 2 * len(shape), 2)), (1, 3, *[21] * (len(shape) - 2))):
        x = torch.arange(math.prod(sizes)).reshape(sizes) / 7
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), resized(x))


@pytest.mark.parametrize("count", [(7, 4), (7, None), (14, 1)])
def test_windows_that_are_known_to_be_alike_are_one_node(count):
    pool = nn.AdaptiveAvgPool2d(count).eval()
    model = ep.export(pool, torch.randn(1, 3, 14, 8), dynamic=False)
    assert [node.op_type for node in model.ir.graph] == ["AveragePool"]
