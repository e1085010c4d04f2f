"""The nearest point under a scale is the one that frameworks and onnxruntime take, who reckon in float32."""

import numpy as np
import onnx.parser
import pytest

import entrepot as ep

CASES = {
    "below a half": ("asymmetric", "floor", 10, 0.2, [0, 5]),
    "below a whole": ("asymmetric", "floor", 5, 2 / 3, [0, 1, 3]),
    "below the middle": ("half_pixel", "round_prefer_floor", 6, 0.7, [0, 2, 3, 4]),
    "a whole scale": ("asymmetric", "floor", 3, 2, [0, 0, 1, 1, 2, 2]),
    "one point of the middle": ("pytorch_half_pixel", "round_prefer_floor", 4, 0.25, [0]),
    "symmetric": ("half_pixel_symmetric", "round_prefer_floor", 5, 0.6, [0, 2, 4]),
}


@pytest.mark.parametrize("provider", ["cpu", "torch", "onnxruntime"])
@pytest.mark.parametrize(("coordinates", "rounding", "size", "scale", "points"), CASES.values(), ids=CASES)
def test_the_nearest_point_is_found_in_single_precision(
    coordinates: str, rounding: str, size: int, scale: float, points: list[int], provider: str
) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 19]>
    net (float[1, 1, {size}] x) => (float[1, 1, k] y) <float[3] scales = {{1, 1, {scale}}}> {{
        y = Resize<mode = "nearest", coordinate_transformation_mode = "{coordinates}",
                   nearest_mode = "{rounding}">(x, , scales) }}""")
    outputs = ep.Session(ep.load(proto), providers=[provider]).run({"x": np.arange(size, dtype=np.float32)[None, None]})
    assert outputs["y"].ravel().tolist() == points
