import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.axes.groups import Group, name_groups, resized
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.together import bound_groups
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.capture import _fewer
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.guard import untouched
from entrepot.ir.errors import ConversionError


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def found(function, *args) -> dict[str, set[str]]:
    """Symbol to the axes that share it."""
    module = Function(function)
    call = flatten_call(Sample(args), function, TORCH)
    with untouched(module) as state:
        eager = Eager(module, call.tree, state)
        prober = Prober(eager, call.tensors, eager.require_function(call.tensors))
        groups = prober.find_groups()
    name_groups(groups, TORCH, prober.base, call.names)
    return {group.symbol: {f"{call.names[index]}.{axis}" for index, axis in group.axes} for group in groups}


def test_an_axis_that_forward_takes_at_other_sizes_is_free_and_one_that_it_does_not_is_fixed():
    weight = torch.randn(4, 2)
    assert found(lambda x: x @ weight, torch.randn(3, 4)) == {"batch": {"x.0"}}


def test_axes_that_must_agree_share_a_symbol():
    assert found(lambda x, y: x + y, torch.randn(3, 4), torch.randn(3, 4)) == {
        "batch": {"x.0", "y.0"},
        "x_dim1": {"x.1", "y.1"},
    }


def test_axes_of_a_size_that_agrees_by_accident_are_told_apart():
    weight = torch.randn(3, 3)
    assert found(lambda x, y: (x + y) @ weight, torch.randn(3, 3), torch.randn(3, 3)) == {"batch": {"x.0", "y.0"}}


def test_a_batch_of_one_is_not_taken_for_broadcasting():
    assert found(lambda x, y: x * y, torch.randn(1, 4), torch.randn(1, 4)) == {
        "batch": {"x.0", "y.0"},
        "x_dim1": {"x.1", "y.1"},
    }


def test_a_one_that_broadcasts_beside_a_larger_size_stays():
    assert found(lambda x, y: x * y, torch.randn(3, 4), torch.randn(1, 4)) == {
        "batch": {"x.0"},
        "x_dim1": {"x.1", "y.1"},
    }


def test_two_axes_of_one_tensor_can_be_linked():
    assert found(lambda a: torch.linalg.det(a) + 1, torch.eye(5)) == {"batch": {"a.0", "a.1"}}


def test_an_axis_that_may_only_shrink_is_free():
    table = torch.randn(9, 4)
    assert found(lambda ids: table[: ids.shape[1]] + ids[..., None], torch.zeros(2, 9, dtype=torch.int64)) == {
        "batch": {"ids.0"},
        "sequence": {"ids.1"},
    }


def test_an_axis_that_may_shrink_alone_and_grow_with_another_is_linked_to_it():
    def padded(ids, mask):
        if ids.shape[1] == 7:  # a mask as if it were prepared for seven
            mask = nn.functional.pad(mask, (0, max(0, 7 - mask.shape[1])))
        return ids * mask

    assert found(padded, torch.ones(3, 7), torch.ones(3, 7)) == {
        "batch": {"ids.0", "mask.0"},
        "ids_dim1": {"ids.1", "mask.1"},
    }


def test_an_axis_that_can_grow_only_with_several_others_is_linked_to_all_of_them():
    """Others that can grow without it, and are then read in part."""
    arguments = torch.randn(2, 5), torch.randn(2, 5), torch.rand(2, 5) > 0.5
    assert found(lambda x, y, mask: x + (y * mask)[:, : x.shape[1]], *arguments) == {
        "batch": {"x.0", "y.0", "mask.0"},
        "x_dim1": {"x.1", "y.1", "mask.1"},
    }


def test_of_axes_that_can_grow_alone_those_at_the_same_place_are_linked():
    """A batch that is as large as the number of heads; what is read in part takes more of either."""
    arguments = torch.randn(2, 2, 5), torch.randn(2, 2, 5), torch.randn(2, 2, 5)
    assert found(lambda x, y, z: x[: len(y), : y.shape[1]] + y * z, *arguments) == {
        "batch": {"x.0", "y.0", "z.0"},
        "x_dim1": {"x.1", "y.1", "z.1"},
        "x_dim2": {"x.2", "y.2", "z.2"},
    }
    assert found(lambda x, y, z: x.reshape(*y.shape[:2], -1)[..., :5] + y * z, *arguments) == {
        "batch": {"x.0", "y.0", "z.0"},
        "x_dim1": {"x.1", "y.1", "z.1"},
        "x_dim2": {"x.2"},
    }


def test_rounding_down_is_not_variation():
    pool, weight = nn.AvgPool1d(4), torch.randn(5, 2)
    assert found(lambda x: pool(x) @ weight, torch.randn(3, 6, 20)).keys() == {"batch", "x_dim1"}


def test_a_result_of_another_rank_does_not_count_as_accepted():
    assert found(lambda x: x.sum(1) if x.shape[1] == 5 else x, torch.randn(3, 5, 2)).keys() == {"batch", "x_dim2"}


def test_a_result_with_a_size_baked_in_as_a_text_fixes_the_axis_and_a_number_does_not():
    assert found(lambda x: (x, str(x.shape[0])), torch.randn(3, 4)).keys() == {"x_dim1"}
    assert found(lambda x: (x, x.shape[0]), torch.randn(3, 4)).keys() == {"batch", "x_dim1"}


