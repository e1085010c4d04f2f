"""Truths that Python reads of tensors, and functions that are called by others: a file follows both values."""

from __future__ import annotations

import functools

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep

UP = torch.arange(1.0, 13.0).reshape(3, 4)


class Matched(nn.Module):
    """What a truth is compared with is a number."""

    def forward(self, x):
        match int(x.sum() > 0):
            case 1 | 2:
                return x
            case _:
                return -x


class MatchedBySign(nn.Module):
    def forward(self, x):
        match torch.sign(x.sum()).item():
            case 0:
                y = x + 1
            case -1 as sign:
                y = x * (sign + 3)
            case sign if sign > 0:
                y = x * 5
        return y


class EqualToOne(nn.Module):
    def forward(self, x):
        known = (x.sum() > 0).item()
        return x if known == 1 else -x


class UnequalTruths(nn.Module):
    def forward(self, x):
        return x if (x.sum() > 0).item() != (x[0, 0] > 5).item() else -x


class IsTrue(nn.Module):
    def forward(self, x):
        known = bool(x.sum() > 0)
        if known is True:
            return x
        return -x if known is False else x * 7


class AsNumbers(nn.Module):
    def forward(self, x):
        known = (x.sum() > 0).item()
        return x * float(known) + int(known) + x * known + (known + 2)


class Anywhere(nn.Module):
    def forward(self, x):
        if any(each.sum() > 40 for each in (x, -x * 0.1)) or not all(each.sum() > 0 for each in (x, x[0])):
            return x * 2
        return x - 1


def doubled(x, limit):
    if x.sum() > limit:
        return x * 2
    return x - 1


class Partial(nn.Module):
    def __init__(self):
        super().__init__()
        self.function = functools.partial(doubled, limit=1.0)

    def forward(self, x):
        return self.function(x)


class Doubling:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, x):
        return doubled(x, self.limit)


class CallableObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.function = Doubling(1.0)

    def forward(self, x):
        return self.function(x)


class Lambdas(nn.Module):
    def __init__(self):
        super().__init__()
        self.functions = [lambda x: x * 2 if x.sum() > 0 else x - 1, lambda x, by=3: x * by if x.max() > 0 else x - by]

    def forward(self, x):
        inner = lambda y: y + 1 if y.min() < 0 else y  # noqa: E731 - such lambdas are what is tested
        return self.functions[0](x) + self.functions[1](x) + inner(x)


class Mapped(nn.Module):
    def step(self, x):
        return doubled(x, 0.0)

    def joined(self, total, x):
        return total + x if x.sum() > 0 else total - x

    def forward(self, x):
        return functools.reduce(self.joined, map(self.step, [x, -x]))


class Checkpointed(nn.Module):
    def step(self, x):
        return doubled(x, 0.0)

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.step, x, use_reentrant=False)


KINDS = (
    Matched,
    MatchedBySign,
    EqualToOne,
    UnequalTruths,
    IsTrue,
    AsNumbers,
    Anywhere,
    Partial,
    CallableObject,
    Lambdas,
    Mapped,
    Checkpointed,
)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_follows_truths_whichever_value_they_have_in_the_sample(kind, sign):
    module = kind().eval()
    model = ep.export(module, UP * sign)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for given in (UP, -UP, UP[:2] * 3, -UP[:, :3], torch.zeros(3, 4)):
        (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        np.testing.assert_allclose(found, module(given).numpy(), rtol=1e-6)


def test_truths_that_no_graph_follows_are_refused_or_checked_by_the_file():
    class ByTruth(nn.Module):
        def forward(self, x):
            return x * {True: 1.0, False: -1.0}[(x.sum() > 0).item()]

    with pytest.raises(ep.ConversionError, match=r"test_truths\.py"):  # without rows, it decides otherwise
        ep.export(ByTruth(), UP)
    model = ep.export(ByTruth(), -UP)
    with pytest.raises(ep.ExecutionError, match=r"to be False"):
        ep.Session(model).run(UP.numpy())


def test_truths_of_sizes_are_equal_to_numbers_and_to_one_another():
    class Squares(nn.Module):
        def forward(self, x):
            same = (x.shape[0] > 4) == (x.shape[1] > 4)
            return x * 2 if same == 1 else x - 1

    module = Squares()
    model = ep.export(module, torch.ones(3, 5))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for shape in ((3, 5), (5, 5), (2, 2), (6, 3)):
        given = torch.ones(shape)
        (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        np.testing.assert_allclose(found, module(given).numpy())


def test_a_condition_of_bytes_chooses_as_one_of_truths():
    class Chosen(nn.Module):
        def forward(self, x, mask):
            for row in range(x.shape[0]):
                x = torch.where(mask[row], x, x * 2)
            return x

    module = Chosen()
    mask = (UP > 4).to(torch.uint8)
    model = ep.export(module, (UP, mask))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for rows in (3, 2):
        given = {"x": UP[:rows].numpy(), "mask": (UP[:rows] > 6).to(torch.uint8).numpy()}
        (found,) = session.run(None, given)
        expected = module(torch.tensor(given["x"]), torch.tensor(given["mask"]))
        np.testing.assert_allclose(found, expected.numpy())


def test_sizes_are_rounded_to_the_even_number_where_python_does():
    class Pooled(nn.Module):
        def forward(self, x):
            return torch.nn.functional.pad(x, (0, round(x.shape[-1] / 4), 0, round(x.shape[-2] / 2.5)))

    module = Pooled()
    model = ep.export(module, torch.ones(2, 9, 10))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    assert not any(isinstance(size, int) for size in model.inputs[0].shape)
    for shape in ((1, 5, 10), (2, 4, 14), (3, 10, 6), (1, 7, 18)):
        given = torch.ones(shape)
        (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        np.testing.assert_array_equal(found, module(given).numpy())
