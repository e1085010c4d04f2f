"""The corpus of JAX: every primitive has a rule and a case, and a sample of the cases is exported at every size."""

from __future__ import annotations

import jax
import pytest

from entrepot.exporters.jax.table import complex_rules, rules
from tests.export_cases.jax.catalogue import catalogue
from tests.sweeps.exports_of_jax import judge

CASES = {case.name: case for case in catalogue()}
SAMPLE = (
    "nn/gelu_exact",
    "nn/attention",
    "numpy/boolean_sum",
    "image/resize_linear",
    "segments/segment_sum",
    "linen/conv_transpose",
    "linen/gru",
    "nnx/batch_norm",
    "equinox/conv2d",
    "models/autoencoder",
    "models/decoder",
    "models/graph_network",
    "models/cached_attention",
    "primitives/conv_lhs_dilated",
    "primitives/dot_batch_rows",
    "primitives/gather_parts_fill",
    "primitives/scatter_add_drop",
    "primitives/sort_pairs",
    "primitives/scan_reverse",
    "primitives/associative_scan_of_pairs",
    "primitives/associative_scan_backward",
    "primitives/switch",
    "primitives/shift_right_arithmetic",
    "primitives/threefry_split_normal",
    "primitives/eigh_rebuilt",
    "primitives/reduce_window_sum_dilated",
    "complex_numbers/rotary",
)
PARALLEL = {
    "after_all", "all_gather", "all_to_all", "axis_index", "create_token", "dce_sink", "pmax", "pmin", "ppermute",
    "psum", "ragged_all_to_all",
}  # fmt: skip
"""Of programs on several processors, and of effects without results."""
REFUSED = {
    "rng_bit_generator",  # its algorithm differs from processor to processor
    "rng_uniform",
    "linear_solve",  # custom_linear_solve, by its name in lax
    "conj",  # of complex numbers only
    "complex",
    "select_and_scatter",  # of any function: nothing in JAX makes it
}


def test_every_primitive_of_lax_has_a_rule():
    names = {getattr(jax.lax, name).name for name in dir(jax.lax) if name.endswith("_p")}
    missing = {name for name in names if name not in rules() and name not in complex_rules()}
    assert missing <= PARALLEL | REFUSED


def test_a_corpus_has_no_name_twice():
    assert len(CASES) == len(catalogue())


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_corpus_is_exported_at_every_size(name):
    outcome = judge(CASES[name])
    assert (outcome.verdict, outcome.why) == ("passed", "")
