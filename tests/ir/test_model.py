from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.ir.model import ValueSpec
from entrepot.ir.opset import OPSET


def model() -> ep.Model:
    proto = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 18, "com.x": 2]>
        net (float[N, 3] x, int64 n, seq(float[2]) s, float[3] w, bfloat16[] b) => (float[N, ?] y)
        <float[3] w = {1, 2, 3}>
        { y = Add(x, w) }
    """)
    proto.metadata_props.add(key="author", value="somebody")
    return ep.load(proto)


def test_inputs_are_those_that_must_be_fed() -> None:
    assert [str(spec) for spec in model().inputs] == [
        "x: float32[N, 3]",
        "n: int64[]",
        "s: float32[2] (sequence)",
        "b: bfloat16[?]",
    ]
    assert model().inputs[0] == ValueSpec("x", "float32", ("N", 3))


def test_outputs_print_unknown_sizes_as_question_marks() -> None:
    assert [str(spec) for spec in model().outputs] == ["y: float32[N, ?]"]
    assert str(ValueSpec("y", None, None)) == "y: ?[?]"


def test_opsets_and_metadata_are_those_of_the_file() -> None:
    assert model().opset == 18
    assert model().opsets == {"": 18, "com.x": 2}
    assert model().metadata == {"author": "somebody"}


def test_a_model_prints_its_interface() -> None:
    lines = repr(model()).splitlines()
    assert lines[0] == "entrepot.Model 'net', opset ai.onnx 18, com.x 2, 1 node, 1 weight (12 B)"
    assert lines[1:] == ["  in   x: float32[N, 3]", "  in   n: int64[]", "  in   s: float32[2] (sequence)",
                         "  in   b: bfloat16[?]", "  out  y: float32[N, ?]"]  # fmt: skip


def test_names_cannot_inject_markup_into_the_html_form() -> None:
    source = model().to_proto()
    source.graph.name = "<script>alert(1)</script>"
    for node in source.graph.node:
        node.output[0] = "<b>"
    source.graph.output[0].name = "<b>"
    text = ep.load(source)._repr_html_()
    assert "<script>" not in text
    assert "<b>" not in text
    assert text.startswith("<table>")
    assert "&lt;b&gt;: float32[N, ?]" in text


def test_the_hub_form_is_made_once() -> None:
    source = ep.load(onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
    ))  # fmt: skip
    hub = source.at_hub()
    assert hub is source.at_hub()
    assert hub.opset == OPSET
    assert source.opset == 18


def test_a_model_converts_to_a_proto_that_is_its_own() -> None:
    source = model()
    proto = source.to_proto()
    proto.graph.node[0].op_type = "Sub"
    assert source.to_proto().graph.node[0].op_type == "Add"


@pytest.mark.parametrize(
    "module", ["entrepot.ir.model", "entrepot.ir.errors", "entrepot.ir.limits", "entrepot.ir.table"]
)
def test_the_foundations_do_not_load_onnx(module: str) -> None:
    script = f"import sys, {module}; print([name for name in ('onnx', 'onnx_ir', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- copies


def copies(source: ep.Model) -> list[ep.Model]:
    return [pickle.loads(pickle.dumps(source)), copy.deepcopy(source), copy.copy(source)]


def weighty() -> ep.Model:
    proto = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 23]>
        net (float[N, 300] x, float[300] b) => (float[N, 300] y) { p = MatMul(x, w) q = MatMul(p, v) y = Add(q, b) }
    """)
    rng = np.random.default_rng(0)
    for name, shape in {"w": (300, 300), "v": (300, 300), "b": (300,)}.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(rng.random(shape).astype(np.float32), name))
    nibbles = np.array([1, -8] * 2048).astype(ml_dtypes.int4)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(nibbles, "u"))
    proto.graph.initializer.append(onnx.helper.make_tensor("t", onnx.TensorProto.STRING, [2], [b"a", b"b"]))
    return ep.load(proto)


@pytest.mark.parametrize("source", [model(), weighty()], ids=["plain", "weighty"])
def test_a_copy_is_the_same_model(source: ep.Model) -> None:
    for other in copies(source):
        assert other.to_proto() == source.to_proto()
        assert repr(other) == repr(source)


def test_weights_travel_beside_the_graph_and_not_within_a_protobuf() -> None:
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(weighty(), protocol=5, buffer_callback=buffers.append)
    assert len(content) < 10_000
    assert sorted(memoryview(each).nbytes for each in buffers) == [1200, 2048, 360_000, 360_000]
    assert pickle.loads(content, buffers=buffers).to_proto() == weighty().to_proto()


def test_tied_weights_stay_tied() -> None:
    source = weighty()
    initializers = source.ir.graph.initializers
    initializers["v"].const_value = initializers["w"].const_value
    for other in copies(source):
        assert other.ir.graph.initializers["v"].const_value is other.ir.graph.initializers["w"].const_value
    assert len(pickle.dumps(source)) < 400_000


def test_mapped_weights_are_copied_out_of_their_file(tmp_path: Path) -> None:
    weighty().save(tmp_path / "net.onnx", external_data="net.data")
    others = copies(ep.load(tmp_path / "net.onnx"))
    (tmp_path / "net.data").unlink()
    for other in others:
        assert other.path == tmp_path / "net.onnx"
        assert other.to_proto().graph == weighty().to_proto().graph


def test_a_graph_of_any_length_is_copied() -> None:
    chain = " ".join(f"v{at + 1} = Relu(v{at})" for at in range(3000))
    text = f'<ir_version: 10, opset_import: ["": 18]> g (float[2] v0) => (float[2] v3000) {{ {chain} }}'
    source = ep.load(onnx.parser.parse_model(text))
    for other in copies(source):
        assert len(other.ir.graph) == 3000


def test_an_exported_model_is_copied_with_its_report() -> None:
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.ReLU(), torch.nn.Linear(30, 2))
    source = ep.export(net, torch.ones(3, 40))
    before = ep.Session(source).run({"input": np.ones((3, 40), np.float32)})
    for other in copies(source):
        assert other.report.to_json() == source.report.to_json()  # a NaN is not equal to itself
        assert other.report
        after = ep.Session(other).run({"input": np.ones((3, 40), np.float32)})
        assert ep.compare(before, after, 0)


def test_a_copy_of_an_exported_model_has_weights_of_its_own() -> None:
    import torch

    net = torch.nn.Linear(40, 30)
    source = ep.export(net, torch.ones(3, 40), verify=False)
    expected = net(torch.ones(3, 40)).detach()
    others = copies(source)
    with torch.no_grad():
        net.weight.add_(1)
    for other in others:
        assert ep.compare({"output": expected}, ep.Session(other).run({"input": np.ones((3, 40), np.float32)}))


@pytest.mark.parametrize("bad", [None, "net.onnx", b"", 3, onnx.ModelProto()])
def test_a_model_is_made_of_a_graph_and_nothing_else(bad: object) -> None:
    with pytest.raises(ep.InputError, match=r"expected an onnx_ir\.Model \(hint: ep\.load"):
        ep.Model(bad)  # type: ignore[arg-type]


def test_a_model_is_saved_to_a_path(tmp_path: Path) -> None:
    for bad in (3, None, b"net.onnx", ["net.onnx"]):
        with pytest.raises(ep.InputError):
            model().save(bad)  # type: ignore[arg-type]
    with pytest.raises(ep.InputError, match="external_data is 3"):
        model().save(tmp_path / "net.onnx", external_data=3)  # type: ignore[arg-type]
