"""What verification says of translations that are right for values around zero only."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.lowering import translate
from entrepot.exporters.torch.sources.module import ModuleSource
from entrepot.exporters.torch.translations import decompositions
from entrepot.parity.plan import Case
from entrepot.parity.verify import verify
from tests.op_cases.torch_functions import Module

aten = torch.ops.aten
X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))

WRONG = {
    "log of a sigmoid": (aten.log_sigmoid.default, lambda x: x.sigmoid().log(), F.logsigmoid),
    "expm1 by exp": (aten.expm1.default, lambda x: x.exp() - 1, torch.expm1),
    "log1p by log": (aten.log1p.default, lambda x: (x + 1).log(), torch.log1p),
    "erfc by erf": (aten.erfc.default, lambda x: 1 - x.erf(), torch.erfc),
    "sign that keeps NaN": (aten.sign.default, lambda x: x / x.abs().clamp(min=1e-38), torch.sign),
    "sign of zero lost": (aten.signbit.default, lambda x: x < 0, torch.signbit),
    "halves rounded away from zero": (aten.round.default, lambda x: (x.abs() + 0.5).floor() * x.sign(), torch.round),
}


@pytest.fixture
def broken(monkeypatch):
    def replace(operator, function):
        table = {**decompositions(), operator: function}
        monkeypatch.setattr(translate, "decompositions", lambda: table)
        translate._decompositions.cache_clear()

    yield replace
    monkeypatch.undo()
    translate._decompositions.cache_clear()


@pytest.mark.parametrize("name", WRONG)
def test_a_translation_that_is_wrong_at_the_edges_is_refused_with_the_input(name, broken, monkeypatch):
    operator, wrong, function = WRONG[name]
    monkeypatch.setattr(ModuleSource, "ways", ModuleSource.ways[:1])  # TorchScript has translations of its own
    assert ep.export(Module(function), X).report.ok
    broken(operator, wrong)
    with pytest.raises(ep.VerificationError, match=r"in 'args\.0'|of 'args\.0'") as caught:
        ep.export(Module(function), X)
    assert all(run.edge for run in caught.value.report.failures)


def test_a_pair_of_zeros_is_met(broken):
    broken(aten.atan2.default, lambda y, x: 2 * (y / ((x * x + y * y).sqrt() + x)).atan())
    with pytest.raises(ep.VerificationError, match=r"edge values of 'args\.0' and 'args\.1'"):
        ep.export(Module(torch.atan2), (X, X.flip(0)))


class Network(nn.Module):
    """Convolution, normalisation, pooling, attention and a choice of the largest."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 5)

    def forward(self, x):
        y = F.max_pool2d(F.gelu(self.norm(self.conv(x))), 2).flatten(2).transpose(1, 2)
        y = self.attention(y, y, y)[0].mean(1)
        logits = self.head(F.layer_norm(y, (8,)))
        return logits, logits.softmax(-1), logits.argmax(-1), logits.topk(2).indices


@pytest.mark.parametrize("seed", range(3))
def test_networks_are_not_blamed_for_what_rounding_does_to_edge_values(seed):
    torch.manual_seed(seed)
    report = ep.export(Network(), torch.randn(2, 3, 8, 8), dynamic=False).report
    assert report.ok
    assert {run.edge for run in report.runs} == {"", "finite", "special"}


def test_where_only_kernels_disagree_about_nan_the_report_notes_it():
    report = ep.export(Module(lambda x: F.max_pool1d(x, 2)), X).report
    assert report.ok
    assert {run.provider for run in report.noted} == {"onnxruntime"}
    assert "onnxruntime differs for NaN or infinities" in report.summary()


class Halving(nn.Module):
    """A loop that goes on as long as its values say: for a NaN or an infinity perhaps for ever."""

    def forward(self, x):
        return torch.while_loop(lambda y: ~(y.abs().amax() < 1), lambda y: (y / 2,), (x,))[0]


def test_a_loop_that_may_not_end_is_given_no_edge_values():
    report = ep.export(Halving(), X * 9, dynamic=False).report
    assert report.ok
    assert not any(run.edge for run in report.runs)


class Masked(nn.Module):
    """Attention by torch's own module, with keys that may all be left out."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, left_out):
        return self.attention(x, x, x, key_padding_mask=left_out, need_weights=False)[0]


def test_rows_that_may_attend_to_nothing_are_0_in_torchs_own_attention_too():
    left_out = torch.zeros(2, 5, dtype=torch.bool)
    left_out[1] = True
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    module = Masked().eval()
    model = ep.export(module, (x, left_out))
    assert not module(x, left_out).isnan().any()
    assert ep.compare(module(x, left_out), ep.Session(model, providers="onnxruntime")(x, left_out))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_of_attention_in_halves_do_not_overflow(dtype):
    torch.manual_seed(0)
    module = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(dtype).eval()
    x = torch.randn(2, 5, 8, dtype=dtype)
    model = ep.export(module, x)
    assert ep.compare(module(1e4 * x), ep.Session(model)(1e4 * x))


def test_a_failure_at_the_sample_says_nothing_about_axes(broken):
    broken(aten.erfc.default, lambda x: x.erf())
    with pytest.raises(ep.VerificationError) as caught:
        ep.export(Module(torch.erfc), X)
    assert not caught.value.report.facts.fixed_axes


class Stencil(nn.Module):
    """Neighbours by their weights: what is infinite times zero depends on the formula."""

    def forward(self, x):
        return F.interpolate(x[None], scale_factor=1.7, mode="linear")[0]


def test_interpolation_in_float64_is_not_blamed_for_infinities_with_a_weight_of_zero():
    assert ep.export(Stencil(), X.double(), dynamic=False).report.ok


def test_gates_that_do_not_close_entirely_are_noted():
    """onnxruntime (1.31) leaves some of a state of ten thousand: what only a second opinion finds is no failure."""
    feeds = torch.full((3, 2, 4), 2.0), torch.full((1, 2, 6), 1e4)
    layer = nn.GRU(4, 6)
    model = ep.export(layer, feeds, progress=False, verify=False)
    names = [each.name for each in model.inputs]
    given = {name: each.numpy() for name, each in zip(names, feeds, strict=True)}

    class Torch:
        name = "torch"

        def run(self, feeds):
            found = layer(*(torch.from_numpy(feeds[name]) for name in names))
            return {out.name: each.detach().numpy() * 1.01 for out, each in zip(model.outputs, found, strict=True)}

    edge = Case("edge values", given, edge="finite")
    report = verify(Torch(), model, [edge])
    verdicts = {run.provider: run.verdict for run in report.runs}
    assert verdicts == {"cpu": "differs", "onnxruntime": "noted"}
    asked = verify(Torch(), model, [edge], providers=("onnxruntime",))
    assert [run.verdict for run in asked.runs] == ["differs"]


class SkipsMask(nn.Module):
    """Does something else where a mask hides nothing, but not while it is exported, as attention in transformers."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting() and bool(mask.all()):
            return x.flip(1)
        return x * mask


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_masks_without_gaps_are_tried_too(dtype: torch.dtype) -> None:
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]]).to(dtype)
    with pytest.raises(ep.VerificationError, match="masks of ones"):
        ep.export(SkipsMask(), (torch.randn(2, 3), mask), progress=False)
