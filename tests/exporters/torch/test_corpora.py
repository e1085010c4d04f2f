"""The corpora of exports: a few cases of each, and the judge itself. ``make export-sweep`` runs all of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep
from tests.export_cases import cases
from tests.export_cases.architectures.kinds import KINDS
from tests.export_cases.architectures.shrinking import shrunk
from tests.export_cases.case import Built, Case
from tests.sweeps.exports import judge
from tests.sweeps.outcome import reason

SAMPLE = (
    "scripted/scripted_loop_and_branch",
    "scripted/scripted_part",
    "attention/grouped_query_block",
    "containers/nested_batch",
    "decoding/beam_search",
    "everyday/residual_network",
    "generative/vector_quantiser",
    "graphs/graph_attention",
    "messages/attention_without_the_row_for_the_rest",
    "messages/graphs_are_counted_around_forward",
    "packed/click_prediction",
    "quantised/int4_weights_packed",
    "recurrence/gru_bidirectional",
    "recurrence/states_between_others",
    "routing/experts_one_after_the_other",
    "sizes/alibi_attention",
    "sizes/smaller_pictures_than_the_table_is_for",
    "space/pictures_moved_by_fields",
    "state/tied_embeddings",
    "routing/tokens_pruned_by_attention",
    "speech/enhancement_at_its_length",
    "vision/squeeze_and_excitation",
    "image-classification/vit",
    "causal-lm-past/gpt2",
    "caches/next_step_with_windows",
    "decided/the_last_token_on_either_side",
    "composed_sequences/each_on_a_half-distances-best_half-4x4x8",
    "composed_sequences/twice-buckets-block_by_block-3x8x8",
    "composed_pictures/at_twice_the_size-row_upon_row-reflected_border-2x4x8x8",
    "composed_closures/until_it_settles-block_by_block-buckets-2x6x8",
    "composed_python/either_by_mean-next_power_of_two-folded_to_one-2x6x8",
)
TORCH = ("modules", "architectures", "calls", "composed")
CASES = {case.name: case for corpus in TORCH for case in cases(corpus)}


def test_a_corpus_has_no_name_twice():
    assert len(CASES) == sum(len(cases(corpus)) for corpus in TORCH)
    assert len(CASES) > 400


def test_nearly_every_kind_of_architecture_is_there():
    found = {case.family for case in cases("architectures")}
    assert found <= {*KINDS}
    assert len(found) > 15


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_corpora_is_exported_at_every_size(name):
    outcome = judge(CASES[name])
    assert (outcome.verdict, outcome.why, outcome.lacks) == ("passed", "", "")


class Offset(nn.Module):
    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset


def _verdict(make) -> str:
    return judge(Case("judge/case", "modules", make)).verdict


def test_a_result_that_differs_is_wrong(monkeypatch):
    export = ep.export
    monkeypatch.setattr(ep, "export", lambda _module, sample, **rest: export(Offset(2.0), sample, **rest))
    assert _verdict(lambda: Built(Offset(1.0), ((torch.ones(3),),))) == "wrong"


def test_a_size_that_the_file_does_not_take_is_static(monkeypatch):
    export = ep.export
    monkeypatch.setattr(ep, "export", lambda module, sample, **rest: export(module, sample, dynamic=False, **rest))
    assert _verdict(lambda: Built(Offset(1.0), ((torch.ones(3),), (torch.ones(4),)))) == "static"


def test_no_file_is_refused():
    class Draws(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.rand(3)

    assert _verdict(lambda: Built(Draws(), ((torch.ones(3),),))) == "refused"


def test_a_case_that_its_module_does_not_take_is_invalid():
    assert _verdict(lambda: Built(nn.Linear(3, 2), ((torch.ones(4),),))) == "invalid"


def test_an_error_that_is_not_ours_is_a_crash(monkeypatch):
    def export(*_args, **_rest):
        raise IndexError

    monkeypatch.setattr(ep, "export", export)
    assert _verdict(lambda: Built(Offset(1.0), ((torch.ones(3),),))) == "crashed"


def test_reasons_are_counted_without_places():
    first = "at (2, 3): x.0: the capture fixed it at net.py:12 in forward: y = x @ w (2 != 3)"
    assert reason(first) == reason(first.replace("12", "345").replace("x @ w", "w @ x").replace("x.0", "y.1"))


def test_shrinking_keeps_what_is_equal_or_a_multiple():
    large = {
        "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
        "layer_types": ["full"] * 12, "vocab_size": 32000, "pad_token_id": 31999,
        "vision_config": {"hidden_size": 1024, "out_hidden_size": 768, "patch_size": 14, "image_size": 84, "depth": 9},
    }  # fmt: skip
    small = shrunk(large, divisor=16, layers=2)
    assert small["hidden_size"] == small["vision_config"]["out_hidden_size"] == 48
    assert small["hidden_size"] % small["num_attention_heads"] == 0
    assert (small["num_hidden_layers"], len(small["layer_types"]), small["vision_config"]["depth"]) == (2, 2, 2)
    assert small["pad_token_id"] < small["vocab_size"] == 128
    assert small["vision_config"]["image_size"] % small["vision_config"]["patch_size"] == 0


def test_shrinking_leaves_one_layer_of_each_kind_where_nothing_says_how_many_there_are():
    large = {"layers_block_type": ["linear", "moe", "linear", "full", "moe", "linear"], "block_sizes": [4, 4, 4]}
    small = shrunk(large, divisor=16, layers=2)
    assert small == {"layers_block_type": ["linear", "moe", "full"], "block_sizes": [2, 2, 2]}


def test_shrinking_leaves_few_steps_and_short_pieces():
    large = {"attention_window": [512, 512], "block_size": 64, "linear_num_heads": 64, "hc_sinkhorn_iters": 20}
    small = shrunk(large | {"max_text_length": 500}, divisor=16, layers=2)
    assert small == {
        "attention_window": [128, 128], "block_size": 64, "linear_num_heads": 4, "hc_sinkhorn_iters": 4,
        "max_text_length": 4,
    }  # fmt: skip


def test_shrinking_keeps_heads_and_periods_possible_and_leaves_no_foreign_backbone():
    large = {
        "vision_config": {"hidden_size": 1152, "num_attention_heads": 16, "num_key_value_heads": 16},
        "text_config": {"d_model": 1024, "num_heads": 16, "d_head": 64},
        "attn_layer_period": 8, "attn_layer_offset": 4, "num_hidden_layers": 32,
        "backbone_config": {"model_type": "timm_backbone", "backbone": "resnet50", "out_indices": [2, 3]},
    }  # fmt: skip
    small = shrunk(large, divisor=16, layers=2)
    vision = small["vision_config"]
    assert (vision["hidden_size"], vision["num_attention_heads"], vision["num_key_value_heads"]) == (72, 4, 4)
    assert small["text_config"] == {"d_model": 64, "num_heads": 16, "d_head": 4}
    assert (small["attn_layer_period"], small["attn_layer_offset"]) == (2, 1)
    assert small["backbone_config"]["model_type"] == "resnet"
    assert small["backbone_config"]["out_features"] == ["stage2", "stage3"]
