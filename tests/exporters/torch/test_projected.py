import torch
from torch import nn

import entrepot as ep


class Projected(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, bidirectional=True, proj_size=3, batch_first=True)

    def forward(self, x):
        return self.lstm(x)


def test_an_lstm_with_projection_is_a_scan_and_follows_length_and_batch():
    torch.manual_seed(0)
    model = ep.export(Projected(), torch.randn(2, 6, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1", 4)
    assert [node.op_type for node in model.ir.graph].count("Scan") == 4
