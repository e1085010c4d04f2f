"""What torch.onnx leaves behind is cleared away."""

import numpy as np
import onnxruntime
import torch

import entrepot as ep


class Spectrum(torch.nn.Module):
    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * 2, n=x.shape[1])


def test_onnxruntime_runs_what_comes_after_half_a_spectrum():
    x = torch.randn(3, 8)
    proto = ep.export(Spectrum(), (x,), opset=13, verify=False).to_proto()  # at 17 it has no kernel for the way back
    (y,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x.numpy()})
    slack = 4 * np.finfo(np.float32).eps * x.shape[1] * x.abs().sum().item()  # two sums over the signal, each way
    np.testing.assert_allclose(y, 2 * x.numpy(), rtol=0, atol=slack)
