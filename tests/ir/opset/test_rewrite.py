"""Long files of which few nodes change come out as if all of their graph had been made."""

from __future__ import annotations

import io
import random

import onnx
import onnx.parser
import onnx_ir as ir
import pytest

import entrepot as ep
from entrepot.ir.io import survey
from entrepot.ir.io.excerpt import Excerpt
from entrepot.ir.opset import rewrite, rules
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.values import Known
from entrepot.ir.typing.flow import FlowTypes
from entrepot.ir.typing.query import Types
from tests.ir.io.test_roundtrip import normal

STORED = """
    int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] sixteen = {16}, int64[2] rest = {1, 16},
    float[2] ones = {1, 1}, float[1] two = {2}, float[0] none = {}, bool[1] true = {1},
    float[16] w = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
"""
BLOCKS = (
    "{i}a = Unsqueeze <axes = [1]> ({x}) {i}b = ReduceSum <axes = [1]> ({i}a) {i}c, {i}m = Dropout <ratio = 0.5> ({i}b)"
    " {y} = Softmax <axis = 1> ({i}c)",
    "{i}s = Shape ({x}) {i}t = Slice ({i}s, zero, one) {i}u = Concat <axis = 0> ({i}t, rest) {i}v = Reshape ({x}, {i}u)"
    " {i}w = Squeeze <axes = [1]> ({i}v) {y} = Add ({i}w, {x})",
    "{i}s = Constant <value = float {{2.0}}> () {i}m = Clip ({x}, {i}s)"
    " {i}h, {i}k = Split <axis = -1, split = [8, 8]> ({i}m) {y} = Concat <axis = -1> ({i}k, {i}h)",
    '{i}a = Unsqueeze <axes = [1]> ({x}) {i}c = Concat <axis = 0> (ones, two) {i}r = Resize <mode = "nearest">'
    " ({i}a, none, {i}c) {i}q = Slice ({i}r, zero, sixteen, one) {i}d = ReduceMean <axes = [1]> ({i}q)"
    " {i}f = Flatten ({i}d) {i}s = Shape ({x}) {i}e = Slice ({i}f, zero, sixteen, last) {y} = Reshape ({i}e, {i}s)",
    "{i}h = Hardmax ({x}) {i}l = LogSoftmax <axis = 0> ({i}h) {i}n = Cast <to = 1> ({i}l) {i}z = Pow ({i}n, {i}n)"
    " {y} = Max ({i}z, {x}, {x})",
    "{i}w = Constant <value = int64[1] {{1}}> () {i}t, {i}k = TopK ({x}, {i}w) {i}g = Cast <to = 1> ({i}k)"
    " {y} = Mul ({x}, {i}g)",
    "{i}e = Expand ({x}, rest) {i}z = Where (true, {i}e, {x}) {y} = ReduceMax <axes = [1], keepdims = 1> ({i}z)",
    "{y} = BatchNormalization ({x}, w, w, w, w)",
)


@pytest.fixture(autouse=True)
def every_file_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "LONG", 0)
    monkeypatch.setattr(rewrite, "MOST", 1.0)


def chain(seed: int, *, blocks: int = 12, states: str = "") -> onnx.ModelProto:
    """Blocks of opset 11 one after the other; what half of them makes is also an output."""
    draw = random.Random(seed)
    body = "".join(
        draw.choice(BLOCKS).format(i=f"b{at}_", x=f"x{at}", y=f"x{at + 1}") + f" r{at} = Relu(x{at})"
        for at in range(blocks)
    )
    dims = "4, 16" if seed % 2 else "batch, 16"
    outputs = ", ".join(f"float[p, q] {name}" for name in (f"x{blocks}", f"x{blocks // 2}", f"r{blocks // 2}"))
    proto = onnx.parser.parse_model(
        f'<ir_version: 7, opset_import: ["": 11]> net (float[{dims}] x0) => ({outputs}) <{STORED}> {{{body}}}'
    )
    if states:
        proto = onnx.shape_inference.infer_shapes(proto)
    for info in proto.graph.value_info if states == "some" else ():
        info.doc_string = "from elsewhere"
        info.type.tensor_type.ClearField("shape")
    return proto


