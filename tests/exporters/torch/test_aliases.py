"""Functions by their other names become the same graph."""

import pytest
import torch

import entrepot as ep
from entrepot.exporters.torch.lowering.translate import _registry
from entrepot.exporters.torch.translations.aliases import DECOMPOSITIONS
from entrepot.exporters.torch.upstream import OpOverload, get_onnx_implemented_overloads
from tests.sweeps.opinfo import operators

PAIRS = {
    "divide": "div", "true_divide": "div", "multiply": "mul", "subtract": "sub", "greater": "gt", "less_equal": "le",
    "special.expm1": "expm1", "special.erfc": "erfc", "special.sinc": "sinc",
}  # fmt: skip


def function(name):
    called = getattr(torch.special, name.removeprefix("special.")) if "." in name else getattr(torch, name)
    return lambda *args: called(*args)  # noqa: PLW0108 - a function of Python is a model, one of torch is not


@pytest.mark.parametrize(("alias", "name"), PAIRS.items())
def test_a_second_name_becomes_the_same_nodes_and_types(alias, name):
    x = torch.arange(1, 7).reshape(2, 3)
    args = (x,) if "special" in alias else (x, x + 2)
    models = [ep.export(function(each), args, dynamic=False) for each in (alias, name)]
    nodes, kinds = zip(
        *(([node.op_type for node in model.ir.graph], model.outputs[0].dtype) for model in models), strict=True
    )
    assert nodes[0] == nodes[1]
    assert kinds[0] == kinds[1]


def test_no_other_name_of_torch_has_a_translation_of_its_own():
    names = {alias.name.replace(".", "_") for info in operators() for alias in info.aliases}
    same = {"conv1d", "conv2d", "conv3d", "group_norm", "layer_norm", "maximum", "minimum", "det"}
    same |= {"linalg_matrix_exp"}  # the first name, by which torch captures the operator
    translated = {
        target
        for target in get_onnx_implemented_overloads(_registry(()))
        if isinstance(target, OpOverload) and target._schema.name.removeprefix("aten::") in names - same
    }
    assert {"divide", "multiply"} <= {target._schema.name.removeprefix("aten::") for target in translated}
    assert translated - set(DECOMPOSITIONS) == set()
