"""Damaged models give a result or a typed error wherever they are taken: read, checked, converted, described, run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases

import entrepot as ep
from entrepot.ir.inference import list_nodes
from entrepot.ir.validity import problem_of
from tests.ir.io.test_fuzz import SEEDS, scramble

CASES = (
    "loop11", "loop13_seq", "scan9_sum", "if", "if_seq", "sequence_map_add_2_sequences", "quantizelinear_axis",
    "dequantizelinear_axis", "qlinearconv", "lstm_with_peepholes", "attention_4d", "constant_pad", "slice",
    "maxpool_2d_dilations", "convtranspose_pads", "scatter_elements_with_axis", "regex_full_match_basic", "dft",
    "string_split_basic", "col2im", "reduce_log_sum_desc_axes", "training_dropout", "optional_get_element_sequence",
    "resize_upsample_scales_cubic",
)  # fmt: skip
LIMITS = ep.Limits(loop_iterations=2000, result_bytes=1 << 26)


@cache
def seeds() -> list[bytes]:
    cases = {case.name.removeprefix("test_"): case for case in collect_testcases(None)}
    return [*SEEDS, *(cases[name].model.SerializeToString() for name in CASES)]


def feeds(model: ep.Model) -> dict[str, object]:
    made: dict[str, object] = {}
    for spec in model.inputs:
        shape = tuple(dim if isinstance(dim, int) and dim < 64 else 3 for dim in spec.shape or ())
        dtype = {"bool": bool, "string": object, None: np.float32}.get(spec.dtype, spec.dtype)
        array = np.ones(shape if np.prod(shape) < 1e5 else (3,), np.float32)
        array = np.full(array.shape, "ab", object) if dtype is object else array.astype(dtype)
        made[spec.name] = [array, array] if spec.kind == "sequence" else array
    return made


def steps(source: bytes | onnx.ModelProto, model: ep.Model) -> list[Callable[[], object]]:
    content = source if isinstance(source, bytes) else source.SerializeToString()
    return [
        lambda: problem_of(model, content),
        lambda: ep.convert_opset(model, 11, verify=False),
        lambda: ep.convert_opset(model, 24, verify=False),
        lambda: list_nodes(model),
        lambda: ep.simplify(model, verify=False),
        lambda: ep.Session(model, limits=LIMITS).run(feeds(model)),
        lambda: ep.Session(model, limits=LIMITS, providers="reference").run(feeds(model)),
    ]


def damaged(number: int) -> bytes | onnx.ModelProto:
    random = np.random.default_rng(number)
    content = seeds()[random.integers(len(seeds()))]
    if random.random() < 0.35:
        flipped = bytearray(content)
        for _ in range(random.integers(1, 3)):
            flipped[random.integers(len(flipped))] ^= 1 << int(random.integers(8))
        return bytes(flipped)
    proto = onnx.ModelProto.FromString(content)
    for _ in range(random.integers(1, 4)):
        scramble(proto, random)
    return proto


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, 240, 30))
def test_damaged_models_give_a_result_or_a_typed_error(start: int) -> None:
    outcomes = {"refused": 0, "done": 0}
    for number in range(start, start + 30):
        source = damaged(number)
        try:
            model = ep.load(source)
        except ep.EntrepotError:
            outcomes["refused"] += 1
            continue
        for step in steps(source, model):
            try:
                step()
                outcomes["done"] += 1
            except ep.EntrepotError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 5


MISFITS = {
    "a shape that is a number": "s = Constant<value_int = 3>() y = Reshape(x, s)",
    "bounds that are numbers": "s = Constant<value_int = 0>() y = Slice(x, s, s)",
    "a bound too many": "s = Constant<value_ints = [0]>() e = Constant<value_ints = [1, 1]>() y = Slice(x, s, e)",
    "axes that are floats": "a = Constant<value_floats = [0.5]>() y = Unsqueeze(x, a)",
    "an axis that nothing has": "a = Constant<value_ints = [4611686018427387904]>() y = Unsqueeze(x, a)",
    "an axis far from the back": "a = Constant<value_ints = [-9223372036854775808]>() y = Unsqueeze(x, a)",
    "sizes that are a number": "s = Constant<value_int = 3>() y = Split(x, s)",
    "pads that are a number": "p = Constant<value_int = 1>() y = Pad(x, p)",
    "pads that are floats": "p = Constant<value_floats = [0.5, 0.5]>() y = Pad(x, p)",
    "no type to cast to": "y = Cast<to = 0>(x)",
    "an unknown type to cast to": "y = Cast<to = 99>(x)",
    "a condition of no element": "s = Constant<value_ints = [0]>() c = ConstantOfShape<value = bool[1]{1}>(s) y = If(c)"
    "<then_branch = a () => (float[3] p) { p = Abs(x) }, else_branch = b () => (float[3] q) { q = Neg(x) }>",
    "a size of absurd length": "s = Cast<to = 7>(z) y = AffineGrid(x, s)",
    "indices of absurd length": "s = Cast<to = 7>(z) y = GatherND(x, s)",
    "indices of more axes than the data": "s = Cast<to = 7>(w) y = GatherND<batch_dims = 1>(w, s)",
    "grams of less than a token": 'i = Cast<to = 7>(x) y = TfIdfVectorizer<mode = "TF", '
    "min_gram_length = -2147483648, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0], "
    "pool_int64s = [1]>(i)",
    "an equation of many letters": f'y = Einsum<equation = "{"i" * 5000}">(x)',
    "samples of absurd number": "i = Constant<value_ints = [0]>() "
    "y = RoiAlign<sampling_ratio = 2147483647, output_width = 9>(x, x, i)",
    "fewer indexes than n-grams": 'i = Cast<to = 7>(x) y = TfIdfVectorizer<mode = "TF", min_gram_length = 1, '
    "max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1, 2, 3]>(i)",
}


@pytest.mark.filterwarnings("ignore")
def test_text_that_is_not_utf_8_gives_results_or_typed_errors() -> None:
    body = 'y = GRU<hidden_size = 1, activations = ["a", "b"]>(x, w, r)'
    signature = "(float[2,1,1] x, float[1,3,1] w, float[1,3,1] r) => (float[A,B,C,D] y)"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {signature} {{ {body} }}')
    next(item for item in proto.graph.node[0].attribute if item.name == "activations").strings[0] = b"\xff"
    model = ep.load(proto)
    for step in steps(proto, model):
        with contextlib.suppress(ep.EntrepotError):
            step()


def test_a_body_that_makes_nothing_is_in_the_way_of_a_conversion() -> None:
    body = 'y, z = CausalConvWithState<activation = "x">(x, w)'
    signature = "(float[2,3,4] x, float[2,3,4] w) => (float[A,B,C] y)"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 27]> g {signature} {{ {body} }}')
    with pytest.raises(ep.ConversionError, match="has no counterpart"):
        ep.convert_opset(proto, 11, verify=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MISFITS)
def test_constants_that_do_not_fit_give_typed_errors(name: str) -> None:
    signature = "(float[3] x, float[4611686018427387904] z, float[3,4611686018427387904] w) => (float[N] y)"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {signature} {{ {MISFITS[name]} }}')
    refused = 0
    try:
        model = ep.load(proto)
    except ep.EntrepotError:
        return
    for step in steps(proto, model):
        try:
            step()
        except ep.EntrepotError:
            refused += 1
    assert refused