def model(nodes: str, *, opset: int = 18, stored: str = "", outputs: str = "float[n, c] y") -> ep.Model:
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> net (float[2, 4, 4] x) => ({outputs}) <{stored}> {{{nodes}}}'
    )
    found = ep.load(proto.SerializeToString())
    assert found.parsed is not None
    return found


def saved(found: ep.Model) -> onnx.ModelProto:
    file = io.BytesIO()
    found.save(file)
    return normal(onnx.ModelProto.FromString(file.getvalue()))


def assert_as_in_a_graph(short: ep.Model, target: int, *, rewritten: bool = True) -> ep.Model:
    """Convert in both ways and compare all there is to see; return what came of the short one."""
    expected = convert_opset(ep.load(short.parsed.proto if short.parsed else short.to_proto()), target)
    found = convert_opset(short, target)
    assert (found.parsed is not None) is rewritten
    assert saved(found) == saved(expected)
    assert found.to_proto() == expected.to_proto()
    return found


@pytest.mark.parametrize("states", ["", "some", "all"])
@pytest.mark.parametrize("seed", range(6))
def test_chains_come_out_as_in_a_graph(seed: int, states: str) -> None:
    proto = chain(seed, states=states)
    for target in (12, 13, 18, 25):
        found = assert_as_in_a_graph(ep.load(proto.SerializeToString()), target)
        if target == 13:
            onwards = convert_opset(convert_opset(ep.load(proto.SerializeToString()), 13), 25)
            assert saved(onwards) == saved(convert_opset(ep.load(found.to_proto()), 25))


@pytest.mark.parametrize("states", ["", "some"])
@pytest.mark.parametrize("seed", range(6))
def test_types_are_those_of_a_graph(seed: int, states: str) -> None:
    proto = chain(seed, blocks=20, states=states)
    short, graph = ep.load(proto.SerializeToString()), ep.load(proto).ir.graph
    assert short.parsed is not None
    excerpt = Excerpt(short.parsed, [])
    found, expected = FlowTypes(excerpt), Types(Known(7), graph.opset_imports)
    inferences = 0
    for value in [output for node in graph for output in node.outputs]:
        there = excerpt.value(value.name or "")
        assert found.spec(there) == expected.spec(value)
        assert found.type(there) == expected.type(value)
        assert _equal(found.known.array(there), expected.known.array(value))
        inferences += 1
    assert inferences > 60


@pytest.mark.parametrize(
    ("nodes", "last"),
    [
        ("{y} = Resize (x, none, {w})", [2, 2, 2]),
        ("{y}a = Mul ({w}, {w}) {y}b = Cast <to = 7> ({y}a) {y} = Expand (x, {y}b)", [4, 4, 4]),
        (
            "{y}a = Add ({w}, {w}) {y}b = Slice ({y}a, zero, end) {y}c = Cast <to = 7> ({y}b) {y} = Expand (x, {y}c)",
            [4] * 3,
        ),
    ],
    ids=["an operand", "computed", "computed from a part"],
)
def test_values_that_decide_a_shape_tell_nodes_apart(nodes: str, last: list[int]) -> None:
    body = " ".join(nodes.format(w=w, y=y) for w, y in (("one", "a"), ("two", "b"), ("two", "c"))) + " y = Identity (c)"
    stored = "float[0] none = {}, float[3] one = {1, 1, 1}, float[3] two = {2, 2, 2}, "
    stored += "int64[1] zero = {0}, int64[1] end = {3}"
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> net (float[1, 1, 1] x) => (float[a, b, c] y) <{stored}> {{{body}}}'
    )
    short = ep.load(proto.SerializeToString())
    assert short.parsed is not None
    excerpt = Excerpt(short.parsed, [])
    types = FlowTypes(excerpt)
    assert types.spec(excerpt.value("a")).shape != ir.Shape(last)
    assert types.spec(excerpt.value("b")).shape == types.spec(excerpt.value("c")).shape == ir.Shape(last)


def _equal(one: object, other: object) -> bool:
    return one is other is None or str(one) == str(other)


