from __future__ import annotations

import errno
import pickle

import onnx_ir
import pytest

import entrepot
from entrepot.ir import errors
from entrepot.ir.errors import (
    ConversionError,
    EntrepotError,
    InputError,
    MissingDependencyError,
    MissingFileError,
    ModelFormatError,
    ResourceLimitError,
    StorageError,
    UnsupportedOpError,
    VerificationError,
    describe_node,
)


def test_a_message_says_where_what_and_what_to_do() -> None:
    error = ModelFormatError("it broke", path="a.onnx", graph="main", node="node 'n' (Add)", value="x", hint="mend it")
    assert str(error) == "file 'a.onnx', graph 'main', node 'n' (Add), value 'x': it broke (hint: mend it)"
    assert (error.path, error.graph, error.node, error.value, error.hint) == (
        "a.onnx", "main", "node 'n' (Add)", "x", "mend it",
    )  # fmt: skip


def test_a_message_without_place_and_hint_is_the_message() -> None:
    assert str(InputError("it broke")) == "it broke"
    assert InputError("it broke").location == ""


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (ModelFormatError, ValueError),
        (UnsupportedOpError, NotImplementedError),
        (ConversionError, ValueError),
        (VerificationError, AssertionError),
        (ResourceLimitError, RuntimeError),
        (InputError, ValueError),
        (errors.ExecutionError, RuntimeError),
        (MissingDependencyError, ImportError),
        (errors.PluginError, ImportError),
        (StorageError, OSError),
        (MissingFileError, FileNotFoundError),
    ],
)
def test_each_error_is_also_what_a_caller_expects(kind: type[EntrepotError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin, match="it broke"):
        raise kind("it broke", path="a.onnx", hint="mend it")
    assert issubclass(kind, EntrepotError)


def test_every_error_of_the_tree_is_listed_above() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EntrepotError)}
    listed = next(mark for mark in test_each_error_is_also_what_a_caller_expects.pytestmark)
    assert kinds - {EntrepotError} == {kind for kind, _ in listed.args[1]}


def test_a_storage_error_keeps_the_systems_number_and_the_path() -> None:
    error = StorageError("full", path="net.onnx", errno=errno.ENOSPC)
    assert error.errno == errno.ENOSPC
    assert str(error) == "file 'net.onnx': full"


def test_a_conversion_error_lists_every_blocker() -> None:
    blockers = (UnsupportedOpError("first", node="node 'a' (Foo)"), ConversionError("second"))
    text = str(ConversionError("cannot", blockers=blockers))
    assert text.splitlines() == ["cannot", "  - node 'a' (Foo): first", "  - second"]


def test_a_conversion_error_tells_one_reason_for_many_nodes_once() -> None:
    alike = [ConversionError("too new", node=f"node '{at}' (Foo, opset 20)") for at in range(50)]
    other = ConversionError("too new", node="node 'z' (Bar, opset 20)")
    hinted = ConversionError("too new", node="node 'h' (Foo, opset 20)", hint="wait")
    error = ConversionError("cannot", blockers=(*alike[:40], other, hinted, *alike[40:]))
    assert str(error).splitlines() == [
        "cannot", *(f"  - {each}" for each in alike[:3]), "  - 47 more (Foo, opset 20) for the same reason",
        f"  - {other}", f"  - {hinted}",
    ]  # fmt: skip
    assert len(error.blockers) == 52


def test_a_verification_error_carries_its_report() -> None:
    report = object()
    assert VerificationError("differs", report=report).report is report


def test_nodes_are_described_by_name_operator_and_opset() -> None:
    value = onnx_ir.Value(name="x")
    assert describe_node(onnx_ir.Node("", "Conv", [value], name="conv1"), 13) == "node 'conv1' (Conv, opset 13)"
    assert describe_node(onnx_ir.Node("com.x", "Op", [], name="n")) == "node 'n' (com.x::Op)"
    unnamed = onnx_ir.Node("", "Add", [value, value], outputs=[onnx_ir.Value(name="y")])
    assert describe_node(unnamed) == "unnamed node making 'y' (Add)"
    assert (
        describe_node(onnx_ir.Node("", "Add", [value, value], version=14)) == "unnamed node making '?' (Add, opset 14)"
    )


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EntrepotError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_comes_whole_out_of_another_process(kind: type[EntrepotError]) -> None:
    error = kind("it broke", hint="mend it")
    error.node, error.value = "node 'n' (Add)", "x"
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is kind
    assert (str(other), vars(other)) == (str(error), vars(error))


def test_every_error_of_the_public_functions_is_public() -> None:
    assert {kind.__name__ for kind in KINDS} <= set(entrepot.__all__)
