"""Long files are checked without a graph being made of them: the same models and the same refusals as otherwise."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.case.node import collect_testcases

import entrepot as ep
from entrepot.ir.io import survey
from tests.ir.io.models import external_model, external_tensor, write
from tests.ir.io.test_fuzz import SEEDS, scramble
from tests.ir.io.test_roundtrip import BACKEND_FILES, normal


@pytest.fixture(autouse=True)
def every_file_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "LONG", 0)


def chain(nodes: str, stored: str = "float w = {1.0}") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20, "other": 3]> net (float[N, 4] x) => (float[N, 4] y)'
        f" <{stored}> {{{nodes}}}"
    )


PLAIN = chain("a = Relu(x) b = Add(a, w) c = Relu(b) y = Clip(c, , w)")


def saved(model: ep.Model) -> onnx.ModelProto:
    file = io.BytesIO()
    model.save(file)
    return onnx.ModelProto.FromString(file.getvalue())


def is_parsed(content: bytes) -> bool:
    """Whether a file is read without a graph; if so, what is made of it and written must be as it should."""
    model = ep.load(content)
    if model.parsed is None:
        return False
    otherwise = ep.load(onnx.ModelProto.FromString(content))  # protos belong to the caller, and are read in full
    assert otherwise.parsed is None
    assert model.opsets == otherwise.opsets
    assert normal(saved(model)) == normal(saved(otherwise))
    assert model.parsed is not None
    assert model.to_proto() == otherwise.to_proto()
    assert model.parsed is None
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # onnx computes its cases with overflows
def test_backend_tests_are_the_same_models() -> None:
    contents = [case.model.SerializeToString() for case in collect_testcases(None) if case.model is not None]
    contents = [*contents[::5], *(file.read_bytes() for file in BACKEND_FILES[::5])]
    assert sum(map(is_parsed, contents)) > 0.85 * len(contents)


def test_what_is_read_in_full_is_refused_in_full() -> None:
    random, accepted = np.random.default_rng(0), 0
    for seed in [*SEEDS, PLAIN.SerializeToString()]:
        for _ in range(150):
            proto = onnx.ModelProto.FromString(seed)
            for _ in range(random.integers(1, 4)):
                scramble(proto, random)
            accepted += ep_error(proto) is None and is_parsed(proto.SerializeToString())
            assert ep_error(proto.SerializeToString()) == ep_error(proto)
    assert accepted > 50


def ep_error(content: bytes | onnx.ModelProto) -> str | None:
    """What is said against a model, once it has been read and its graph made."""
    try:
        assert ep.load(content).ir
    except ep.EntrepotError as error:
        return str(error)
    return None


DEFECTS = {
    "an input from nowhere": "a = Relu(z) y = Identity(a)",
    "a wrong order": "y = Identity(a) a = Relu(x)",
    "a name twice": "a = Relu(x) a = Relu(x) y = Identity(a)",
    "the name of a weight": "w = Relu(x) y = Identity(w)",
    "an unknown attribute": "y = Relu <beta = 1.0> (x)",
    "no such domain": "y = nowhere.Relu(x)",
    "too many inputs": "y = Relu(x, w)",
    "an output from nowhere": "a = Relu(x)",
    "a subgraph": "c = Constant <value_int = 1> () t = Cast <to = 9> (c) y = If (t) <"
    "then_branch = a () => (float p) {p = Relu(x)}, else_branch = b () => (float q) {q = Neg(x)}>",
    "a reference outside of any function": "y = LeakyRelu <alpha: float = @slope> (x)",
}


@pytest.mark.parametrize("nodes", DEFECTS.values(), ids=DEFECTS)
def test_what_is_not_plain_is_read_in_full(nodes: str) -> None:
    content = chain(nodes).SerializeToString()
    assert ep_error(content) == ep_error(onnx.ModelProto.FromString(content))
    if ep_error(content) is None:
        assert ep.load(content).parsed is None


def _second_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


def _old(model: onnx.ModelProto) -> None:
    model.ir_version = 3


def _without_outputs(model: onnx.ModelProto) -> None:
    del model.graph.output[:]


def _unnamed_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = ""


def _unknown_size(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1


def _negative_size(model: onnx.ModelProto) -> None:
    model.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [-7]))


def _short_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims.append(2)


def _absent_input_at_the_end(model: onnx.ModelProto) -> None:
    model.graph.node[-1].input[1:] = ["w", ""]


def _long_form_of_the_domain(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "ai.onnx"


def _training(model: onnx.ModelProto) -> None:
    model.training_info.add().algorithm.name = "step"


@pytest.mark.parametrize(
    "change",
    [_second_weight, _old, _without_outputs, _unnamed_output, _unknown_size, _negative_size, _short_weight,
     _absent_input_at_the_end, _long_form_of_the_domain, _training],
)  # fmt: skip
def test_a_file_with_something_unusual_is_read_in_full(change: Callable[[onnx.ModelProto], None]) -> None:
    assert is_parsed(PLAIN.SerializeToString())
    changed = onnx.ModelProto.FromString(PLAIN.SerializeToString())
    change(changed)
    content = changed.SerializeToString()
    assert ep_error(content) == ep_error(changed)
    if ep_error(content) is None:
        assert ep.load(content).parsed is None


def test_text_that_is_none_is_refused() -> None:
    content = chain("[first] y = Relu(x)").SerializeToString()
    for place in (b"first", b"net"):
        assert content.count(place) == 1
        damaged = content.replace(place, b"\xff" * len(place))
        with pytest.raises(ep.ModelFormatError, match="UTF-8"):
            ep.load(damaged)


def test_limits_hold_for_every_node_of_a_kind() -> None:
    many = chain(
        "".join(f"c{i} = Constant <value = float[64] {{{', '.join(['1'] * 64)}}}> () " for i in range(9))
        + "y = Relu(x)"
    )
    content = many.SerializeToString()
    assert ep.load(content).parsed is not None
    for limits in (ep.Limits(total_bytes=2000), ep.Limits(nodes=9), ep.Limits(expanded_nodes=9)):
        with pytest.raises(ep.ResourceLimitError):
            ep.load(content, limits=limits)


def test_weights_are_mapped_when_the_file_is_read(tmp_path: Path) -> None:
    data = np.arange(4, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(data.tobytes())
    path = write(tmp_path, external_model(external_tensor("w", [4], location="w.bin")))
    model = ep.load(path)
    assert model.parsed is not None
    (tmp_path / "new").write_bytes(b"\0" * 16)
    (tmp_path / "new").replace(tmp_path / "w.bin")
    assert model.ir.graph.initializers["w"].const_value.numpy().tolist() == data.tolist()


@pytest.mark.parametrize("beside", [True, False])
def test_weights_in_another_file_stay_there_or_move_along(beside: bool, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.arange(1024, dtype=np.float32).tobytes())
    model = ep.load(write(tmp_path, external_model(external_tensor("w", [1024], location="w.bin"))))
    folder = tmp_path if beside else tmp_path / "other"
    folder.mkdir(exist_ok=True)
    model.save(folder / "out.onnx", external_data="auto" if beside else "data")
    assert model.parsed is not None
    found = ep.load(folder / "out.onnx").ir.graph.initializers["w"].const_value
    assert (found.location, found.numpy().sum()) == ("w.bin" if beside else "data", 1023 * 512)


def test_all_threads_get_the_same_graph() -> None:
    model = ep.load(PLAIN.SerializeToString())
    start, found = threading.Barrier(8), []

    def work() -> None:
        start.wait()
        found.append(model.ir)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(graph) for graph in found}) == 1


def test_another_handle_copies_and_pickles_have_the_graph() -> None:
    model = ep.load(PLAIN.SerializeToString())
    assert pickle.loads(pickle.dumps(model)).to_proto() == model.to_proto()
    model = ep.load(PLAIN.SerializeToString())
    assert ep.Model(model).ir is model.ir


def test_long_files_are_read_this_way_and_short_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    nodes = [f"x{i + 1} = Relu (x{i}) " for i in range(2000)]
    short, long = (chain(f"x0 = Abs (x) {''.join(nodes[:count])} y = Neg (x{count})") for count in (100, 2000))
    assert [ep.load(model.SerializeToString()).parsed is not None for model in (short, long)] == [False, True]
