from __future__ import annotations

import errno
import inspect

import click
import pytest

from entrepot.cli.exit_codes import Exit, as_dict, exit_code, one_line
from entrepot.ir import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.VerificationError("x"), 1),
        (errors.InputError("x"), 2),
        (errors.ExecutionError("x"), 2),
        (FileNotFoundError(errno.ENOENT, "x"), 2),
        (PermissionError(errno.EACCES, "x"), 2),
        (click.UsageError("x"), 2),
        (click.FileError("x"), 2),
        (errors.ModelFormatError("x"), 3),
        (errors.UnsupportedOpError("x"), 4),
        (errors.ConversionError("x"), 4),
        (errors.MissingDependencyError("x"), 5),
        (errors.ResourceLimitError("x"), 6),
        (MemoryError(), 6),
        (OSError(errno.ENOSPC, "x"), 6),
        (ZeroDivisionError("x"), 70),
        (ModuleNotFoundError("x"), 70),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (BrokenPipeError(errno.EPIPE, "x"), 141),
    ],
)
def test_every_kind_of_failure_has_its_status(error, code):
    assert exit_code(error) == code
    assert as_dict(error)["exit_code"] == code


def test_no_error_of_the_tree_is_an_internal_one():
    tree = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.EntrepotError)]
    assert len(tree) > 6
    assert all(exit_code(kind("x")) not in {Exit.INTERNAL, Exit.OK} for kind in tree)


def test_memory_that_ran_out_in_a_node_is_a_resource_limit():
    error = errors.ExecutionError("x")
    error.__cause__ = MemoryError()
    assert exit_code(error) == Exit.RESOURCE_LIMIT


def test_the_line_says_where_and_what_to_do():
    error = errors.InputError("is wrong", path="net.onnx", value="x", hint="mend it")
    assert one_line(error) == "file 'net.onnx', value 'x': is wrong (hint: mend it)"


def test_json_keeps_the_parts_apart_and_lists_blockers():
    blocker = errors.UnsupportedOpError("too new", node="node 'a'")
    facts = as_dict(errors.ConversionError("cannot", blockers=(blocker,), graph="net"))
    assert facts["message"] == "cannot"
    assert facts["graph"] == "net"
    assert facts["blockers"] == [
        {"type": "UnsupportedOpError", "message": "too new", "exit_code": 4, "node": "node 'a'"}
    ]
