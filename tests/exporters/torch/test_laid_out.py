"""Tensors that are laid out plainly at some sizes only: torch asks, and makes a condition of the answer."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import entrepot as ep
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


class Chunks(torch.nn.Module):
    """A state that goes from chunk to chunk of a padded sequence, and a layer on what is left of it."""

    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(3, 3)

    def forward(self, x):
        rows, steps, width = x.shape
        pad = -steps % 4
        chunks = torch.nn.functional.pad(x, (0, 0, 0, pad)).view(rows, -1, 4, width)
        state, outs = x.new_zeros(rows, 1, width), []
        for chunk in chunks.unbind(1):
            outs.append(chunk.cumsum(1) + state)
            state = state * 0.5 + chunk.sum(1, keepdim=True)
        y = torch.stack(outs, 2).permute(0, 2, 1, 3).reshape(rows, steps + pad, width)
        return self.out(y[:, :steps])


def test_a_layer_follows_chunks_of_a_padded_sequence():
    model = ep.export(Chunks(), torch.randn(2, 10, 3), progress=False)
    assert [*model.inputs[0].shape] == ["batch", "x_dim1", 3]
