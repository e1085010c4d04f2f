import pytest
import torch

from entrepot.exporters.torch.arrays import from_numpy, to_numpy


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int64, torch.bool],
)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4)])
def test_every_type_goes_to_numpy_and_back(dtype, shape):
    tensor = torch.ones(shape).mul(1.5).to(dtype)
    array = to_numpy(tensor)
    assert array.shape == shape
    assert array.dtype.name == str(dtype).removeprefix("torch.")
    again = from_numpy(array)
    assert again.dtype == dtype
    assert torch.equal(again.float(), tensor.float())


def test_what_comes_back_is_a_copy():
    array = to_numpy(torch.zeros(3))
    from_numpy(array).add_(1)
    assert not array.any()
