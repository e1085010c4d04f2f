"""``entrepot run``: a model on given or random inputs."""

from __future__ import annotations

import functools
import re
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import numpy as np

from entrepot.cli.group import verb
from entrepot.cli.inputs import input_options, read_inputs
from entrepot.cli.models import MODEL, TARGET, Source, Target, read_model
from entrepot.cli.output import Output, rows
from entrepot.ir.errors import InputError, MissingFileError, StorageError
from entrepot.ir.io.destination import folder_problem, write_file

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 1000
"""Largest output whose values are part of the JSON."""


@verb("run")
@click.argument("model", type=MODEL)
@input_options
@click.option("-p", "--provider", "providers", multiple=True, default=["cpu"], show_default=True, help="Who runs it.")
@click.option("--save", type=TARGET, help="Write all outputs to one .npz file.")
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Write each output to a .npy file."
)
def command(
    output: Output,
    model: Source,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
    providers: tuple[str, ...],
    save: Target | None,
    output_dir: Path | None,
) -> None:
    """Run MODEL and show its outputs; inputs that are not given are random."""
    from entrepot.ir.progress import reporter
    from entrepot.runtime.blas import choice
    from entrepot.runtime.session import Session

    loaded = read_model(model, output)
    feeds, made_up = read_inputs(loaded, inputs, dims, seed)
    for name in made_up:
        output.note(f"input '{name}' is random: {feeds[name].dtype}{list(feeds[name].shape)}")
    tell = reporter(output.progress)
    tell("preparing")
    session = Session(loaded, providers=providers)
    for remark in session.plan().remarks:
        output.note(remark)
    tell("running")
    start = time.perf_counter()
    results = session.run(feeds)
    seconds = time.perf_counter() - start
    if save is not None:
        save_npz(save, results)
    if output_dir is not None:
        save_npy(output_dir, results)
    facts = {
        "seconds": seconds,
        "blas": str(choice()),
        "outputs": {name: _facts(value) for name, value in results.items()},
    }
    output.result(facts, lambda: _text(facts))


def save_npz(target: Target, results: dict[str, Any]) -> None:
    """Write arrays under their names, whatever these are (``numpy.savez`` takes no array named ``file``)."""
    arrays = {name: _storable(name, value) for name, value in results.items()}

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_file(target, write)


def save_npy(folder: Path, results: dict[str, Any]) -> None:
    """Write each array to its own file; ``_`` replaces what a file name cannot contain (an output may be ``../x``)."""
    arrays = [_storable(name, value) for name, value in results.items()]
    names = [re.sub(r"[^\w.-]|^\.", "_", name) for name in results]
    _make_folder(folder)
    for at, (name, array) in enumerate(zip(names, arrays, strict=True)):
        unique = name if names.count(name) == 1 else f"{name}_{at}"
        write = functools.partial(np.lib.format.write_array, array=array, allow_pickle=False)
        write_file(folder / f"{unique}.npy", write)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = folder_problem(folder.absolute().parent)
        if problem is not None and not isinstance(problem, MissingFileError):
            raise problem from error
        reason = f"no folder can be made there: {error.strerror or error}"
        raise StorageError(reason, path=folder, errno=error.errno) from error


def _storable(name: str, value: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise InputError("a sequence or an empty optional cannot be written as an array", value=name)
    return value.astype(str) if value.dtype == object else value


def _facts(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"kind": "sequence", "items": [_facts(item) for item in value]}
    if value is None:
        return {"kind": "optional", "present": False}
    facts = {"kind": "tensor", "dtype": value.dtype.name, "shape": list(value.shape)} | _statistics(value)
    return facts | {"values": value.tolist() if value.size <= _SHOWN else None}


def _statistics(array: np.ndarray) -> dict[str, float]:
    if array.dtype.kind in "OUSbc" or array.size == 0:
        return {}
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        return {"min": float(wide.min()), "max": float(wide.max()), "mean": float(wide.mean())}


def _text(facts: dict[str, Any]) -> RenderableType:
    cells = []
    for name, fact in facts["outputs"].items():
        if fact["kind"] != "tensor":
            cells.append((name, fact["kind"], "", "", "", str(len(fact.get("items", []))) + " items"))
            continue
        numbers = [f"{fact[key]:.6g}" if key in fact else "" for key in ("min", "max", "mean")]
        few = fact["values"] is not None and np.prod(fact["shape"]) <= 8
        cells.append((name, f"{fact['dtype']}{fact['shape']}", *numbers, fact["values"] if few else ""))
    return rows("output", "type", "min", "max", "mean", "values", cells=cells)
