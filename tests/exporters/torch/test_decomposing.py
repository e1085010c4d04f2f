"""Captured programs are taken apart where they stand, and writes become tensors where nobody can tell."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from entrepot.exporters.torch.lowering import decomposing
from entrepot.exporters.torch.lowering.decomposing import decomposed
from entrepot.exporters.torch.lowering.promotion import promote_types
from entrepot.exporters.torch.lowering.writes import without_writes
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.translations import decompositions

Function = Callable[..., Any]

aten = torch.ops.aten


def captured(function: Function, *sample: torch.Tensor) -> torch.export.ExportedProgram:
    class Called(nn.Module):
        def forward(self, *given: torch.Tensor) -> Any:
            return function(*given)

    shapes = {"given": tuple({0: torch.export.Dim.AUTO} for _ in sample)}
    with quiet():
        return torch.export.export(Called(), sample, dynamic_shapes=shapes, strict=False)


def operators(program: torch.export.ExportedProgram) -> list[Any]:
    return [node.target for node in program.graph.nodes if node.op == "call_function"]


def residual(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y += x
    return torch.relu_(y) + 1


def rows_put(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    y[1:] = x[:-1]
    y[0] = 5.0
    y[2:, 1].add_(x[2:, 2])
    return y * 2


def last_view_read(x: torch.Tensor) -> torch.Tensor:
    y = (x + 1).reshape(-1)
    y.mul_(3)
    return y + 1


def one_of_several(x: torch.Tensor) -> torch.Tensor:
    values, places = x.topk(2)
    before = values.sum(-1)
    values /= values.sum(-1, keepdim=True)
    return values + places + before[:, None]


def cleared(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    y.masked_fill_(x > 0, 0.0)
    y[x < -1] = 7.0
    return y


def chained(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    for at in range(3):
        y[:, at] = y[:, at + 1] + y[:, at]
    return y


def part_of_a_part_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    first = y[0]
    first[1:4:3] = y[1, 1:4:3]
    return first[None] + y


def projected(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    nn.functional.linear(y, torch.eye(4)).div_(2)
    return y + nn.functional.linear(y, torch.eye(4)).mul_(3)


def same_by_another_name(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y.type_as(x).add_(2)
    return y


def filled_as_a_whole(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(x.shape[0], 4)
    y[:, :4].copy_(x)
    y[:, 4:].copy_(x[:, :0])
    return y.t() + 1


def turned_base_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y.transpose(0, -1)[1:3].add_(2)
    y.unsqueeze(-2)[..., 2] = 0.0
    return y


@pytest.mark.parametrize(
    "function",
    [
        filled_as_a_whole,
        turned_base_read,
        residual,
        same_by_another_name,
        part_of_a_part_read,
        projected,
        rows_put,
        last_view_read,
        one_of_several,
        cleared,
        chained,
    ],
)
def test_a_write_that_nobody_else_sees_is_a_new_tensor(function: Function) -> None:
    program = captured(function, torch.randn(5, 4))
    graph = without_writes(program.graph)
    assert graph is not None
    assert not any(node.target._schema.is_mutable for node in graph.nodes if hasattr(node.target, "_schema"))
    for rows in (4, 5, 8):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(decomposed(program, {}).module()(x), function(x.clone()))


def base_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y.t().add_(2)
    return y


def view_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    seen = y.view(-1)
    y.add_(2)
    return seen


def part_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    first, second = y.split(2, dim=1)
    y.add_(2)
    return first + second


def other_part_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    seen = y[:, 1:3]
    y[:, 2] = 0.0
    return seen


def compared(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y.gt_(0)
    return y * 2


@pytest.mark.parametrize("function", [base_read, view_read, part_read, other_part_read, compared])
def test_a_write_that_is_read_by_another_name_or_of_another_type_is_left_to_torch(function: Function) -> None:
    program = captured(function, torch.randn(5, 4))
    assert without_writes(program.graph) is None
    x = torch.randn(6, 4)
    with quiet():
        apart = decomposed(program, {})
    torch.testing.assert_close(apart.module()(x), function(x.clone()))


def test_what_may_be_the_same_tensor_counts_as_the_same() -> None:
    def dropped_out(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        nn.functional.dropout(y, 0.5, training=False).add_(2)
        return y

    assert without_writes(captured(dropped_out, torch.randn(5, 4)).graph) is None


def test_what_is_written_into_an_input_is_read_from_there_on() -> None:
    def shifted(x: torch.Tensor) -> Any:
        before = x * 3
        x[:, 1:].copy_(before[:, :-1])
        return x, before

    program = captured(shifted, torch.randn(5, 4))
    assert without_writes(program.graph) is None  # who calls it may look
    assert without_writes(program.graph, program.graph_signature.user_inputs) is not None
    x = torch.randn(7, 4)
    wanted = shifted(x.clone())
    for got, each in zip(decomposed(program, {}).module()(x), wanted, strict=True):
        torch.testing.assert_close(got, each)


def test_a_write_into_a_buffer_is_left_to_torch() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen += x.sum(0)
            return x + self.seen

    with quiet():
        program = torch.export.export(Counting(), (torch.randn(5, 4),))
    assert without_writes(program.graph, program.graph_signature.user_inputs) is None


def test_only_what_the_table_names_is_taken_apart() -> None:
    program = captured(lambda x: nn.functional.softplus(x) + x.sin(), torch.randn(5))
    apart = decomposed(program, {aten.softplus.default: lambda x: torch.log1p(torch.exp(x))})
    assert operators(apart) == [aten.exp.default, aten.log1p.default, aten.sin.default, aten.add.Tensor]
    kept = [node.meta["val"] for node in program.graph.nodes if node.target is aten.sin.default]
    assert next(node.meta["val"] for node in apart.graph.nodes if node.target is aten.sin.default) is kept[0]
    x = torch.randn(7)
    torch.testing.assert_close(apart.module()(x), program.module()(x))


def test_what_a_table_does_not_take_apart_stays() -> None:
    program = captured(lambda x: x.sin(), torch.randn(5))
    assert operators(decomposed(program, {aten.sin.default: lambda x: NotImplemented})) == [aten.sin.default]


def test_a_size_that_the_program_asks_for_later_only_is_known_where_it_is_needed() -> None:
    def halved(x: torch.Tensor) -> Any:
        y = x[::2]
        return nn.functional.softplus(y), torch.full((y.shape[0],), 2.0)

    table = {
        aten.softplus.default: lambda x: x.new_zeros(x.shape[0]) + x,
        aten.full.default: lambda size, value, **how: torch.ones(size, **how) * value,
    }
    program = captured(halved, torch.randn(6))
    named = [node.name for node in program.graph.nodes]
    assert named.index("softplus") < named.index("floordiv")
    first, second = decomposed(program, table).module()(torch.arange(9.0))
    assert first.tolist() == [0, 2, 4, 6, 8]
    assert second.tolist() == [2] * 5


def test_numbers_that_are_drawn_for_nobody_are_dropped() -> None:
    def drawing(x: torch.Tensor) -> torch.Tensor:
        torch.rand_like(x)
        return x + 1

    assert operators(decomposed(captured(drawing, torch.randn(5)), {})) == [aten.add.Tensor]


def test_results_keep_their_places_when_they_are_taken_apart() -> None:
    def several(x: torch.Tensor) -> Any:
        return x, nn.functional.softplus(x), x.shape[0]

    apart = decomposed(captured(several, torch.randn(5)), {aten.softplus.default: lambda x: x + x})
    x = torch.randn(7)
    same, double, size = apart.module()(x)
    assert torch.equal(same, x)
    assert torch.equal(double, x + x)
    assert size == 7


def test_inputs_keep_names_that_python_has_taken() -> None:
    class Named(nn.Module):
        def forward(self, input: torch.Tensor, range: torch.Tensor) -> torch.Tensor:
            y = nn.functional.softplus(input)
            y += range
            return y

    with quiet():
        program = torch.export.export(Named(), (torch.randn(5), torch.randn(5)))
    apart = decomposed(program, {aten.softplus.default: lambda x: x + x})
    assert [node.name for node in apart.graph.nodes if node.op == "placeholder"] == ["input", "range"]
    x, y = torch.randn(5), torch.randn(5)
    torch.testing.assert_close(apart.module()(x, y), x + x + y)


def test_operands_are_brought_to_one_type_without_running_the_graph() -> None:
    program = captured(lambda x, y: (x + y).sin(), torch.ones(2), torch.ones(2, dtype=torch.int64))
    promoted = decomposed(program, {})
    values = [node.meta["val"] for node in promoted.graph.nodes if node.target is aten.sin.default]
    promote_types(promoted.graph_module)
    assert torch.ops.prims.convert_element_type.default in operators(promoted)
    assert next(node.meta["val"] for node in promoted.graph.nodes if node.target is aten.sin.default) is values[0]


def test_sizes_that_values_give_keep_their_symbols():
    def rows(x: torch.Tensor) -> torch.Tensor:
        (places,) = torch.where(x[:, 0] > 0)
        return x[places] * places[:, None]

    program = captured(rows, torch.randn(5, 3))
    with quiet():
        apart = decomposed(program, {aten.where.default: lambda mask: mask.nonzero().unbind(1)})
    values = [value for node in apart.graph.nodes for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))]
    shapes = [str(tuple(value.shape)) for value in values if isinstance(value, torch.Tensor)]
    assert aten.nonzero.default in operators(apart)
    assert len({symbol for shape in shapes for symbol in re.findall(r"u\d+", shape)}) == 1


def test_what_returns_what_it_is_given_is_left_out_without_being_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    def idle(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.dropout(x.transpose(0, 1), 0.5, training=False).contiguous()
        return y.to(torch.float32) + y.to(torch.float64).to(torch.float32) + torch.nn.functional.softmax(y, -1)

    traced: list[Any] = []
    of = decomposing._Traced.of
    monkeypatch.setattr(decomposing._Traced, "of", lambda nodes, table: traced.extend(nodes) or of(nodes, table))
    x = torch.randn(3, 4)
    with quiet():
        program = decomposed(captured(idle, x), torch.export.default_decompositions())
    kept = [node for node in traced if node.target is aten.to.dtype]
    assert [node.args[1] for node in kept] == [torch.float64, torch.float32]
    assert aten.dropout.default not in {node.target for node in traced} | set(operators(program))
    assert aten.contiguous.default not in {node.target for node in traced} | set(operators(program))
    torch.testing.assert_close(program.module()(x), idle(x))


def traced_operators(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    of = decomposing._Traced.of
    monkeypatch.setattr(decomposing._Traced, "of", lambda nodes, table: found.extend(nodes) or of(nodes, table))
    return found


def test_what_comes_apart_into_the_same_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(x: torch.Tensor) -> Any:
        y, short = x * 2, x[:, 1:]
        alike = nn.functional.softplus(x) + nn.functional.softplus(y) + nn.functional.softplus(x + y)
        other = nn.functional.softplus(short).sum() + nn.functional.softplus(short, beta=2).sum()
        return alike, other

    table = {
        aten.softplus.default: lambda x, beta=1, threshold=20: torch.log1p(torch.exp(x * beta)) / beta + x.shape[0]
    }
    traced = traced_operators(monkeypatch)
    program = captured(several, torch.randn(5, 4))
    apart = decomposed(program, table)
    assert len(traced) == 3
    assert operators(apart).count(aten.log1p.default) == 5
    assert operators(apart).count(aten.sym_size.int) == 2  # of one, and of the shorter ones
    x = torch.randn(7, 4)
    for got, wanted in zip(apart.module()(x), several(x), strict=True):
        assert got.shape == wanted.shape
    first = torch.log1p(torch.exp(x)) + torch.log1p(torch.exp(2 * x)) + torch.log1p(torch.exp(3 * x)) + 21
    torch.testing.assert_close(apart.module()(x)[0], first)


def test_operands_of_those_that_are_alike_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    def crossed(x: torch.Tensor) -> Any:
        y = x + 1
        return torch.hypot(x, y) - torch.hypot(y, x), torch.hypot(x, x)

    traced = traced_operators(monkeypatch)
    apart = decomposed(captured(crossed, torch.ones(4)), {aten.hypot.default: lambda a, b: 2 * a + 3 * b})
    assert len(traced) == 2
    x = torch.randn(6)
    torch.testing.assert_close(apart.module()(x), (torch.ones(6), 5 * x))


def written(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[1:, 1:].copy_(x[1:, 1:])
    return torch.hypot(y, torch.full_like(y, 3.0))


def test_what_is_written_to_is_another_operand_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return written(x) + written(x + 1)

    table = {
        aten.slice_scatter.default: lambda x, part, dim, start, end=None, step=1: torch.cat(
            [x.narrow(dim, 0, start), part], dim
        ),
        aten.hypot.default: lambda x, y: (x * x + y * y).sqrt(),
    }
    traced = traced_operators(monkeypatch)
    program = captured(twice, torch.randn(5, 4))
    apart = decomposed(program, table)
    assert [node.target for node in traced].count(aten.slice_scatter.default) == 2  # along either axis
    assert [node.target for node in traced].count(aten.hypot.default) == 1
    x = torch.randn(7, 4)
    torch.testing.assert_close(apart.module()(x), twice(x))


def test_a_tensor_and_what_becomes_of_it_are_two_operands() -> None:
    def compared(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        before = y + 0
        y.add_(1)
        return torch.hypot(before, y)

    program = captured(compared, torch.randn(5))
    first, second = next(node for node in program.graph.nodes if node.target is aten.hypot.default).args
    second.meta["val"] = first.meta["val"]  # as in-place operators leave it
    apart = decomposed(program, {aten.hypot.default: lambda x, y: x - 3 * y})
    x = torch.randn(7)
    torch.testing.assert_close(apart.module()(x), 2 * x - 3 * (2 * x + 1))


def test_numbers_that_are_drawn_alike_are_drawn_apart() -> None:
    def drawing(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.softplus(x) - nn.functional.softplus(x + 1)

    table = {aten.softplus.default: lambda x: torch.rand(x.shape) + x * 0}
    apart = decomposed(captured(drawing, torch.randn(50)), table)
    assert operators(apart).count(aten.rand.default) == 2


def test_what_has_sizes_that_values_give_is_like_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(x: torch.Tensor) -> Any:
        return x[x > 0].sin(), x[x < 0].sin()

    traced = traced_operators(monkeypatch)
    program = captured(chosen, torch.randn(9))
    with quiet():
        apart = decomposed(program, {aten.sin.default: lambda x: x.new_zeros(x.shape[0]) + 2 * x})
    assert sum(node.target is aten.sin.default for node in traced) == 2
    x = torch.tensor([1.0, -2.0, 3.0])
    torch.testing.assert_close(apart.module()(x), (torch.tensor([2.0, 6.0]), torch.tensor([-4.0])))


_CELLS = (nn.GRUCell, nn.LSTMCell, nn.RNNCell, functools.partial(nn.RNNCell, nonlinearity="relu"))


@pytest.mark.parametrize("cell", _CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_cells_of_recurrent_networks_are_taken_apart_where_they_stand(
    cell: Any, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = cell(3, 5, bias=bias)
    monkeypatch.delattr(torch.export.ExportedProgram, "run_decompositions")
    with quiet():
        program = torch.export.export(module, (torch.randn(2, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
        apart = decomposed(program, decompositions())
    assert not any("cell" in str(operator) for operator in operators(apart))
    x = torch.randn(4, 3)
    torch.testing.assert_close(apart.module()(x), module(x))
