"""Pools, resizes and samples of images."""

from __future__ import annotations

from tests.ir.opset.down.case import Down, X, f32, image

CASES = {
    "average pooling with a ceiling": Down(
        11,
        (9, 7),
        "y = AveragePool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x)",
        image(2, 3, 3, 3),
        (X,),
    ),
    "maximum pooling with a window in the padding": Down(
        22,
        (19, 11, 9),
        "y = MaxPool<kernel_shape = [2, 2], strides = [3, 3], pads = [0, 0, 1, 1], ceil_mode = 1>(x)",
        image(2, 3, 2, 2),
        (X,),
    ),
    "nearest resize by half pixels": Down(
        13,
        (10, 9, 7),
        'y = Resize<mode = "nearest", coordinate_transformation_mode = "half_pixel">(x, , s)',
        image(2, 3, 12, 9),
        (X,),
        "float[4] s = {1, 1, 2, 1.5}",
    ),
    "resize that repeats, of unknown size": Down(
        19,
        (13, 10, 9, 7),
        'y = Resize<mode = "nearest">(x, , s)',
        "float[2,3,H,W] x) => (float[2,3,P,Q] y",
        (X,),
        "float[4] s = {1, 1, 2, 3}",
    ),
    "linear resize with aligned corners": Down(
        13,
        (10, 7),
        'y = Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , , s)',
        image(2, 3, 9, 4),
        (X,),
        "int64[4] s = {2, 3, 9, 4}",
    ),
    "cubic resize": Down(
        13, (9,), 'y = Resize<mode = "cubic">(x, , s)', image(2, 3, 12, 3), (X,), "float[4] s = {1, 1, 2, 0.5}"
    ),
    "depth to space by columns": Down(
        13,
        (10, 7),
        'y = DepthToSpace<blocksize = 2, mode = "CRD">(x)',
        "float[2,8,3,3] x) => (float[2,2,6,6] y",
        (f32(2, 8, 3, 3),),
    ),
    "grid sample by gathering, of unknown size": Down(
        16,
        (15, 12, 11),
        "y = GridSample(x, g)",
        "float[N,3,H,W] x, float[N,2,2,2] g) => (float[N,3,2,2] y",
        (X, f32(2, 2, 2, 2)),
    ),
    "nearest grid sample to the border, corners aligned": Down(
        16,
        (15, 9),
        'y = GridSample<mode = "nearest", padding_mode = "border", align_corners = 1>(x, g)',
        "float[2,3,6,6] x, float[2,2,2,2] g) => (float[2,3,2,2] y",
        (X, f32(2, 2, 2, 2)),
    ),
    "grid sample": Down(
        20,
        (19, 16),
        'y = GridSample<mode = "cubic">(x, g)',
        "float[2,3,6,6] x, float[2,2,2,2] g) => (float[2,3,2,2] y",
        (X, f32(2, 2, 2, 2)),
    ),
}
