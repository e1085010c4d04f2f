"""Lists that one arm of a branch gives an item, and the other does not."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


def present(x, labels):
    """The mean over the classes that occur."""
    means = []
    for label in range(3):
        where = labels == label
        if where.sum() == 0:
            continue
        means.append((x * where).sum() / where.sum())
    return torch.stack(means).mean(), sum(means) / len(means)


def by_class(boxes, scores):
    """The best of each class, as detectors put them together; the number of classes varies."""
    found, kinds = [], []
    for kind in range(scores.shape[1]):
        best = scores[:, kind] > 0.5
        if not best.any():
            continue
        found.append(boxes[best])
        kinds.append(torch.full_like(scores[best, kind], kind))
    if not found:
        return boxes.new_zeros(0, 4), scores.new_zeros(0)
    return torch.cat(found), torch.cat(kinds)


def dropped(x, labels):
    """What is beyond the capacity of two experts stays as it is."""
    experts, left = [(labels == label).nonzero()[:, 0] for label in range(2)], []
    for at in range(2):
        if len(experts[at]) <= 2:
            continue
        left.append(experts[at][2:])
        experts[at] = experts[at][:2]
    result = x * 0
    for at in experts:
        result[at] = x[at] * 2
    if left:
        result[torch.cat(left)] = x[torch.cat(left)]
    return result, torch.cat(left + experts[:1])


def call(function, size, numbers):
    x = torch.randn(size, 4, generator=torch.Generator().manual_seed(size))
    if function is by_class:
        return x, torch.tensor(numbers, dtype=torch.float32).reshape(size, -1)
    if function is present:
        return x[:, 0], torch.tensor(numbers)
    return x, torch.tensor(numbers)


CASES = {
    "present": (present, [[0, 0, 1], [2, 0, 1, 1], [1], [2, 2]]),
    "by class": (by_class, [[1, 0, 0, 0, 0, 1], [1, 1, 1, 1], [0], [0, 1, 0, 0, 0, 0, 0, 1, 1]]),
    "dropped": (dropped, [[0, 0, 0, 1], [0, 1], [1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1]]),
}
ROWS = {"by class": [3, 2, 1, 3]}


@pytest.mark.parametrize("case", CASES)
def test_a_list_that_one_arm_gives_an_item_is_followed(case):
    function, each = CASES[case]
    calls = [call(function, size, numbers) for size, numbers in zip(ROWS.get(case, map(len, each)), each, strict=True)]
    module = nn.Module()
    module.forward = function
    model = ep.export(module, calls[0])
    other = onnxruntime.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    for args in calls:
        expected = function(*args)
        feeds = {spec.name: value.numpy() for spec, value in zip(model.inputs, args, strict=True)}
        for found in (ep.Session(model).run(feeds).values(), other.run(None, feeds)):
            for one, value in zip(expected, found, strict=True):
                np.testing.assert_allclose(value, one.numpy(), rtol=1e-5, atol=1e-6)


def shortened(a, b):
    """Of several tensors, all where one of them is long."""
    pair = [a, b]
    if any(each.shape[0] > 8 for each in pair):
        pair = [each[:8] * 2 for each in pair]
    longest = max(each.shape[0] for each in pair)
    return torch.stack([nn.functional.pad(each, (0, 0, 0, longest - each.shape[0])) for each in pair])


def replaced(a, b):
    """The list from before goes by another name as well."""
    kept = pair = [a.sum(0), b.sum(0)]
    names = known = {"a": a[0]}
    if a.shape[0] > b.shape[0]:
        pair = [a[0], b[0]]
    else:
        known = {"a": a[-1]}
    return pair[0] + pair[1], kept[0] + kept[1], names["a"], known["a"]


@pytest.mark.parametrize("function", [shortened, replaced])
def test_another_list_may_take_the_place_of_one_in_one_arm(function):
    def rows(*counts):
        return tuple(torch.randn(count, 3, generator=torch.Generator().manual_seed(count)) for count in counts)

    model = ep.export(function, rows(5, 4), progress=False)
    assert "captured with its branches and loops rewritten" in str(model)
    for counts in ((5, 4), (4, 5), (9, 2), (2, 12), (1, 1)):
        args = rows(*counts)
        expected = function(*args)
        found = ep.Session(model).run([each.numpy() for each in args]).values()
        for one, value in zip(expected if isinstance(expected, tuple) else [expected], found, strict=True):
            np.testing.assert_allclose(value, one.numpy(), rtol=1e-5, atol=1e-6)


def test_an_empty_list_of_pieces_is_false():
    def forward(x):
        pieces = []
        for row in x:
            if row.sum() > 0:
                pieces.append(row[row > 0])
        return torch.cat(pieces) if pieces else x.new_zeros(1)

    model = ep.export(forward, torch.tensor([[1.0, 2.0], [-1.0, 3.0], [-1.0, -1.0]]))
    session = ep.Session(model)
    np.testing.assert_array_equal(session.run([-np.ones((2, 2), np.float32)])["output"], [0])
    np.testing.assert_array_equal(session.run([np.array([[4, 5], [-1, 7], [8, -9]], np.float32)])["output"], [4, 5, 7])


def test_pieces_at_turns_of_loops_may_be_put_into_a_list_in_one_arm():
    """The best class of each frame, up to two times, until one is none: frames are cut out as pieces of length one."""

    def forward(x):
        found, state = [], torch.zeros(1, 4)
        for t in range(x.size(0)):
            for _ in range(2):
                best = (x[t : t + 1] + state).argmax(-1)
                if best.item() == 0:
                    break
                found.append(best)
                state = state - 0.5 * torch.nn.functional.one_hot(best, 4)
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.long)

    def frames(count):
        return torch.randn(count, 4, generator=torch.Generator().manual_seed(count))

    model = ep.export(forward, frames(6), progress=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for given in (frames(6), frames(9), frames(1), -frames(6), torch.eye(4)[:1]):
        (found,) = session.run(None, {"x": given.numpy()})
        assert found.tolist() == forward(given).tolist()