def test_what_is_alike_is_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = "".join(f"a{at} = Relu (x{at}) x{at + 1} = Softmax (a{at})" for at in range(50))
    short = ep.load(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 18]> net (float[2, 4] x0) => (float[n, m] x50) {{{layers}}}'
        ).SerializeToString()
    )
    assert short.parsed is not None
    excerpt = Excerpt(short.parsed, [])
    types, made = FlowTypes(excerpt), []
    produce = excerpt._produce
    monkeypatch.setattr(excerpt, "_produce", lambda at: (made.append(at), produce(at)))
    assert types.spec(excerpt.value("x49")).shape == ir.Shape([2, 4])
    assert made == [0, 1]


def test_new_names_are_new_to_the_whole_file() -> None:
    nodes = "n = GroupNormalization <num_groups = 2> (x, w, w) {taken} = Relu (x) y = Add (n, {taken})"
    stored, outputs = "float[2] w = {1, 1}", "float[a, b, c] y"
    free = convert_opset(model(nodes.format(taken="r"), stored=stored, outputs=outputs), 25)
    given = {output.name for node in free.ir.graph for output in node.outputs} - {"n", "r", "y"}
    for name in sorted(given, key=str):
        taken = model(nodes.format(taken="r"), stored=stored, outputs=outputs).to_proto()
        taken.graph.node[1].output[0] = taken.graph.node[2].input[1] = str(name)
        found = assert_as_in_a_graph(ep.load(taken.SerializeToString()), 25)
        names = [output.name for node in found.ir.graph for output in node.outputs]
        assert len(names) == len(set(names))


def test_weights_that_only_replaced_nodes_read_are_left_out() -> None:
    short = model(
        "t = Tile (x, n, a) q = Identity (n) y = Relu (t)",
        opset=5,
        stored="int64 n = {2}, int64 a = {1}",
        outputs="float[a, b, c] y, int64 q",
    )
    weights = set(assert_as_in_a_graph(short, 25).ir.graph.initializers)
    assert "n" in weights
    assert "a" not in weights


def test_weights_that_adapters_write_are_kept() -> None:
    found = assert_as_in_a_graph(model("r = Reshape <shape = [2, 16]> (x) y = Relu (r)", opset=4), 25)
    assert len(found.ir.graph.initializers) == 1


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ("y = Nothing (x)", 18),
        ("r = Relu (x) y = Scan <num_scan_inputs = 1> (r)", 18),
    ],
)
def test_what_is_in_the_way_is_said_of_the_whole_graph(nodes: str, opset: int) -> None:
    with pytest.raises(ep.EntrepotError) as short:
        convert_opset(model(nodes, opset=opset), 25)
    with pytest.raises(ep.EntrepotError) as full:
        convert_opset(ep.load(model(nodes, opset=opset).to_proto()), 25)
    assert str(short.value) == str(full.value)


def test_another_name_for_what_others_read_takes_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    step = rules.Step("", "Softplus", 1, 22)
    assert rules.find(step) is rules.keep
    monkeypatch.setitem(rules._rules, step, lambda op, _node: op.initializer(ir.tensor([1.0, 2.0])))
    rules.route.cache_clear()
    try:
        short = model("s = Softplus (x) y = Relu (s)", stored="", outputs="float[n] y")
        assert_as_in_a_graph(short, 25, rewritten=False)
    finally:
        rules.route.cache_clear()


def test_operators_that_have_no_schema_any_more_are_replaced() -> None:
    tensor = "g = GivenTensorFill <shape = [2], values = [1.0, 2.0]> () y = Add (g, g)"
    assert_as_in_a_graph(model(tensor, opset=6, outputs="float[2] y"), 25)


def test_a_file_of_which_much_changes_takes_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "MOST", 0.2)
    few = "a = ReduceMean <axes = [1]> (x)" + "".join(f" r{at} = Relu (a)" for at in range(4)) + " y = Relu (r1)"
    many = "a = ReduceMean <axes = [1]> (x) y = Relu (a)"
    assert_as_in_a_graph(model(few, opset=13, outputs="float[a, b, c] y"), 18)
    assert_as_in_a_graph(model(many, opset=13, outputs="float[a, b, c] y"), 18, rewritten=False)


def test_the_original_stays_as_it_was() -> None:
    short = ep.load(chain(3).SerializeToString())
    before = saved(short)
    convert_opset(short, 25)
    assert short.parsed is not None
    assert saved(short) == before
    assert saved(convert_opset(short, 25)) == saved(convert_opset(ep.load(short.to_proto()), 25))
