"""Variances and standard deviations of any number of elements, also of none and of one."""

import pytest
import torch

import entrepot as ep

SPREADS = {
    "std": lambda x: x.std(0),
    "var of two axes": lambda x: x.var((0, 2)),
    "std with a correction": lambda x: x.std(0, correction=3),
    "var with half of one": lambda x: x.var(0, correction=0.5),
}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
def test_spreads_of_any_number_of_elements(spread):
    session = ep.Session(ep.export(spread, torch.randn(4, 3, 5)), providers=["onnxruntime"])
    for count in (0, 1, 2, 9):
        x = torch.randn(count, 3, 5)
        (found,) = session.run([x.numpy()]).values()
        torch.testing.assert_close(torch.from_numpy(found), spread(x), equal_nan=True)


def test_a_known_number_is_divided_by_at_once():
    model = ep.export(lambda x: x.std(-1), torch.randn(4, 5), dynamic={"x": {0: "count"}})
    nodes = [node.op_type for node in model.ir.graph]
    assert nodes == ["Cast", "ReduceMean", "Sub", "ReduceSumSquare", "Div", "Sqrt", "Cast"]
