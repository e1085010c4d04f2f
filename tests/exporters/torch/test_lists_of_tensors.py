"""Operators on lists of tensors, which are those of each tensor."""

import pytest
import torch

import entrepot as ep


class OfLists(torch.nn.Module):
    """A function of a list of tensors, the second of which is a parameter."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.rand(3) + 0.5)

    def forward(self, x):
        made = [x.abs() + 1, self.weight * 2]
        found = self.function(made, [self.weight, self.weight])
        return made if found is None else found


FORMS = {
    "a product": torch._foreach_mul,
    "a number": lambda xs, ws: torch._foreach_add(xs, 2.0),
    "numbers": lambda xs, ws: torch._foreach_div(xs, [2.0, 3.0]),
    "how much": lambda xs, ws: torch._foreach_add(xs, ws, alpha=0.5),
    "an exponent": lambda xs, ws: torch._foreach_pow(2.0, xs),
    "a bound": lambda xs, ws: torch._foreach_maximum(xs, 1.5),
    "bounds": torch._foreach_minimum,
    "alone": lambda xs, ws: torch._foreach_sqrt(xs),
    "written to": torch._foreach_mul_,
    "an exponent by name": lambda xs, ws: torch._foreach_pow(2.0, exponent=xs),
    "all by name": lambda xs, ws: torch._foreach_add(self=xs, other=ws, alpha=0.5),
    "between": lambda xs, ws: torch._foreach_lerp(xs, ws, 0.25),
    "products added": lambda xs, ws: torch._foreach_addcmul(xs, ws, ws, 0.5),
    "quotients added": lambda xs, ws: torch._foreach_addcdiv(xs, ws, ws, value=0.5),
    "numbers of quotients": lambda xs, ws: torch._foreach_addcdiv(xs, ws, ws, [0.5, 2.0]),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_operator_on_a_list_is_one_for_each_tensor(form):
    model = ep.export(OfLists(FORMS[form]), torch.randn(4, 3), progress=False)
    assert model.report.ok
    assert model.inputs[0].shape[0] == "batch"
