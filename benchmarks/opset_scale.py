"""What a conversion costs on large models, from file to file, beside onnx's and onnxscript's converters.

    python -m benchmarks.opset_scale [--rounds 3]

Four models of opset 18 go to 25: 88 nodes with 3 GiB of weights in another file (a sparse one, which takes no space),
40,000 nodes, 40,000 with 20,000 weights in another file, and 40,000 of which 1 in 100 is rewritten. Each conversion
runs in a process of its own: read the model, convert, write it beside the old one, whose weights the new one refers to.
Time is CPU time of these three, best of the rounds; memory is the peak of the process above what it was before. A tiny
conversion pays for imports and tables first. The bars: 0.5 s and 60 MB for the first model; for the others 1.2 times
the CPU time of onnx, and 400 MiB. At last, 20,000 nodes of opset 11, each of which is rewritten: what the conversion of
one takes once the graph is there, 50 µs at most.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper

START, TARGET = 18, 25
WIDTH, INNER, LAYERS = 8192, 6144, 8
BLOCKS = 2000
OLD = 20_000
SECONDS, MEGABYTES = 0.5, 60.0
"""Bars for the first model."""
RATIO, MOST_MEGABYTES = 1.2, 400 * 1.048576
"""Bars for those of which most nodes stay: times of onnx, and memory."""
MICROSECONDS = 50.0
"""The bar for a node that is rewritten."""
LAYER = """
    {i}n = LayerNormalization <axis = -1> ({x}, scale, bias)
    {i}a = MatMul ({i}n, {i}up)
    {i}b = Add ({i}a, inner)
    {i}c = Div ({i}b, root)
    {i}d = Erf ({i}c)
    {i}e = Add ({i}d, one)
    {i}f = Mul ({i}b, {i}e)
    {i}g = Mul ({i}f, half)
    {i}h = MatMul ({i}g, {i}down)
    {i}k = Add ({i}h, bias)
    {y} = Add ({x}, {i}k)
"""
BLOCK = """
    {i}s = Shape ({x})
    {i}b = Gather <axis = 0> ({i}s, zero)
    {i}u = Unsqueeze ({i}b, axis)
    {i}w = Concat <axis = 0> ({i}u, rest)
    {i}n = LayerNormalization <axis = -1> ({x}, scale, bias)
    {i}q = MatMul ({i}n, square)
    {i}r = Reshape ({i}q, {i}w)
    {i}t = Transpose <perm = [0, 2, 1]> ({i}r)
    {i}c = Cast <to = 1> ({i}t)
    {i}p = Softmax <axis = -1> ({i}c)
    {i}v, {i}j = Split <axis = 1, num_outputs = 2> ({i}p)
    {i}m = ReduceMean <keepdims = 1> ({i}p, last)
    {i}d = Sub ({i}p, {i}m)
    {i}e = Mul ({i}d, {i}d)
    {i}g = Identity ({i}e)
    {i}h = Relu ({i}g)
    {i}z = Flatten <axis = 1> ({i}h)
    {i}f = Reshape ({i}z, back)
    {i}o = Slice ({i}f, starts, ends)
    {y} = Add ({x}, {i}o)
