"""Parts of models: valid by onnx's checker, and computing what the whole computes, as onnxruntime says."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import entrepot as ep
from entrepot.ir.extract import unused_inputs
from entrepot.models_zoo import registry
from entrepot.parity.feeds import generate

HEAD = '<ir_version: 10, opset_import: ["": 20]>'
TEXTS = {
    "chain": f"""{HEAD} net (float[batch, 3] x) => (float[batch, 3] y)
        {{ a = Relu(x) b = Neg(a) c = Abs(b) y = Exp(c) }}""",
    "weights": f"""{HEAD} net (float[batch, 3] x) => (float[batch, 2] y)
        <float[3, 2] w = {{1, 2, 3, 4, 5, 6}}, float[2] b = {{1, 2}}, float[2] idle = {{0, 0}}>
        {{ a = MatMul(x, w) c = Add(a, b) y = Relu(c) }}""",
    "several outputs": f"""{HEAD} net (float[4, 6] x) => (float[4, 3] y)
        {{ a, b = Split<axis = 1, num_outputs = 2>(x) c = Neg(a) d = Exp(b) y = Add(c, d) }}""",
    "diamond": f"""{HEAD} net (float[n] x, float[n] z) => (float[n] y)
        {{ a = Relu(x) b = Neg(a) c = Add(a, z) d = Mul(b, c) y = Sub(d, a) }}""",
    "branches": f"""{HEAD} net (bool p, float[n, 3] x) => (float[n, 3] y) <float[3] w = {{1, 2, 3}}> {{
        a = Relu(x)
        b = Exp(x)
        c = If (p) <then_branch = t () => (q) {{ q = Mul(a, w) }},
                    else_branch = e () => (r) {{ k = Identity(b) r = If (p)
                        <then_branch = tt () => (u) {{ u = Neg(k) }},
                         else_branch = ee () => (v) {{ v = Add(a, k) }}> }}>
        y = Abs(c) }}""",
    "loop": f"""{HEAD} net (float[2, 3] x) => (float[2, 3] y, float[4, 2, 3] s) <int64 n = {{4}}> {{
        a = Relu(x)
        h, s = Loop (n, , x) <body = b (int64 i, bool p, float[2, 3] u) => (bool q, float[2, 3] v, float[2, 3] w) {{
            q = Identity(p) v = Add(u, a) w = Neg(v) }}>
        y = Exp(h) }}""",
    "function": """<ir_version: 10, opset_import: ["": 20, "my": 1]> net (float[n] x) => (float[n] y) {
        a = my.f(x) b = Neg(a) y = my.g(b) }
        <domain: "my", opset_import: ["": 20, "my": 1]> f (x) => (y) { h = my.inner(x) y = Relu(h) }
        <domain: "my", opset_import: ["": 20]> g (x) => (y) { y = Exp(x) }
        <domain: "my", opset_import: ["": 20]> inner (x) => (y) { y = Abs(x) }""",
    "shapes": f"""{HEAD} net (float[n, m] x) => (float[k] y) <int64[1] one = {{-1}}> {{
        s = Shape(x) a = Transpose<perm = [1, 0]>(x) b = Reshape(a, one) c = Cast<to = 7>(b) d = Cast<to = 1>(c)
        e = Reshape(d, s) f = Relu(e) y = Reshape(f, one) }}""",
    "overridable": f"""{HEAD} net (float[3] x, float[3] w) => (float[3] y) <float[3] w = {{1, 2, 3}}>
        {{ a = Mul(x, w) y = Neg(a) }}""",
    "old format": """<ir_version: 3, opset_import: ["": 8]> net (float[3] x, float[3] w) => (float[3] y)
        <float[3] w = {1, 2, 3}> { a = Mul(x, w) y = Neg(a) }""",
    "sequence": f"""{HEAD} net (float[2, 3] x) => (float[2, 3] y)
        {{ s = SequenceConstruct(x, x) t = SequenceInsert(s, x) n = SequenceLength(t)
           i = Constant <value = int64 {{1}}> () a = SequenceAt(t, i) y = Neg(a) }}""",
}  # fmt: skip


def model(name: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(TEXTS[name]))


def values_made(source: ep.Model) -> list[str]:
    """Names of the tensors that nodes of the main graph make, in order."""
    inferred = onnx.shape_inference.infer_shapes(source.to_proto()).graph
    tensors = {v.name for v in (*inferred.value_info, *inferred.output) if v.type.HasField("tensor_type")}
    return [output.name for node in source.ir.graph for output in node.outputs if output.name in tensors]


def run(proto: onnx.ModelProto, feeds: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    """By onnxruntime, which is asked for inner values by making them outputs."""
    have = {output.name for output in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in have)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # what is fused away cannot be asked for
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return dict(zip(names, session.run(names, feeds), strict=True))


def grown(source: ep.Model, inputs: list[str], outputs: list[str]) -> ep.Model:
    """The part with as many more inputs as it needs, which the errors name."""
    try:
        return ep.extract(source, inputs, outputs)
    except ep.InputError as error:
        needed = re.findall("'([^']+)'", error.message.partition("also needs")[2])
    return ep.extract(source, [*inputs, *needed], outputs)


def check_parts(source: ep.Model, feeds: dict[str, np.ndarray], trials: int) -> None:
    """Cut a model at random places and compare every part with the whole."""
    rng = random.Random(0)
    made = values_made(source)
    whole = run(source.to_proto(), feeds, made) | feeds
    for _ in range(trials):
        outputs = rng.sample(made, rng.randint(1, min(2, len(made))))
        inputs = rng.sample([*made, *feeds], rng.randint(1, min(4, len(made))))
        part = grown(source, inputs, outputs)
        assert [spec.name for spec in part.outputs] == outputs
        assert [spec.name for spec in part.inputs][: len(inputs)] == inputs
        proto = part.to_proto()
        onnx.checker.check_model(proto, full_check=True)
        fed = {spec.name: whole[spec.name] for spec in part.inputs}
        ours, theirs = ep.Session(part).run(fed), run(proto, fed, outputs)
        for name in outputs:
            assert ours[name].dtype == theirs[name].dtype == whole[name].dtype
            np.testing.assert_array_equal(theirs[name], whole[name])  # the same kernels on the same numbers
            assert ep.compare({name: whole[name]}, {name: ours[name]})
        for spec in (*part.inputs, *part.outputs):
            actual = whole[spec.name]
            assert spec.dtype == actual.dtype.name
            assert spec.shape is not None
            assert len(spec.shape) == actual.ndim
            assert all(
                dim in (size, None) or isinstance(dim, str) for dim, size in zip(spec.shape, actual.shape, strict=True)
            )


@pytest.mark.parametrize("name", TEXTS)
def test_every_part_computes_what_the_whole_does(name: str) -> None:
    source = model(name)
    check_parts(source, generate(source), 12)


@pytest.mark.parametrize("name", ["mlp", "lenet_digits", "gru_classifier", "two_tower", "early_exit", "gpt"])
def test_parts_of_exported_models_compute_what_the_whole_does(name: str) -> None:
    zoo = registry.build(name)
    sample = ep.Sample(kwargs=zoo.sample) if isinstance(zoo.sample, dict) else ep.Sample(args=zoo.sample)
    source = ep.export(zoo.module, sample, verify=False, dynamic=False)
    check_parts(source, generate(source), 8)


def test_only_what_is_needed_is_kept_and_weights_are_shared() -> None:
    source = model("weights")
    part = ep.extract(source, ["a"], ["c"])
    assert [node.op_type for node in part.ir.graph] == ["Add"]
    assert set(part.ir.graph.initializers) == {"b"}
    assert part.ir.graph.initializers["b"].const_value is source.ir.graph.initializers["b"].const_value
    assert len(source.ir.graph) == 3  # and the whole is not changed
    assert [spec.name for spec in source.inputs] == ["x"]


def test_a_weight_may_become_an_input() -> None:
    part = ep.extract(model("weights"), ["x", "w"], ["a"])
    assert [str(spec) for spec in part.inputs] == ["x: float32[batch, 3]", "w: float32[3, 2]"]
    assert not part.ir.graph.initializers


def test_types_and_shapes_at_the_edges_are_known() -> None:
    part = ep.extract(model("shapes"), ["c"], ["d"])
    assert [str(spec) for spec in (*part.inputs, *part.outputs)] == ["c: int64[?]", "d: float32[?]"]
    assert str(ep.extract(model("shapes"), ["d", "s"], ["f"]).outputs[0]) == "f: float32[?, ?]"
    assert str(ep.extract(model("branches"), ["p", "x"], ["c"]).outputs[0]) == "c: float32[n, 3]"


def test_functions_are_kept_when_they_are_called_by_each_other_too() -> None:
    source = model("function")
    names = {key[1] for key in ep.extract(source, ["x"], ["b"]).ir.functions}
    assert names == {"f", "inner"}
    part = ep.extract(source, ["a"], ["b"])
    assert not part.ir.functions
    assert part.opsets == {"": 20}


def test_what_bodies_read_comes_along() -> None:
    part = ep.extract(model("branches"), ["p", "a", "x"], ["c"])
    assert [node.op_type for node in part.ir.graph] == ["Exp", "If"]
    assert set(part.ir.graph.initializers) == {"w"}
    with pytest.raises(ep.InputError, match="also needs 'x'"):  # for b, which only an inner branch reads
        ep.extract(model("branches"), ["p", "a"], ["c"])


def test_metadata_and_names_stay() -> None:
    source = model("chain")
    source.metadata["licence"] = "mine"
    source.ir.graph[1].name = "the second"
    part = ep.extract(source, ["a"], ["c"])
    assert part.metadata == {"licence": "mine"}
    assert part.ir.graph[0].name == "the second"
    assert part.report is None


def test_ends_that_are_left_out_are_those_of_the_model() -> None:
    source = model("diamond")
    assert [spec.name for spec in ep.extract(source, outputs="c").inputs] == ["x", "z"]
    assert [spec.name for spec in ep.extract(source, outputs="b").inputs] == ["x"]
    assert [spec.name for spec in ep.extract(source, ["d", "a"]).outputs] == ["y"]


def test_an_input_without_use_stays_and_is_told() -> None:
    part = ep.extract(model("diamond"), ["x", "a", "z"], ["b"])
    assert [spec.name for spec in part.inputs] == ["x", "a", "z"]
    assert unused_inputs(part) == ("x", "z")


def test_a_value_may_be_input_and_output() -> None:
    part = ep.extract(model("chain"), ["a"], ["a", "b"])
    x = np.array([[-1, 0, 2]], np.float32)
    assert {name: value.tolist() for name, value in ep.Session(part).run({"a": x}).items()} == {
        "a": x.tolist(), "b": (-x).tolist(),
    }  # fmt: skip
    onnx.checker.check_model(part.to_proto(), full_check=True)


def test_models_are_read_from_whatever_load_takes(tmp_path: Path) -> None:
    model("chain").save(tmp_path / "net.onnx")
    assert len(ep.extract(tmp_path / "net.onnx", "a", "c").ir.graph) == 2


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "message"),
    [
        ("diamond", ["x"], ["y"], r"to compute 'y' the part also needs 'z'"),
        ("diamond", [], ["d", "b"], r"'d', 'b' the part also needs '(x|z)', '(x|z)'"),
        ("branches", ["x"], ["c"], r"also needs 'p'"),
        ("loop", ["a"], ["y"], r"also needs 'x'"),
        ("chain", ["x"], ["nowhere"], r"value 'nowhere': the model has no such value.*info --nodes"),
        ("weights", ["x"], ["bb"], r"did you mean 'b'"),
        ("branches", ["x"], ["u"], r"inside the body of If node 'c'|no such value"),
        ("branches", ["x"], ["q"], r"inside the body of If node 'c'"),
        ("chain", ["x", "x"], ["y"], r"'x' is given twice among the inputs"),
        ("chain", ["x"], ["y", "y"], r"'y' is given twice among the outputs"),
        ("chain", ["x"], [], r"without outputs"),
        ("chain", 3, ["y"], r"inputs are 3.*names of values"),
        ("chain", ["x"], [None], r"outputs are \[None\]"),
        ("chain", {"x": 1}, ["y"], r"inputs are {'x': 1}"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_a_reason(name: str, inputs: object, outputs: object, message: str) -> None:
    with pytest.raises(ep.InputError, match=message):
        ep.extract(model(name), inputs, outputs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "message"),
    [("a = acme.Fancy(x) y = Neg(a)", "type is neither"), ("a = Reshape(x, s) y = Neg(a)", "rank is neither")],
)
def test_an_edge_of_unknown_type_or_rank_is_refused(body: str, message: str) -> None:
    text = (
        f'<ir_version: 10, opset_import: ["": 20, "acme": 1]> net (float[n] x, int64[k] s) => (float[n] y) {{ {body} }}'
    )
    source = ep.load(onnx.parser.parse_model(text))
    for inputs, outputs in ((["a"], ["y"]), (["x", "s"], ["a"])):
        with pytest.raises(ep.ConversionError, match=f"value 'a': its {message}.*value_info"):
            ep.extract(source, inputs, outputs)


def test_a_part_of_an_invalid_model_is_refused() -> None:
    text = f"{HEAD} net (float[n, 3] x) => (float[n, 4] y) {{ a = Relu(x) y = Neg(a) }}"
    with pytest.raises(ep.ModelFormatError, match="not a valid model"):
        ep.extract(ep.load(onnx.parser.parse_model(text)), ["a"], ["y"])
