"""Tensors that are laid out plainly at some sizes only: torch asks, and makes a condition of the answer."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.translations.cut_short import laid_out


def sizes():
    """Two that vary, and how many cells of eight they take, where the sample has one."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 2)
    value = mode.from_tensor(torch.empty(5, 7), symbolic_context=context)
    return value, (value.shape[0] - 1) // 8 + 1, (value.shape[1] - 1) // 8 + 1


def test_a_grid_of_one_row_in_the_sample_is_not_taken_for_plain():
    value, rows, columns = sizes()
    with capture_settings():
        grid = value.new_empty(columns).expand(rows, columns)
        found = laid_out(grid)
    assert found is not grid
    assert found.stride() == (columns, 1)
    assert not value.fake_mode.shape_env.guards


def test_what_is_plain_whatever_the_sizes_is_left():
    value, rows, columns = sizes()
    with capture_settings():
        for plain in (value, value.new_empty(rows, columns), value.new_empty(columns)):
            assert laid_out(plain) is plain
