"""Whatever a model asks for is held against the limits before it is made: bombs end in an error that names the node."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime import room
from entrepot.runtime.memory import free_bytes
from entrepot.runtime.planning.growth import may_outgrow

HEAD = '<ir_version: 10, opset_import: ["": 23]>\n'
LIMITS = ep.Limits(result_bytes=1 << 24)

VECTORS = "s = Constant<value_ints=[MEGA]>() a = Expand(x, s) t = Constant<value_ints=[MEGA,1]>() b = Expand(x, t) "
HUGE = "h = Constant<value_int=TERA>() "
BOMBS = {
    "Expand": "s = Constant<value_ints=[MEGA,MEGA,MEGA]>() e = Expand(x, s) y = ReduceSum(e)",
    "Tile": "s = Constant<value_ints=[4611686018427387904]>() y = Tile(x, s)",
    "ConstantOfShape": "s = Constant<value_ints=[MEGA,4096]>() y = ConstantOfShape(s)",
    "Add": VECTORS + "y = Add(a, b)",
    "Where": VECTORS + "z = Greater(a, x) y = Where(z, a, b)",
    "Max": VECTORS + "y = Max(a, b, x)",
    "Equal": VECTORS + "y = Equal(a, b)",
    "Pow": VECTORS + "y = Pow(a, b)",
    "MatMul": VECTORS + "one = Constant<value_ints=[1,-1]>() r = Reshape(a, one) y = MatMul(b, r)",
    "Gemm": VECTORS + "y = Gemm<transB=1>(b, b)",
    "Einsum": VECTORS + 'y = Einsum<equation="i,j->ij">(a, a)',
    "EyeLike": "s = Constant<value_ints=[MEGA,MEGA]>() e = Expand(x, s) y = EyeLike(e)",
    "Pad": "s = Constant<value_ints=[0,TERA]>() y = Pad(x, s)",
    "Pad edges": 's = Constant<value_ints=[0,TERA]>() y = Pad<mode="edge">(x, s)',
    "Range": HUGE + "zero = Constant<value_int=0>() one = Constant<value_int=1>() y = Range(zero, h, one)",
    "Range of floats": "z = Constant<value_float=0.0>() o = Constant<value_float=0.0001>()"
    " h = Constant<value_float=1e9>() y = Range(z, h, o)",
    "OneHot": HUGE + "i = Cast<to=7>(x) v = Constant<value_floats=[0.0,1.0]>() y = OneHot(i, h, v)",
    "Resize by scales": "q = Reshape(x, f) s = Constant<value_floats=[1.0,1.0,1e6,1e6]>() y = Resize(q, , s)",
    "Resize to sizes": "q = Reshape(x, f) s = Constant<value_ints=[1,1,MEGA,MEGA]>()"
    ' y = Resize<mode="linear">(q, , , s)',
    "ConvTranspose": "q = Reshape(x, f) k = ConstantOfShape(f) r = Constant<value_ints=[1,1,2,2]>() p = Expand(q, r)"
    " y = ConvTranspose<strides=[MEGA,MEGA]>(p, k)",
    "Conv": "q = Reshape(x, f) k = ConstantOfShape(f) y = Conv<pads=[MEGA,MEGA,MEGA,MEGA]>(q, k)",
    "MaxPool": "q = Reshape(x, f) y = MaxPool<kernel_shape=[MEGA,MEGA],pads=[1048575,1048575,1048575,1048575]>(q)",
    "MaxUnpool": "q = Reshape(x, f) i = Cast<to=7>(q) s = Constant<value_ints=[1,1,MEGA,MEGA]>()"
    " y = MaxUnpool<kernel_shape=[1,1]>(q, i, s)",
    "Col2Im": "three = Constant<value_ints=[1,1,1]>() q = Reshape(x, three) s = Constant<value_ints=[MEGA,MEGA]>()"
    " y = Col2Im(q, s, s)",
    "RoiAlign": "q = Reshape(x, f) r = Constant<value=float[1,4]{0,0,1,1}>() i = Constant<value_ints=[0]>()"
    " y = RoiAlign<output_height=MEGA,output_width=MEGA>(q, r, i)",
    "GatherND": VECTORS + "row = Constant<value_ints=[1,-1]>() d = Reshape(a, row) i = Cast<to=7>(b) y = GatherND(d,i)",
    "Gather": VECTORS + "one = Constant<value_ints=[1,-1]>() d = Reshape(a, one) i = Cast<to=7>(a) y = Gather(d, i)",
    "AffineGrid": "e = Constant<value=float[1,2,3]{1,0,0,0,1,0}>() s = Constant<value_ints=[1,1,MEGA,MEGA]>()"
    " y = AffineGrid(e, s)",
    "CenterCropPad": "s = Constant<value_ints=[TERA]>() y = CenterCropPad(x, s)",
    "RandomNormal": "y = RandomNormal<shape=[MEGA,MEGA]>()",
    "Multinomial": "e = Constant<value=float[1,2]{1,1}>() y = Multinomial<sample_size=1000000000>(e)",
    "HannWindow": HUGE + "y = HannWindow(h)",
    "DFT": HUGE + "three = Constant<value_ints=[1,1,1]>() q = Reshape(x, three) y = DFT(q, h)",
    "MelWeightMatrix": "n = Constant<value_int=1000000>() z = Constant<value_float=0.0>() "
    "h = Constant<value_float=4000.0>() y = MelWeightMatrix(n, n, n, z, h)",
    "StringConcat": 's0 = Constant<value_strings=["abcdefgh"]>() '
    + " ".join(f"s{n} = StringConcat(s{n - 1}, s{n - 1})" for n in range(1, 60))
    + " y = RegexFullMatch<pattern=\"a\">(s59)",
    "Concat": " ".join(f"c{n} = Concat<axis=0>({', '.join([f'c{n - 1}' if n > 1 else 'x'] * 90)})" for n in range(1, 9))
    + " y = Identity(c8)",
    "Loop": "y = Loop(, , x) <body = b (int64 i, bool go, float[K] v) => (bool more, float[L] w)"
    " { more = Identity(go) w = Concat<axis=0>(v, v) }>",
}  # fmt: skip


def bomb(body: str) -> onnx.ModelProto:
    kinds = {"Equal(a": "bool", "RegexFullMatch": "bool", "Multinomial": "int32", "Range(zero": "int64"}
    kind = next((kind for words, kind in kinds.items() if words in body), "float")
    four = "f = Constant<value_ints=[1,1,1,1]>() " if ", f)" in body else ""
    body = body.replace("MEGA", str(1 << 20)).replace("TERA", str(1 << 40))
    return onnx.parser.parse_model(f"{HEAD} g (float[N] x) => ({kind} y) {{ {four}{body} }}")


@pytest.mark.parametrize("provider", ["cpu", "reference", "torch"])
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_by_the_node_that_would_make_them(name: str, provider: str) -> None:
    session = ep.Session(bomb(BOMBS[name]), providers=provider, limits=LIMITS)
    with pytest.raises(ep.ResourceLimitError, match=r"making '\w+' \(\w+, opset"):
        session.run({"x": np.zeros(1, np.float32)})


def test_a_result_within_the_limit_is_made() -> None:
    model = bomb("s = Constant<value_ints=[4194304]>() y = Expand(x, s)")
    y = ep.Session(model, limits=LIMITS).run({"x": np.ones(1, np.float32)})["y"]
    assert y.nbytes == LIMITS.result_bytes
    with pytest.raises(ep.ResourceLimitError, match=r"16\.0 MiB, more than the 16\.0 MiB allowed.*result_bytes"):
        ep.Session(model, limits=ep.Limits(result_bytes=(1 << 24) - 1)).run({"x": np.ones(1, np.float32)})


def test_limits_belong_to_one_session() -> None:
    model = bomb("s = Constant<value_ints=[4194304]>() y = Expand(x, s)")
    narrow = ep.Session(model, limits=ep.Limits(result_bytes=1 << 23))
    wide = ep.Session(model)
    feeds = {"x": np.ones(1, np.float32)}
    with pytest.raises(ep.ResourceLimitError):
        narrow.run(feeds)
    assert wide.run(feeds)["y"].shape == (4194304,)


def test_memory_that_runs_out_all_the_same_is_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ep.Session(bomb("e = Exp(x) y = Neg(e)"))

    def no_memory(*arrays: object) -> tuple[object, ...]:
        raise MemoryError("Unable to allocate 3.00 TiB")

    monkeypatch.setattr(session._default, "_function", no_memory)
    with pytest.raises(ep.ResourceLimitError, match=r"memory ran out: Unable to allocate 3\.00 TiB"):
        session.run({"x": np.zeros(1, np.float32)})


def test_what_is_not_free_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda: 1 << 26)
    with pytest.raises(ep.ResourceLimitError, match=r"takes 128\.0 MiB, but only 64\.0 MiB of memory are free"):
        room.empty((1 << 25,), np.float32)


def test_folding_makes_nothing_large_whatever_the_file_declares() -> None:
    text = f"{HEAD} g (float[N] x) => (float[N] y) <int64[1] s = {{1099511627776}}, float[1] z = {{1}}, float[1] e>"
    text += "{ e = Expand(z, s) r = ReduceSum(e) y = Add(x, r) }"
    session = ep.Session(onnx.parser.parse_model(text))
    with pytest.raises(ep.ResourceLimitError, match="Expand"):
        session.run({"x": np.zeros(1, np.float32)})


NESTED = """g (float[N] x, int64 n) => (float[N] y) {
    y = Loop(n, , x) <body = outer (int64 i, bool go, float[N] a) => (bool more, float[N] b) {
        more = Identity(go)
        b = Loop(n, , a) <body = inner (int64 j, bool c, float[N] u) => (bool d, float[N] v) {
            d = Identity(c)
            v = Neg(u)
        }>
    }>
}"""


@pytest.mark.parametrize("provider", ["cpu", "reference", "torch"])
def test_trips_of_loops_within_loops_add_up(provider: str) -> None:
    session = ep.Session(
        onnx.parser.parse_model(HEAD + NESTED), providers=provider, limits=ep.Limits(loop_iterations=110)
    )
    feeds = {"x": np.ones(1, np.float32), "n": np.array(10)}
    for _ in range(3):  # every run has all of them
        assert session.run(feeds)["y"].tolist() == [1.0]
    with pytest.raises(ep.ResourceLimitError, match="110 iterations"):
        session.run({**feeds, "n": np.array(11)})


def test_bodies_that_fill_the_memory_bit_by_bit_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    from entrepot.runtime.providers.cpu import support

    monkeypatch.setattr(support, "_PAUSE", 0)
    monkeypatch.setattr(room, "free_bytes", lambda: 1 << 20)
    session = ep.Session(onnx.parser.parse_model(HEAD + NESTED))
    with pytest.raises(ep.ResourceLimitError, match=r"hardly any memory.*"):
        session.run({"x": np.ones(1, np.float32), "n": np.array(100)})


SHAPES = [(), (1,), (3,), ("a",), ("b",), (None,), (1, 3), ("a", 1), (1, "a"), ("a", 3), ("a", "b"), (None, 3), None]
MEANINGS = [{"a": a, "b": b} for a in (1, 1 << 16) for b in (1, 1 << 16)]


def sizes(shape: tuple[object, ...] | None) -> list[list[tuple[int, ...]]]:
    """For every meaning of the symbols: all shapes that a declared one may stand for."""
    made = []
    for meaning in MEANINGS:
        each = [(1, 1 << 16) if d is None else (meaning[d],) if isinstance(d, str) else (d,) for d in shape or ()]
        made.append(list(itertools.product(*each)) if shape is not None else [(1,), (1 << 16,), (1 << 16, 1)])
    return made


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SHAPES, SHAPES)))
def test_operands_that_may_grow_together_are_known(
    left: tuple[object, ...] | None, right: tuple[object, ...] | None
) -> None:
    grown = 0.0
    for these, those in zip(sizes(left), sizes(right), strict=True):
        for one, other in itertools.product(these, those):
            try:
                together = np.prod(np.broadcast_shapes(one, other))
            except ValueError:
                continue
            grown = max(grown, together / max(np.prod(one), np.prod(other)))
    assert may_outgrow([left, right]) or grown <= 9


@pytest.mark.parametrize(
    "shapes",
    [
        [("n", 64), (64,)], [("n", "s", 64), ("n", "s", 64)], [("n", "s", 64), ("n", "s", 1)], [("n", 64), ()],
        [None, ()],
        [(None, 64, None, None), (64, 1, 1)], [("n", "h", "s", "s"), ("n", 1, 1, "s")], [("n",), ("m",)],
        [(8, 1), (1, 8)],
        [None, (1, 64)], [("n", 64)], [(1 << 12, 1 << 12), (1 << 12,)], [("n", 3, "h", "w"), (1, 3, 1, 1)],
    ],
)  # fmt: skip
def test_what_real_models_add_is_known_not_to_grow(shapes: list[tuple[object, ...] | None]) -> None:
    assert not may_outgrow(shapes)


def test_kernels_of_shapes_that_are_known_stay_as_they_are() -> None:
    text = f"{HEAD} g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) {{ a = Add(x, z) y = Mul(a, x) }}"
    compiled = ep.Session(onnx.parser.parse_model(text))._default.parts[0][1]
    assert {np.add, np.multiply} <= {each for each in compiled.emitted.names.values() if isinstance(each, np.ufunc)}


def machine(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_free_memory_is_the_least_of_what_machine_and_group_leave(tmp_path: Path) -> None:
    total = "MemTotal: 900 kB\nMemAvailable:  400 kB\nSwapFree: 100 kB\nHugePages_Free:   7\n"
    machine(tmp_path, proc__meminfo=total)
    assert free_bytes(tmp_path) == 500 * 1024
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    for name, text in {
        "memory.max": "300000\n",
        "memory.current": "200000\n",
        "memory.stat": "anon 5\ninactive_file 50000\n",
    }.items():
        (group / name).write_text(text)
    assert free_bytes(tmp_path) == 150_000
    (group / "memory.max").write_text("max\n")
    assert free_bytes(tmp_path) == 500 * 1024


def test_nothing_is_refused_where_the_system_says_nothing(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 1 << 60