"""


def write_heavy(path: Path) -> None:
    """A stack of feed-forward layers whose weights are 3 GiB of zeros."""
    stored = "float one = {1.0}, float half = {0.5}, float root = {1.4142135}"
    body = "".join(LAYER.format(i=f"l{i}_", x=f"x{i}", y=f"x{i + 1}") for i in range(LAYERS))
    model = _parse(body, f"float[batch, length, {WIDTH}]", LAYERS, stored)
    offset = 0
    weights = {"scale": [WIDTH], "bias": [WIDTH], "inner": [INNER]}
    for at in range(LAYERS):
        weights |= {f"l{at}_up": [WIDTH, INNER], f"l{at}_down": [INNER, WIDTH]}
    for name, dims in weights.items():
        offset += _refer(model, name, dims, offset, f"{path.stem}.data")
    with open(path.with_suffix(".data"), "wb") as data:
        data.truncate(offset)
    path.write_bytes(model.SerializeToString())


def _refer(model: onnx.ModelProto, name: str, dims: list[int], offset: int, location: str) -> int:
    size = 4
    for dim in dims:
        size *= dim
    tensor = model.graph.initializer.add(name=name, dims=dims, data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", size)):
        tensor.external_data.add(key=key, value=str(value))
    return size


def write_long(path: Path) -> None:
    """Blocks of 20 nodes, of which most have a new version between the two opsets."""
    body = "".join(BLOCK.format(i=f"b{i}_", x=f"x{i}", y=f"x{i + 1}") for i in range(BLOCKS))
    stored = (
        "int64 zero = {0}, int64[1] axis = {0}, int64[2] rest = {8, 16}, int64[1] last = {-1}, "
        "int64[3] back = {0, 8, 16}, int64[1] starts = {0}, int64[1] ends = {9223372036854775807}"
    )
    model = _parse(body, "float[batch, 8, 16]", BLOCKS, stored)
    for name, dims in (("scale", [16]), ("bias", [16]), ("square", [16, 16])):
        count = dims[0] * (dims[1] if dims[1:] else 1)
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT, dims, [0.5] * count))
    path.write_bytes(model.SerializeToString())


def write_many(path: Path) -> None:
    """Layers of four nodes, each with a matrix and a bias of its own in another file."""
    layer = "{i}a = MatMul ({x}, {i}w) {i}b = Add ({i}a, {i}v) {i}c = Relu ({i}b) {y} = Reshape ({i}c, rows)"
    count, width = 5 * BLOCKS, 194
    body = " ".join(layer.format(i=f"l{at}_", x=f"x{at}", y=f"x{at + 1}") for at in range(count))
    model = _parse(body, f"float[batch, {width}]", count, f"int64[2] rows = {{-1, {width}}}")
    offset = 0
    for at in range(count):
        for name, dims in (("w", [width, width]), ("v", [width])):
            offset += _refer(model, f"l{at}_{name}", dims, offset, f"{path.stem}.data")
    with open(path.with_suffix(".data"), "wb") as data:
        data.truncate(offset)
    path.write_bytes(model.SerializeToString())


def write_mixed(path: Path, long: Path) -> None:
    """The long model, in which one normalisation of five is of a kind that opset 21 changed."""
    model = onnx.load(long)
    for node in [node for node in model.graph.node if node.op_type == "LayerNormalization"][::5]:
        node.CopyFrom(
            helper.make_node("GroupNormalization", [node.input[0], "group", "group"], node.output, num_groups=8)
        )
    model.graph.initializer.append(helper.make_tensor("group", TensorProto.FLOAT, [8], [1.0] * 8))
    path.write_bytes(model.SerializeToString())


def write_old(path: Path) -> None:
    """Nodes whose attributes became inputs."""
    kinds = ("ReduceSum <axes = [1]>", "Unsqueeze <axes = [1]>", "ReduceMean <axes = [-1]>", "Dropout <ratio = 0.5>")
    body = "".join(f"{'xabc'[at % 4]}{at // 4 + 1} = {kinds[at % 4]} (x0) " for at in range(OLD))
    path.write_bytes(_parse(body, "float[batch, 8, 16]", OLD // 4, "", 11).SerializeToString())


def _parse(body: str, kind: str, last: int, stored: str, opset: int = START) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> net ({kind} x0) => ({kind} x{last}) <{stored}> {{ {body} }}'
    )


def convert_ours(path: Path, target: Path) -> None:
    """``entrepot.convert_opset``."""
    import entrepot as ep

    ep.convert_opset(ep.load(path), TARGET).save(target)


def convert_onnx(path: Path, target: Path) -> None:
    """The converter of onnx, in C++; it would read the weights, so they are left out."""
    from onnx import version_converter  # noqa: TID251 - the peer that is measured

    model = version_converter.convert_version(onnx.load(path, load_external_data=False), TARGET)
    target.write_bytes(model.SerializeToString())


def convert_onnxscript(path: Path, target: Path) -> None:
    """The converter of onnxscript, in Python."""
    import onnx_ir as ir
    import onnxscript.version_converter

    model = ir.load(path)
    onnxscript.version_converter.convert_version(model, TARGET)
    target.write_bytes(ir.serde.serialize_model(model).SerializeToString())


CONVERTERS: dict[str, Callable[[Path, Path], None]] = {
    "entrepot": convert_ours,
    "onnx": convert_onnx,
    "onnxscript": convert_onnxscript,
}


def child(who: str, path: Path) -> None:
    """Convert once and print the figures as JSON."""
    warnings.simplefilter("ignore")
    tiny = path.with_name("tiny.onnx")
    target = path.with_name(f"{path.stem}_{who}.onnx")
    CONVERTERS[who](tiny, target)  # pays for the imports and for tables filled at first use
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    CONVERTERS[who](path, target)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    stamped = {item.domain: item.version for item in onnx.load(target, load_external_data=False).opset_import}
    print(json.dumps({"seconds": seconds, "megabytes": peak * 1024 / 1e6, "opset": stamped[""]}))


def rewriting(path: Path) -> None:
    """Print what it takes to convert a node, apart from making the graph."""
    import entrepot as ep

    def seconds(run: Callable[[], object]) -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    ep.convert_opset(ep.load(path), TARGET)
    loaded = [ep.load(path) for _ in range(2)]
    graph = seconds(lambda: loaded[0].ir)
    print(json.dumps({"seconds": (seconds(lambda: ep.convert_opset(loaded[1], TARGET)) - graph) / OLD}))


def measure(who: str, path: Path, rounds: int) -> dict[str, float]:
    """The best time of some processes, and their largest peak."""
    command = [sys.executable, "-m", "benchmarks.opset_scale", "--child", who, str(path)]
    runs = []
    for _ in range(rounds):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    picks = {"seconds": min, "megabytes": max}
    return runs[0] | {key: pick(run[key] for run in runs) for key, pick in picks.items() if key in runs[0]}


def main() -> int:
    """Print the table; the exit code is 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        who, path = options.child[0], Path(options.child[1])
        rewriting(path) if who == "rewriting" else child(who, path)
        return 0
    missed = False
    print(f"{'model':20} {'converter':12}{'seconds':>9}{'x onnx':>8}{'MB':>8}  arrived at")
    with tempfile.TemporaryDirectory() as folder:
        names = ("tiny", "heavy", "long", "many", "mixed", "old")
        tiny, heavy, long, many, mixed, old = (Path(folder) / f"{name}.onnx" for name in names)
        tiny.write_bytes(_parse("x1 = Relu (x0)", "float[batch, 4]", 1, "float one = {1.0}").SerializeToString())
        write_heavy(heavy)
        write_long(long)
        write_many(many)
        write_mixed(mixed, long)
        write_old(old)
        for label, path in {
            "3 GiB, 88 nodes": heavy, "40,000 nodes": long, "and 20,000 weights": many, "1 in 100 rewritten": mixed,
        }.items():  # fmt: skip
            found = {who: measure(who, path, options.rounds) for who in CONVERTERS}
            for who, row in found.items():
                ratio = row["seconds"] / max(found["onnx"]["seconds"], 1e-3)
                figures = f"{row['seconds']:9.2f}{ratio:8.2f}{row['megabytes']:8.0f}  opset {row['opset']:.0f}"
                print(f"{label:20} {who:12}{figures}", flush=True)
            missed |= not _within(found["entrepot"], found["onnx"]["seconds"], first=path is heavy)
        each = measure("rewriting", old, options.rounds)["seconds"] * 1e6
        print(f"a rewritten node of 20,000: {each:.0f} µs")
        missed |= each > MICROSECONDS
    print("a bar is missed" if missed else "all bars are met")
    return int(missed)


def _within(found: dict[str, float], theirs: float, *, first: bool) -> bool:
    seconds, megabytes = (SECONDS, MEGABYTES) if first else (RATIO * theirs, MOST_MEGABYTES)
    return found["seconds"] <= seconds and found["megabytes"] <= megabytes


if __name__ == "__main__":
    sys.exit(main())
