"""Axes that depend on one another vary together, and the file says how: ``past + sequence``, ``2*batch``."""

import numpy as np
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


class Decoder(nn.Module):
    """Attention over a past and what is new, with an exact mask."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv = nn.Embedding(11, 4), nn.Linear(4, 12)

    def forward(self, ids, mask, past_k, past_v):
        q, k, v = self.qkv(self.embed(ids)).chunk(3, -1)
        k, v = torch.cat([past_k, k], 1), torch.cat([past_v, v], 1)
        scores = q @ k.transpose(1, 2) + (1 - mask[:, None].float()) * -1e4
        return scores.softmax(-1) @ v, k, v


class Padding(nn.Module):
    """As many take it: a mask that is too short is padded, one that is too long is cut."""

    def forward(self, x, mask, past):
        keys = torch.cat([past, x], 1)
        if (missing := keys.shape[1] - mask.shape[1]) > 0:
            mask = F.pad(mask, (0, missing))
        if mask.shape[1] > keys.shape[1]:
            mask = mask[:, : keys.shape[1]]
        return keys.cumsum(1) * mask


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def decoder_call(batch, new, past):
    ids = torch.arange(batch * new).reshape(batch, new) % 11
    return ids, torch.ones(batch, new + past, dtype=torch.int64), random(batch, past, 4), random(batch, past, 4)


def padding_call(batch, new, past):
    return random(batch, new), random(batch, new + past), random(batch, past)


def discounted(rewards, values):
    """From the last step back to the first, beside the value of the state that comes after all."""
    found, last = torch.zeros_like(rewards), 0.0
    for t in reversed(range(rewards.shape[0])):
        last = rewards[t] + 0.9 * last
        found[t] = last
    return found + values[:-1]


def vectors(*sizes):
    return tuple(random(size) for size in sizes)


def rollout(x, known):
    """A step for each row, and two more with what is known of the time after them; the first column stays apart."""
    state = x.new_zeros(3)
    for row in x:
        state = torch.tanh(state + row)
    for ahead in range(2):
        row = torch.cat([state[None, :1], known[len(x) + ahead : len(x) + ahead + 1]], 1)
        state = torch.tanh(state + row[0])
    return state


CASES = {
    "past and new": (Decoder(), decoder_call, [(2, 3, 5), (1, 1, 9), (3, 4, 1)], ("batch", "past + sequence")),
    "past and one": (Decoder(), decoder_call, [(1, 1, 5), (2, 3, 4), (1, 7, 1)], ("batch", "past + sequence")),
    "padded": (Padding(), padding_call, [(2, 3, 5), (1, 1, 9), (4, 6, 2)], ("batch", "past + x_dim1")),
    "twice": (Function(lambda x, y: torch.cat([x, x]) + y), vectors, [(5, 10), (7, 14), (1, 2)], ("2*batch",)),
    "one more": (Function(lambda x, y: x * (y[1:] - y[:-1])), vectors, [(5, 6), (8, 9), (1, 2)], ("batch + 1",)),
    "one more than a loop takes": (Function(discounted), vectors, [(5, 6), (8, 9), (2, 3)], ("batch + 1",)),
    "known beyond": (
        Function(rollout),
        lambda a, b: (random(a, 3), random(b, 2)),
        [(4, 6), (7, 9), (1, 3)],
        ("batch + 2",),
    ),
    "product": (
        Function(lambda x, z, y: (x[:, None] * y).reshape(-1) + z),
        lambda a, b: (random(a), random(a * b), random(b)),
        [(5, 7), (3, 2), (1, 4)],
        ("batch*y_dim0",),
    ),
    "quotient": (
        Function(lambda x, y: F.avg_pool1d(x[None], 4)[0] + y),
        lambda a, b: (random(a, b), random(a, b // 4)),
        [(2, 22), (3, 41), (1, 4)],
        ("batch", "x_dim1//4"),
    ),
    "three parts": (
        Function(lambda a, d, b, c: torch.cat([a, b, c], 1) * d),
        lambda a, b, c: (random(2, a), random(2, a + b + c), random(2, b), random(2, c)),
        [(3, 4, 5), (2, 9, 1)],
        ("batch", "a_dim1 + b_dim1 + c_dim1"),
    ),
    "square": (
        Function(lambda x, y: (x[:, None] * x).reshape(-1) + y),
        lambda n: (random(n), random(n * n)),
        [(3,), (5,), (1,)],
        ("batch*batch",),
    ),
    "skips": (
        Function(lambda x, y, z: F.interpolate(F.interpolate(x, scale_factor=2) + y, scale_factor=2) + z),
        lambda n: (random(2, 3, n), random(2, 3, 2 * n), random(2, 3, 4 * n)),
        [(5,), (3,), (8,)],
        ("batch", "x_dim1", "2*x_dim2"),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def exported(request):
    module, call, sizes, expected = CASES[request.param]
    return module.eval(), call, sizes, expected, ep.export(module, call(*sizes[0]))


def test_an_axis_that_follows_from_others_is_named_by_a_formula(exported):
    *_, expected, model = exported
    found = model.inputs[1].shape
    assert tuple(dim for dim in found if not isinstance(dim, int))[-1] == expected[-1]
    assert f"{model.inputs[1].name}.{found.index(expected[-1])} == {expected[-1]}" in model.conditions
    assert model.report.ok


def test_other_sizes_give_what_the_module_gives(exported):
    module, call, sizes, _, model = exported
    session = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    for each in sizes:
        args = call(*each)
        feeds = {spec.name: array.numpy() for spec, array in zip(model.inputs, args, strict=True)}
        with torch.no_grad():
            expected = module(*args)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other, ours in zip(
            expected, session.run(None, feeds), ep.Session(model).run(feeds).values(), strict=True
        ):
            np.testing.assert_allclose(other, one.numpy(), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(ours, one.numpy(), rtol=1e-4, atol=1e-5)


def test_inputs_that_break_a_relation_are_refused_by_our_session_and_on_request_by_the_graph():
    module = Function(lambda x, y: x.repeat_interleave(2) + y[:1])
    model = ep.export(CASES["past and new"][0], decoder_call(2, 3, 5), checks=True)
    assert module is not None
    feeds = {spec.name: array.numpy() for spec, array in zip(model.inputs, decoder_call(2, 3, 5), strict=True)}
    feeds["mask"] = np.ones((2, 1), np.int64)  # which broadcasts
    with pytest.raises(ep.InputError, match=r"axis 1 of 'mask' is 1, but 'past \+ sequence' is 8"):
        ep.Session(model).run(feeds)
    session = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match=r"needs mask.1 == past \+ sequence"):
        session.run(None, feeds)


@pytest.mark.parametrize("opset", [13, 18, 23])
def test_a_model_with_relations_goes_to_other_opsets_and_through_a_file(opset, tmp_path):
    model = ep.export(CASES["past and one"][0], decoder_call(1, 1, 5), opset=opset)
    model.save(tmp_path / "decoder.onnx")
    again = ep.load(tmp_path / "decoder.onnx")
    assert again.inputs[1].shape == ("batch", "past + sequence")
    assert ep.verify(model, ep.simplify(again)).ok


NAMES = {
    "ids": {0: "batch", 1: "new"},
    "mask": {0: "batch", 1: "old + new"},
    "past_k": {0: "batch", 1: "old"},
    "past_v": {0: "batch", 1: "old"},
}


def named(mask):
    return ep.export(CASES["past and new"][0], decoder_call(2, 3, 5), dynamic={**NAMES, "mask": {0: "batch", 1: mask}})


@pytest.mark.parametrize("mask", ["old + new", "new+old", "both"])
def test_users_name_relations_or_have_them_found(mask):
    model = named(mask)
    assert [spec.shape[1] for spec in model.inputs] == ["new", "new + old", "old", "old"]
    assert model.report.ok


def test_a_mask_that_the_module_pads_is_captured_as_its_users_name_it():
    names = {"x": {1: "new"}, "mask": {1: "both"}, "past": {1: "old"}}
    model = ep.export(Padding(), padding_call(2, 3, 5), dynamic=names)
    assert [spec.shape for spec in model.inputs] == [(2, "new"), (2, "new + old"), (2, "old")]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("old + newer", "'newer + old' is a formula over 'newer', which is the name of no axis"),
        ("old - new", "'old - new' is 2 in the sample, but axis 1 is 8"),
        ("old new", "'old new' cannot name an axis"),
        ("8", "'8' cannot name an axis"),
    ],
)
def test_a_formula_that_does_not_fit_is_refused(mask, message):
    with pytest.raises(ep.InputError) as caught:
        named(mask)
    assert message in str(caught.value)


def test_an_axis_that_follows_from_one_that_is_not_named_is_refused():
    with pytest.raises(ep.ConversionError, match=r"axis 1 of 'mask' cannot be dynamic as 'both'"):
        ep.export(CASES["past and new"][0], decoder_call(2, 3, 5), dynamic={"mask": {1: "both"}})


class Positions(nn.Module):
    """Positions are counted in the mask and cut off where the past ends; two layers have pasts of their own."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(11, 4), nn.Embedding(40, 4)

    def forward(self, ids, mask, first, second):
        places = (mask.cumsum(1) * mask)[:, first.shape[1] :]
        x = self.embed(ids) + self.place(places)
        length = first.shape[1] + ids.shape[1]
        seen = F.pad(mask, (0, max(0, length - mask.shape[1])))[:, None].float()
        for past in (first, second):
            keys = torch.cat([past, x], 1)
            x = ((x @ keys.transpose(1, 2)) * seen).softmax(-1) @ keys
        return x


