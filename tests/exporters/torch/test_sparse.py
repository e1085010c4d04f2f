"""Sparse matrices that a forward makes: products of them, and indices that are too large for a size that is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.exporter import Refusal
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.guard import untouched
from entrepot.exporters.torch.translations.sparse import sparse_coo_tensor, to_sparse

EDGES = torch.tensor([[0, 2, 2, 1, 2], [1, 0, 0, 3, 2]])  # one place twice
WEIGHTS = torch.tensor([0.5, -1.0, 2.0, 4.0, 0.25])
X, Y = torch.arange(8.0).reshape(4, 2), torch.arange(6.0).reshape(2, 3)

USES: dict[str, Callable[[Any], torch.Tensor]] = {
    "mm": lambda a: torch.mm(a, X),
    "spmm": lambda a: torch.spmm(a, X),
    "sparse.mm": lambda a: torch.sparse.mm(a, X),
    "a @ x": lambda a: a @ X,
    "a @ vector": lambda a: a @ X[:, 0],
    "mv": lambda a: a.mv(X[:, 1]),
    "x @ a": lambda a: Y @ a,
    "addmm": lambda a: torch.sparse.addmm(torch.ones(3, 2), a, X, beta=2.0, alpha=3.0),
    "t": lambda a: torch.sparse.mm(a.t(), Y.T),
    "transpose": lambda a: torch.transpose(a, 0, 1).to_dense(),
    "coalesce": lambda a: a.coalesce().to_dense(),
    "sum of rows": lambda a: torch.sparse.sum(a, dim=1).to_dense(),
    "sum of columns": lambda a: torch.sparse.sum(a, dim=[-2]).to_dense(),
    "sum": torch.sparse.sum,
    "times": lambda a: (2 * a * 0.5).to(torch.float64).to_dense(),
    "sizes": lambda a: torch.ones(a.size(0), a.shape[1], dtype=a.dtype),
}


@pytest.fixture
def checked() -> Iterator[None]:
    """Torch (2.13) warns of matrices that it does not check."""
    with torch.sparse.check_sparse_tensor_invariants():
        yield


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("count", [5, 0], ids=["entries", "none"])
def test_a_matrix_is_used_as_torch_uses_it(name: str, count: int) -> None:
    parts = EDGES[:, :count], WEIGHTS[:count], (3, 4)
    assert torch.equal(USES[name](sparse_coo_tensor(*parts)), USES[name](torch.sparse_coo_tensor(*parts)))


@pytest.mark.usefixtures("checked")
def test_the_elements_of_a_dense_matrix_that_are_not_zero_count() -> None:
    dense = torch.tensor([[0.0, 2.0], [0.0, 0.0]])
    unknown = torch.tensor([[torch.nan], [1.0]])
    assert torch.equal(to_sparse(dense).mm(unknown), dense.to_sparse() @ unknown)


class Messages(nn.Module):
    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        nodes = x.shape[0]
        adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (nodes, nodes)).coalesce()
        return torch.sparse.mm(adjacency, x) + adjacency.to_dense().sum(0, keepdim=True).T


@pytest.mark.usefixtures("checked")
def test_a_module_with_a_sparse_matrix_is_exported_for_all_sizes() -> None:
    def sample(nodes: int, edges: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(nodes, 3), torch.randint(0, nodes, (2, edges))

    model = ep.export(Messages(), sample(5, 9), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for nodes, edges in ((5, 9), (1, 3), (8, 20), (4, 1)):
        x, pairs = sample(nodes, edges)
        found = session.run({"x": x.numpy(), "edges": pairs.numpy()})
        np.testing.assert_allclose(next(iter(found.values())), Messages()(x, pairs).numpy(), rtol=1e-5, atol=1e-5)


class Entries(nn.Module):
    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (len(x), len(x)))._values()


def test_an_index_that_is_too_large_for_a_size_that_is_tried_is_refused() -> None:
    module, call = Entries(), (torch.zeros(3, 1), torch.tensor([[0, 9], [1, 2]]))
    flat = flatten_call(Sample.of(call, module.forward), module.forward, TORCH)
    with untouched(module) as state:
        eager = Eager(module, flat.tree, state)
        with pytest.raises(Refusal, match="found index 9"):
            eager(flat.tensors)


class Keeper(nn.Module):
    """Keeps sparse matrices of every layout in buffers, a parameter, an attribute, and a list."""

    def __init__(self) -> None:
        super().__init__()
        table = torch.tensor([[0.0, 0.5, 0.0], [2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
        self.register_buffer("rows", table.to_sparse_csr())
        self.weight = nn.Parameter(table.T.to_sparse())
        self.columns = table.to_sparse_csc()
        self.several = [table.to_sparse(), (2 * table).to_sparse()]
        self.twice = torch.sparse_coo_tensor(EDGES.flip(0), WEIGHTS, (4, 3))  # one place twice

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.rows @ x + torch.sparse.mm(self.weight, x) + self.columns @ x
        for matrix in self.several:
            made = made + torch.spmm(matrix, x) + matrix.coalesce().values().sum() + matrix.to_dense().sum(0)[:, None]
        return torch.sparse.mm(self.twice, made)


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
def test_sparse_matrices_that_a_module_keeps_are_weights() -> None:
    module = Keeper()
    before = [module.rows, module.weight, module.columns, *module.several, module.twice]
    model = ep.export(module, torch.randn(3, 2), progress=False)
    after = [module.rows, module.weight, module.columns, *module.several, module.twice]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert list(dict(module.named_buffers())) == ["rows"]
    assert {"rows_indices", "weight_values", "several_1_values"} <= {*model.ir.graph.initializers}
    x = torch.randn(3, 5)
    (found,) = ep.Session(model).run({model.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-5, atol=1e-5)


class Counting(nn.Module):
    """Changes a sparse buffer in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.eye(3).to_sparse())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.seen * 2
        return self.seen @ x


def test_a_sparse_buffer_that_changes_is_refused_by_name() -> None:
    module = Counting()
    with pytest.raises(ep.ConversionError, match="seen"):
        ep.export(module, torch.randn(3, 2), progress=False)
    assert torch.equal(module.seen.to_dense(), torch.eye(3))
