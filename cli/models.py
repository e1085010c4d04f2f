"""Models named on the command line."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import click

from entrepot.cli.output import Output
from entrepot.cli.streams import StandardOutput

if TYPE_CHECKING:
    from entrepot.ir.model import Model

Target: TypeAlias = "Path | BinaryIO"
"""Where a result goes: a path, or standard output."""

_MOST = 1 << 31
"""A protobuf is smaller."""


class Source:
    """A model to read, from a file or a pipe.

    Args:
        name: What the user wrote.
        path: The file; ``None`` for standard input.
    """

    def __init__(self, name: str, path: Path | None) -> None:
        self._name = name
        self._path = path

    def __str__(self) -> str:
        return self._name

    @property
    def folder(self) -> Path | None:
        """The folder of a package, if it is one."""
        return self._path if self._path is not None and self._path.is_dir() else None

    @property
    def readable(self) -> Path | bytes:
        """What ``load`` and onnx's checker accept: a path, or the bytes where they can be read only once."""
        if self._path is not None and not self._path.is_fifo():
            return self._path
        return self._content

    @property
    def size(self) -> int:
        """Bytes of the file, not counting weights beside it."""
        readable = self.readable
        return len(readable) if isinstance(readable, bytes) else readable.stat().st_size

    @functools.cached_property
    def _content(self) -> bytes:
        if self._path is None:
            return sys.stdin.buffer.read(_MOST)
        with self._path.open("rb") as file:
            return file.read(_MOST)


class ModelFile(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """An existing file, or ``-`` for standard input; a missing one is a usage error before anything is loaded."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Source:
        """The file or pipe, when it can be read."""
        if os.path.isfile(os.path.join(os.fsdecode(value), "entrepot.json")):
            self.fail(f"'{os.fsdecode(value)}' is a package: name one of the .onnx files in it", param, ctx)
        if value != "-":
            return Source(os.fsdecode(value), Path(os.fsdecode(_OLD.convert(value, param, ctx))))
        output = _output(ctx)
        if "stdin" in output.closed:
            self.fail("standard input is closed", param, ctx)
        if output.claims_input:
            self.fail("standard input can be read only once", param, ctx)
        if sys.stdin.isatty():
            self.fail("standard input is a terminal: send a model through a pipe", param, ctx)
        output.claims_input = True
        return Source("-", None)


class ModelOrPackage(ModelFile):
    """The same, or the folder of a package."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Source:
        """The file, pipe or folder, when it can be read."""
        if os.path.isfile(os.path.join(os.fsdecode(value), "entrepot.json")):
            return Source(os.fsdecode(value), Path(os.fsdecode(value)))
        return super().convert(value, param, ctx)


class NewFile(click.ParamType):  # type: ignore[type-arg]
    """A place to write to, or ``-`` for standard output; whatever is in the way is reported before the work is done."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Target:
        """The path, when it can be written."""
        if value == "-":
            return self._standard_output(param, ctx)
        from entrepot.ir.io.destination import destination, folder_problem

        path = Path(os.fsdecode(_NEW.convert(value, param, ctx)))
        place = destination(path)
        problem = None if place.is_stream else folder_problem(place.path.parent)
        if problem is not None:
            raise problem
        return path

    def _standard_output(self, param: click.Parameter | None, ctx: click.Context | None) -> BinaryIO:
        output = _output(ctx)
        if "stdout" in output.closed:
            self.fail("standard output is closed", param, ctx)
        if output.claims_output:
            self.fail("standard output can hold only one result", param, ctx)
        if sys.stdout.isatty():
            self.fail("standard output is a terminal: send it to a file or a pipe", param, ctx)
        output.claims_output = True
        return cast("BinaryIO", StandardOutput())


class NewPlace(NewFile):
    """The same, or a folder, which may exist."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Target:
        """The path, when it can be written."""
        if os.path.isdir(value):
            return Path(os.fsdecode(value))
        return super().convert(os.fsdecode(value).rstrip("/" + os.sep) or value, param, ctx)


def _output(ctx: click.Context | None) -> Output:
    return Output() if ctx is None else ctx.find_root().ensure_object(Output)


MODEL = ModelFile()
MODEL_OR_PACKAGE = ModelOrPackage()
TARGET = NewFile()
PLACE = NewPlace()
_OLD = click.Path(exists=True, dir_okay=False)
_NEW = click.Path(dir_okay=False, writable=True)


def read_model(source: Source, output: Output) -> Model:
    """Load with the default limits, and say so if it takes long."""
    from entrepot.ir.io.read import load
    from entrepot.ir.progress import reporter

    reporter(output.progress)(f"reading {source}")
    return load(source.readable)