def test_images_and_ids_get_the_names_a_reader_expects():
    conv = nn.Conv2d(3, 2, 3)
    assert found(lambda image: conv(image) + 1, torch.randn(2, 3, 8, 9)).keys() == {"batch", "height", "width"}
    assert found(lambda q: q * 2, torch.randn(2, 3, 8, 9)).keys() == {"batch", "q_dim1", "q_dim2", "q_dim3"}


@pytest.mark.parametrize(("size", "values"), [(6, [0, 0, 3, 3, 7, 7]), (2, [0, 3]), (0, [])])
def test_resized_values_keep_their_order(size, values):
    (tensor,) = resized(TORCH, [torch.tensor([0, 3, 7])], {(0, 0): size})
    assert tensor.tolist() == values


def test_an_empty_axis_grows_with_zeros():
    (tensor,) = resized(TORCH, [torch.zeros(0, 2, dtype=torch.int64)], {(0, 0): 3})
    assert tensor.tolist() == [[0, 0]] * 3


class Captions(nn.Module):
    """Puts the parts of a picture where the text has a mark."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 4)

    def forward(self, ids, picture):
        marked = (ids == 9)[..., None].expand(-1, -1, 4)
        return self.words(ids).masked_scatter(marked, picture)


def test_a_text_with_places_for_a_picture_may_be_longer():
    ids = torch.tensor([[1, 9, 9, 2, 3, 4], [5, 9, 9, 6, 7, 8]])
    model = ep.export(Captions(), (ids, torch.arange(16.0).reshape(2, 2, 4)))
    assert model.inputs[0].shape == ("batch", "sequence")
    assert {"sequence=7", "sequence=12"} <= {run.label for run in model.report.runs if run.ok}


def test_height_and_width_of_a_square_are_told_apart_where_places_are_read_from_another_map():
    def peaks(heat, offsets):
        at = heat.flatten(1).argmax(1)
        return offsets.flatten(2).gather(2, at[:, None, None].expand(-1, offsets.shape[1], 1))

    assert found(peaks, torch.randn(2, 1, 8, 8), torch.randn(2, 3, 8, 8)) == {
        "batch": {"heat.0", "offsets.0"},
        "heat_dim1": {"heat.1"},
        "heat_dim2": {"heat.2", "offsets.2"},
        "heat_dim3": {"heat.3", "offsets.3"},
        "offsets_dim1": {"offsets.1"},
    }


def test_axes_that_change_the_structure_of_the_result_together_do_not_vary():
    def rows(x, y, z):
        return [a.sum() + b for a, b in zip(x, y, strict=False)], z * 2

    assert found(rows, torch.randn(2, 3), torch.randn(2, 4), torch.randn(5)) == {
        "x_dim1": {"x.1"},
        "y_dim1": {"y.1"},
        "batch": {"z.0"},
    }


def test_an_axis_is_linked_to_those_at_its_place_before_others_of_its_size():
    module = Function(lambda x, y, z: (x.sum(2), y.sum(2), z))
    call = flatten_call(Sample((torch.randn(2, 3, 2), torch.randn(5, 3, 2), torch.randn(2))), module.forward, TORCH)
    with untouched(module) as state:
        eager = Eager(module, call.tree, state)
        prober = Prober(eager, call.tensors, eager.require_function(call.tensors))
        groups = prober.find_groups()
    heads = next(group for group in groups if (0, 2) in group.axes)
    bound = bound_groups(prober, heads, groups)
    assert bound is not None
    assert {frozenset({(0, 2), (1, 2)}), frozenset({(0, 0)}), frozenset({(2, 0)})} <= {each.axes for each in bound}


def test_a_batch_as_large_as_the_number_of_levels_is_told_from_it():
    def sampled(value, shapes, places):
        levels = [value[:, :, level] * int(h) for level, (h, _) in enumerate(shapes)]
        return torch.stack(levels, 2) + places

    sample = torch.randn(2, 3, 2), torch.tensor([[4, 5], [6, 7]]), torch.randn(2, 3, 2)
    assert found(sampled, *sample)["value_dim0"] == {"value.0", "places.0"}


def test_what_is_read_up_to_twice_a_size_follows_it_though_it_may_be_longer():
    def both(items, edges):
        n = edges.shape[0]
        return edges[:, :n] @ items + edges[:, n : 2 * n] @ items

    assert found(both, torch.randn(4, 3), torch.randn(4, 8)) == {
        "items_dim1": {"items.1"},
        "batch": {"items.0", "edges.0"},
        "2*batch": {"edges.1"},
    }


def test_an_axis_that_is_in_the_way_of_others_is_given_up_alone():
    batch, length, width = groups = [Group({(0, axis)}, name, [2, 3]) for axis, name in enumerate(("b", "t", "d"))]

    def is_captured(*asked):  # each alone, and all but the width together
        return len(asked) == 1 or width not in asked

    kept, given_up = _fewer(groups, ConversionError("why"), is_captured, groups, lambda: None)
    assert kept == [batch, length]
    assert [group for group, _ in given_up] == [width]