def positions_call(batch, new, past):
    ids = torch.arange(batch * new).reshape(batch, new) % 11
    return ids, torch.ones(batch, past + new, dtype=torch.int64), random(batch, past, 4), random(batch, past, 4) + 1


def test_a_step_of_one_token_shows_what_more_tokens_need():
    module = Positions().eval()
    model = ep.export(module, positions_call(1, 1, 5), progress=False)
    assert [list(map(str, each.shape))[:2] for each in model.inputs] == [
        ["batch", "sequence"],
        ["batch", "first_dim1 + sequence"],
        ["batch", "first_dim1"],
        ["batch", "first_dim1"],
    ]
    call = positions_call(3, 2, 8)
    run = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {each.name: tensor.numpy() for each, tensor in zip(model.inputs, call, strict=True)}
    np.testing.assert_allclose(run.run(None, feeds)[0], module(*call).detach().numpy(), atol=1e-5)


class Recurrent(nn.Module):
    """New tokens go one by one through a recurrence, and meet all of a past in attention."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(11, 4), nn.GRUCell(4, 4)

    def forward(self, ids, mask, past):
        x, state, steps = self.embed(ids), past.new_zeros(ids.shape[0], 4), []
        for at in range(ids.shape[1]):
            state = self.cell(x[:, at], state)
            steps.append(state)
        x = torch.stack(steps, 1)
        keys = torch.cat([past, x], 1)
        return (x @ keys.transpose(1, 2) + (1 - mask[:, None].float()) * -1e4).softmax(-1) @ keys


def test_a_length_that_python_loops_over_is_still_a_part_of_another():
    module = Recurrent().eval()
    ids, mask, past, _ = decoder_call(2, 3, 5)
    model = ep.export(module, (ids, mask, past), progress=False)
    found = [list(map(str, each.shape))[:2] for each in model.inputs]
    assert found == [["batch", "sequence"], ["batch", "past + sequence"], ["batch", "past"]]
    ids, mask, past, _ = decoder_call(1, 6, 2)
    run = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    (result,) = run.run(None, {"ids": ids.numpy(), "mask": mask.numpy(), "past": past.numpy()})
    np.testing.assert_allclose(result, module(ids, mask, past).detach().numpy(), atol=1e-5)


class OfGrid(nn.Module):
    """Tokens with the picture that they are of; in the sample, it is as wide as they have channels."""

    def forward(self, tokens, picture):
        height, width = picture.shape[-2:]
        return (tokens.transpose(1, 2).reshape(-1, 4, height, width) * picture).flatten(2)


def test_a_multiple_of_a_height_is_its_product_with_the_width():
    model = ep.export(OfGrid(), (torch.randn(2, 12, 4), torch.randn(2, 1, 3, 4)))
    assert model.inputs[0].shape == ("batch", "height*width", 4)
    tokens, picture = torch.randn(3, 35, 4), torch.randn(3, 1, 7, 5)
    (found,) = ep.Session(model).run({"tokens": tokens.numpy(), "picture": picture.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), OfGrid()(tokens, picture))


class Masked(nn.Module):
    """Patches of a picture, and a number for each."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 4, 4, 4)

    def forward(self, picture, noise):
        patches = self.embed(picture).flatten(2).transpose(1, 2)
        height, width = picture.shape[2] // 4, picture.shape[3] // 4
        pieces = picture.reshape(-1, 3, height, 4, width, 4).mean((1, 3, 5)).flatten(1)
        return patches * (noise + pieces)[..., None]


@pytest.mark.parametrize("size", [(16, 16), (16, 12), (20, 16)])
def test_as_many_patches_as_columns_are_a_coincidence(size):
    def call(batch, height, width):
        return random(batch, 3, height, width), random(batch, (height // 4) * (width // 4))

    module = Masked().eval()
    model = ep.export(module, call(2, *size), progress=False)
    assert model.inputs[0].shape == ("batch", 3, "height", "width")
    assert model.inputs[1].shape == ("batch", "(height//4)*(width//4)")
    picture, noise = call(3, 8, 28)
    (found,) = ep.Session(model).run({"picture": picture.numpy(), "noise": noise.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), module(picture, noise), rtol=1e-4, atol=1e-5)
