"""Tokens of packages beside those of transformers, on small models of many kinds: one line for each.

    python -m benchmarks.transformer_tokens [--only Donut Mamba] [--json FILE [--resume]]

On the host and in one graph, at opsets 20 and 17, greedily and with four beams, on batches of one and of three with
padding, at two lengths, with tokens that end rows early. A number is how many of these runs give the same tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from tests.export_cases.generating import NAMES, built, given

OPSETS = (20, 17)
BEAMS = (1, 4)
NEW, PAD = 8, 0
_NONE = [98]
"""An unlikely token, in place of an empty list, which transformers does not take."""
Tokens = Callable[[Mapping[str, Any], int, Sequence[int]], Any]
"""What generates, from inputs, a number of beams, and the tokens that end a row."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print the table; the exit code is 1 when tokens differ anywhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="models whose names contain one of these"
    )
    parser.add_argument("--json", type=Path, help="write one line per model to this file")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    options = parser.parse_args(arguments)
    lines = options.json.read_text().splitlines() if options.resume and options.json and options.json.exists() else []
    known = {row["name"]: row for row in map(json.loads, lines)}
    print(f"{'':34}" + "".join(f"{column:>12}" for column in _COLUMNS) + "     seconds", flush=True)
    with open(options.json or os.devnull, "a" if options.resume else "w") as log:
        for name in NAMES:
            if any(text.lower() in name.lower() for text in options.only):
                row = known.get(name) or _row(name)
                known[name] = row
                log.write("" if json.dumps(row) in lines else json.dumps(row) + "\n")
                log.flush()
                print(_line(row), flush=True)
    return int(any(row["same"][column] != row["all"][column] for row in known.values() for column in row["all"]))


_COLUMNS = tuple(f"{where} {opset}" for where in ("host", "graph") for opset in OPSETS)


def _line(row: Mapping[str, Any]) -> str:
    counts = [f"{row['same'][column]} of {row['all'][column]}" for column in _COLUMNS]
    return f"{row['name']:34}" + "".join(f"{count:>12}" for count in counts) + f"{row['seconds']:12.1f}"


def _row(name: str) -> dict[str, Any]:
    model, began = built(name), time.process_time()
    same, every = dict.fromkeys(_COLUMNS, 0), dict.fromkeys(_COLUMNS, 0)
    asked = list(_asked(name, model))
    package = _exported(name, model)
    for opset in OPSETS:
        for where, tokens in _ways(package, opset):
            for inputs, beams, ends, wanted in asked:
                every[where] += 1
                same[where] += bool(np.array_equal(tokens(inputs, beams, ends), wanted))
    return {"name": name, "same": same, "all": every, "seconds": time.process_time() - began}


def _exported(name: str, model: Any) -> Any:
    import entrepot as ep

    samples = given(name, model, 2) if name == "llava" else None
    return ep.export_transformer(model, samples, verify=False, progress=False)


def _ways(exported: Any, opset: int) -> Iterator[tuple[str, Tokens]]:
    """The loop on the host, and that in a graph."""
    import entrepot as ep
    from entrepot.exporters.transformers.in_graph.loop import looped

    graphs = {role: ep.convert_opset(graph, opset) for role, graph in exported.graphs.items()}
    package = ep.Package(graphs, exported.manifest)

    def on_host(inputs: Mapping[str, Any], beams: int, ends: Sequence[int]) -> Any:
        return package.generate(**inputs, max_new_tokens=NEW, num_beams=beams, eos_token_id=ends, pad_token_id=PAD)

    yield f"host {opset}", on_host
    sessions = {beams: _session(looped(exported, num_beams=beams, opset=opset)) for beams in BEAMS}

    def in_graph(inputs: Mapping[str, Any], beams: int, ends: Sequence[int]) -> Any:
        from entrepot.runtime.generation.settings import padded_ends

        feeds = {name: value.numpy() for name, value in inputs.items()}
        said = {"max_new_tokens": np.array(NEW), "pad_token_id": np.array(PAD), "eos_token_id": padded_ends(ends)}
        return sessions[beams].run(None, feeds | said)[0]

    yield f"graph {opset}", in_graph


def _session(package: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    file = ir.to_proto(package.graphs["loop"].ir).SerializeToString()
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _asked(name: str, model: Any) -> Iterator[tuple[Mapping[str, Any], int, Sequence[int], Any]]:
    """Inputs, the number of beams, what ends rows, and the tokens of transformers."""
    for rows, longer in ((1, 0), (3, 0), (3, 4)):
        inputs = given(name, model, rows, seed=60 + longer, longer=longer)
        free = _eager(model, inputs, 1, _NONE)
        for beams in BEAMS:
            for ends in (_NONE, [int(free[0, -6]), int(free[-1, -3])]):
                yield inputs, beams, ends, _eager(model, inputs, beams, ends)


def _eager(model: Any, inputs: Mapping[str, Any], beams: int, ends: Sequence[int]) -> Any:
    import torch
    import transformers

    asked: dict[str, Any] = {"max_new_tokens": NEW, "num_beams": beams, "do_sample": False, "pad_token_id": PAD}
    asked["eos_token_id"] = list(ends) or None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.GenerationMixin.generate(model, **inputs, **asked).numpy()


if __name__ == "__main__":
    sys.exit(main())
