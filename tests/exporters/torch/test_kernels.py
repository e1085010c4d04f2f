"""Element types that onnxruntime (1.31) lacks kernels for: a file computes in others, and onnxruntime runs it."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
from torch import nn

import entrepot as ep
from entrepot.exporters.kernels import KINDS
from tests.op_cases.torch_functions import Module

NO = torch.tensor(False)
TRUTHS = {
    "where": lambda c, a: torch.where(c > 0, a, a.flip(0)),
    "where_true": lambda c, a: torch.where(c > 0, True, a),
    "where_else_true": lambda c, a: torch.where(c > 0, a, ~NO),
    "where_rows": lambda c, a: torch.where(c[:, :1] > 0, a, a[:1]),
    "masked_fill": lambda c, a: a.masked_fill(c > 0, False),
    "masked_fill_true": lambda c, a: a.masked_fill(c > 0, True),
    "where_else_false": lambda c, a: torch.where(c > 0, a, NO),
    "unique": lambda c, a: torch.unique(a),
    "hstack": lambda c, a: torch.hstack([a, a]),
    "pad": lambda c, a: F.pad(a, (1, 2), value=True),
}
NARROW = {
    "where": lambda c, a: torch.where(c > 0, a, a + 1),
    "clamp": lambda c, a: a.clamp(0, 3),
    "maximum": lambda c, a: torch.maximum(a, a.flip(0)),
    "cumsum": lambda c, a: a.cumsum(1, dtype=a.dtype),
    "tril": lambda c, a: a.tril(),
    "topk": lambda c, a: a.topk(2, 1)[0],
    "argmax": lambda c, a: a.argmax(1),
    "pad": lambda c, a: F.pad(a, (1, 2), value=3),
    "nonzero": lambda c, a: a.nonzero(),
    "unique": lambda c, a: torch.unique(a),
    "relu": lambda c, a: torch.relu(a),
    "max_pool": lambda c, a: F.max_pool2d(a[None, None], 2, 1, 1),
}
STACKED = {
    "hstack": lambda x, y: torch.hstack([x, y]),
    "vstack_of_rows": lambda x, y: torch.vstack([x[0], y]),
    "dstack": lambda x, y: torch.dstack([x, y]),
    "column_stack_of_columns": lambda x, y: torch.column_stack([x[:, 0], y]),
    "atleast_1d": lambda x, y: torch.atleast_1d(x.sum(), y),
    "atleast_3d": lambda x, y: torch.atleast_3d(x.sum(), x[0], y),
}
ADDED = {
    "scatter_add": lambda i, x: torch.zeros(5, 4, dtype=x.dtype).scatter_add(0, i.expand_as(x), x),
    "index_add": lambda i, x: torch.zeros(5, 4, dtype=x.dtype).index_add(0, i.flatten(), x),
    "index_put": lambda i, x: torch.zeros(5, 4, dtype=x.dtype).index_put((i.flatten(),), x, accumulate=True),
    "scatter_amax": lambda i, x: torch.zeros(5, 4, dtype=x.dtype).scatter_reduce(0, i.expand_as(x), x, "amax"),
}


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 3).round()


def check(function, sample, other):
    """The file gives in onnxruntime alone what torch gives, for values of other sizes."""
    model = ep.export(Module(function), sample, verify=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, {name: each.numpy() for name, each in zip(names, other, strict=True)})
    wanted = function(*other)
    for one, tensor in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(one, tensor.numpy(), strict=True)


@pytest.mark.parametrize("name", TRUTHS)
def test_truth_values(name):
    def values(rows, seed):
        return drawn(rows, 4, seed=seed), drawn(rows, 4, seed=seed + 1) > 0

    check(TRUTHS[name], values(3, 0), values(5, 2))


def test_a_constant_decides_most_of_a_choice_between_truth_values():
    def kinds(name):
        model = ep.export(Module(TRUTHS[name]), (drawn(3, 4), drawn(3, 4) > 0), verify=False)
        return [node.op_type for node in model.ir.graph]

    assert kinds("where_true") == ["Greater", "Or"]
    assert kinds("masked_fill") == ["Greater", "Not", "And"]
    assert kinds("where_else_false") == ["Greater", "And"]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int64], ids=str)
@pytest.mark.parametrize("name", NARROW)
def test_whole_numbers(name, dtype):
    def values(rows, seed):
        return drawn(rows, 4, seed=seed), drawn(rows, 4, seed=seed + 1).to(dtype)

    if name == "max_pool" and dtype in (torch.int8, torch.uint8, torch.int16):
        dtype = torch.int32  # torch has none of those
    check(NARROW[name], values(3, 0), values(5, 2))


@pytest.mark.parametrize("name", STACKED)
def test_what_is_stacked_after_it_got_axes(name):
    check(STACKED[name], (drawn(3, 4), drawn(3, 4, seed=1)), (drawn(5, 4), drawn(5, 4, seed=1)))


@pytest.mark.parametrize("name", ADDED)
def test_halves_that_are_added_up_at_places(name):
    places = torch.tensor([[0], [2], [2]])
    check(ADDED[name], (places, drawn(3, 4).half()), (places.flip(0), drawn(3, 4, seed=2).half()))


def test_doubles_that_are_not_zero():
    class Places(nn.Module):
        def forward(self, x):
            return x.nonzero()

    model = ep.export(Places(), drawn(3, 4).double(), verify=False)
    x = np.array([[0.0, -0.0, np.nan, 5e-324]])
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], torch.from_numpy(x).nonzero().numpy())


NORMS = {
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25, -0.5, 2.0, 0.0], dtype=x.dtype)),
    "prelu_of_one": lambda x: F.prelu(x, torch.tensor([0.25], dtype=x.dtype)),
    "group_norm": lambda x: F.group_norm(x, 2, torch.arange(4.0, dtype=x.dtype), torch.arange(4.0, dtype=x.dtype)),
    "group_norm_alone": lambda x: F.group_norm(x, 2, eps=0.1),
    "instance_norm": lambda x: F.instance_norm(x, weight=torch.arange(4.0, dtype=x.dtype)),
}


@pytest.mark.parametrize("name", NORMS)
def test_layers_of_doubles(name):
    model = ep.export(Module(NORMS[name]), drawn(2, 4, 3).double(), verify=False)
    session, x = onnxruntime.InferenceSession(model.to_proto().SerializeToString()), drawn(3, 4, 7, seed=2).double()
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(found, NORMS[name](x).numpy(), rtol=1e-13, atol=1e-13)


def test_the_table_says_what_onnxruntime_has():
    """Of whole numbers and truth values: halves it casts itself."""
    kept = {f"tensor({name})" for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")}
    wrong = {}
    for op in sorted(KINDS.keys() - {"ScatterND", "ScatterElements"}):  # which lack something only when they add up
        schema = onnx.defs.get_schema(op, 20)
        main = schema.inputs[1 if op == "Where" else 0].type_str
        allowed = next(each for each in schema.type_constraints if each.type_param_str == main).allowed_type_strs
        has = {
            kind
            for kernel in get_all_opkernel_def()
            if (kernel.op_name, kernel.domain, kernel.provider) == (op, "", "CPUExecutionProvider")
            and kernel.version_range[0] <= schema.since_version <= kernel.version_range[1]
            for kind in kernel.type_constraints.get(main, ())
        }
        said = {f"tensor({kind.name.lower()})" for kind in KINDS[op]}
        if differing := (has ^ said) & kept & set(allowed):
            wrong[op] = sorted(differing)
    assert not wrong
