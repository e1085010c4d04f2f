"""Blocks summed to images, and deformed convolutions, below the operators for them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, checked, parse, run


def folding(seed: int) -> tuple[str, tuple[int, ...], list[int], list[int]]:
    """Attributes, the shape of the blocks, and the image and block shapes of a random Col2Im."""
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(2, 4))
    block, image = rng.integers(1, 4, axes), rng.integers(5, 8, axes)
    strides, dilations = rng.integers(1, 4, axes), rng.integers(1, 3, axes)
    pads = rng.integers(0, 2, 2 * axes)
    counts = (image + pads[:axes] + pads[axes:] - dilations * (block - 1) - 1) // strides + 1
    shape = (2, 3 * int(block.prod()), int(counts.prod()))
    values = {"strides": strides, "dilations": dilations, "pads": pads}
    how = ", ".join(f"{name} = {value.tolist()}" for name, value in values.items())
    return how, shape, image.tolist(), block.tolist()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("target", [17, 12, 7])
def test_overlapping_blocks_are_summed(seed: int, target: int) -> None:
    how, shape, image, block = folding(seed)
    stored = "int64[{0}] i = {{{1}}}, int64[{0}] b = {{{2}}}".format(
        len(image), ", ".join(map(str, image)), ", ".join(map(str, block))
    )
    sizes = ",".join(map(str, (2, 3, *image)))
    model = parse(f"y = Col2Im<{how}>(x, i, b)", 18, f"float[{','.join(map(str, shape))}] x) => (float[{sizes}] y",
                  stored=stored)  # fmt: skip
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    after = convert_opset(model, target)
    (want,) = ReferenceEvaluator(checked(model)).run(None, {"x": x})  # onnxruntime 1.31 is wrong for three axes
    np.testing.assert_allclose(run(after, x)[0], want, rtol=1e-4, atol=1e-5)
    x[0, 0, 0] = np.nan
    assert np.isnan(run(after, x)[0]).sum() <= 1


def test_blocks_of_unknown_shape_are_refused() -> None:
    signature = "float[1,4,9] x, int64[2] i, int64[2] b) => (float[1,1,4,4] y"
    with pytest.raises(ConversionError, match="image_shape"):
        convert_opset(parse("y = Col2Im(x, i, b)", 18, signature), 17)


@pytest.mark.parametrize("target", [18, 15, 9])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("given", ["", ", b", ", b, m", ", , m"])
def test_a_deformed_convolution_is_sampled(seed: int, target: int, given: str) -> None:
    rng = np.random.default_rng(seed)
    group, parts = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    kernel, strides, dilations = (rng.integers(1, 4, 2) for _ in range(3))
    pads = rng.integers(0, 2, 4)
    image = np.array([9, 8])
    spots = (image + pads[:2] + pads[2:] - dilations * (kernel - 1) - 1) // strides + 1
    area = int(kernel.prod())
    shapes = {
        "x": (2, 4, *image),
        "w": (6, 4 // group, *kernel),
        "o": (2, parts * area * 2, *spots),
        "b": (6,),
        "m": (2, parts * area, *spots),
    }
    shapes = {name: shape for name, shape in shapes.items() if name in "xwo" or name in given}
    spelled = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    lists = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    how = ", ".join(f"{name} = {value.tolist()}" for name, value in lists.items())
    how += f", group = {group}, offset_group = {parts}"
    model = parse(f"y = DeformConv<{how}>(x, w, o{given})", 19,
                  f"{spelled}) => (float[2,6,{spots[0]},{spots[1]}] y")  # fmt: skip
    feeds = [rng.normal(size=shape).astype(np.float32) for shape in shapes.values()]
    feeds[2] *= 3  # far enough to look beyond the image
    assert_same(model, target, *feeds, atol=2e-4)


def test_positions_of_half_precision_are_computed_in_float() -> None:
    signature = "float16[1,2,4,4] x, float16[2,2,2,2] w, float16[1,8,3,3] o) => (float16[1,2,3,3] y"
    rng = np.random.default_rng(0)
    given = [rng.normal(size=shape).astype(np.float16) for shape in ((1, 2, 4, 4), (2, 2, 2, 2), (1, 8, 3, 3))]
    after = convert_opset(parse("y = DeformConv(x, w, o)", 19, signature), 15)
    whole = parse("y = DeformConv(x, w, o)", 19, signature.replace("float16", "float"))
    want = run(whole, *(array.astype(np.float32) for array in given))
    np.testing.assert_allclose(run(after, *given)[0], want[0], rtol=2e-2, atol=2e-2)


def test_an_empty_batch_of_blocks_makes_no_image() -> None:
    stored = "int64[2] i = {5, 5}, int64[2] b = {2, 2}"
    model = parse("y = Col2Im(x, i, b)", 18, "float[0,8,16] x) => (float[0,2,5,5] y", stored=stored)
    after = convert_opset(model, 17)
    assert run(after, np.zeros((0, 8, 16), np.float32))[0].shape == (0, 2, 5, 5)


def test_an_empty_image_is_refused() -> None:
    signature = "float[1,2,0,0] x, float[2,2,2,2] w, float[1,8,0,0] o) => (float[1,2,0,0] y"
    with pytest.raises(ConversionError, match="empty image"):
        convert_opset(parse("y = DeformConv<pads = [1, 0, 0, 1]>(x, w, o)", 19, signature), 18)
