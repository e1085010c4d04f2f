"""What may be exported, with which samples: accepted where the meaning is clear, or answered with the line to write."""

import functools
import zlib

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

X = torch.randn(3, 4)
NET = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x)

    def encode(self, x, *, scale=2.0):
        return torch.tanh(self.linear(x)) * scale


ENCODER = Encoder()


def around(x, y):
    return NET(x) * 2 + y


def within():
    inner = nn.Linear(4, 2)

    def function(x):
        return inner(x).relu()

    return function


def plain(x):
    return torch.sigmoid(x) + 1


FUNCTIONS = {
    "around": (around, (X, X), {"net", "NET.0.weight", "NET.0.bias"}),
    "closure": (within(), X, {"inner.weight", "inner.bias"}),
    "method": (ENCODER.encode, X, {"module.linear.weight", "module.linear.bias"}),
    "partial": (functools.partial(ENCODER.encode, scale=3.0), X, {"module.linear.weight", "module.linear.bias"}),
    "lambda": (lambda x: x * 2, X, set()),
    "plain": (plain, {"x": X}, set()),
    "arrays": (plain, X.numpy(), set()),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_function_of_tensors_is_a_model(case):
    function, sample, weights = FUNCTIONS[case]
    NET.train()
    model = ep.export(function, sample)
    args = sample if isinstance(sample, tuple) else tuple(sample.values()) if isinstance(sample, dict) else (sample,)
    tensors = [torch.as_tensor(each) for each in args]
    assert NET.training
    with torch.no_grad():
        NET.eval()
        expected = function(*tensors).numpy()
    feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, tensors, strict=True)}
    np.testing.assert_allclose(ep.Session(model).run(feeds)["output"], expected, rtol=1e-5, atol=1e-6)
    assert model.inputs[0].shape[0] == "batch"
    assert weights - {"net"} <= set(model.ir.graph.initializers)


def test_a_function_is_verified_again():
    model = ep.export(plain, X)
    assert ep.verify(plain, model, X).ok
    assert model.metadata["entrepot.class"].endswith(":plain")


ANSWERED = [
    (Encoder, X, "Encoder is a class, not a model", "ep.export(Encoder(...), sample)"),
    (np.sin, np.ones(2), "neither 'sin' nor its sample", "lambda x: sin(x)"),
    (ENCODER, np.ones((3, 4)), "does not take the sample", "x.astype('float32')"),
    (ENCODER, 3.0, "contains no tensor", "torch.tensor(3.0)"),
    (ENCODER, [1.0, 2.0], "contains no tensor", "torch.tensor(1.0)"),
    (ENCODER, None, "needs a sample", "ep.export(module, x)"),
    (around, [X, X], "does not fit", "a tuple of positional arguments"),
    (5, X, "cannot export a builtins.int", "a model of PyTorch"),
]


@pytest.mark.parametrize(("obj", "sample", "message", "hint"), ANSWERED)
def test_anything_else_is_answered_with_the_line_to_write(obj, sample, message, hint):
    with pytest.raises(ep.InputError) as caught:
        ep.export(obj, sample)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_arrays_and_numbers_are_taken_beside_tensors():
    model = ep.export(lambda x, y, scale: (x + y) * scale, (X, X.numpy(), 2.0))
    assert [spec.name for spec in model.inputs] == ["x", "y"]
    assert "constant, so not inputs: scale = 2.0" in model.notes


# --- dynamic="all"


def scrambled(x):
    return x * (zlib.crc32(bytes(int(x.shape[1]))) % 97)


def test_all_is_every_axis_that_the_module_takes_at_other_sizes():
    assert ep.export(ENCODER, X, dynamic="all").inputs[0].shape == ("batch", 4)


def test_an_axis_that_all_cannot_have_is_an_error_with_every_reason():
    with pytest.raises(ep.ConversionError, match=r"x.1: the capture fixed it at test_accepted.py") as caught:
        ep.export(scrambled, torch.randn(3, 5), dynamic="all")
    assert "not in Python branches" in caught.value.hint


def test_what_stays_fixed_is_printed_with_reason_and_remedy():
    text = repr(ep.export(scrambled, torch.randn(3, 5)))
    assert "x.1 = 5" in text
    assert "the capture fixed it at test_accepted.py" in text
    assert "it can vary if" in text


def turned(x, y):
    return x + y if bool(x.sum() > 0) else x - y


PLAIN = {
    "a function in C": (torch.softmax, (torch.randn(2, 3), -1)),
    "a partial one": (functools.partial(torch.add, alpha=2), (torch.randn(2, 3), torch.randn(2, 3))),
    "of torch.nn": (nn.functional.gelu, (torch.randn(2, 3),)),
    "in TorchScript": ("turned", (torch.ones(2, 3), torch.randn(2, 3))),
}


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", PLAIN)
def test_functions_without_a_signature_are_exported(name):
    function, sample = PLAIN[name]
    if function == "turned":
        function = torch.jit.script(turned)
    model = ep.export(function, sample)
    for sign in (1, -1):
        given = [each * sign if isinstance(each, torch.Tensor) else each for each in sample]
        (found,) = ep.Session(model).run([each.numpy() for each in given if isinstance(each, torch.Tensor)]).values()
        np.testing.assert_allclose(found, function(*given).numpy(), atol=1e-6)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_frozen_script_is_exported():
    script = torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()))
    assert ep.export(script, torch.randn(4, 3)).report.ok


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.bag = nn.EmbeddingBag(10, 4, mode="max")

    def forward(self, rows, begins):
        return self.bag(rows, begins)


def test_a_module_is_tried_without_bags_and_the_process_lives():
    plain = torch.embedding_bag
    rows, begins = torch.arange(6), torch.tensor([0, 2, 3])
    model = ep.export(Largest(), (rows, begins))
    assert model.report.ok
    assert torch.embedding_bag is plain
