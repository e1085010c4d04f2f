"""ScriptModules that return named tuples and dicts, resize, grow lists, and fuse; exports leave them as they were."""

# no `from __future__ import annotations`: TorchScript reads the annotations

from typing import Dict, List, NamedTuple  # noqa: UP035 - TorchScript wants them in function bodies

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

import entrepot as ep
from entrepot.exporters.torch.scripts.reader import Reader

pytestmark = pytest.mark.filterwarnings("ignore")  # torch announces the end of TorchScript


class Pair(NamedTuple):
    """A class that TorchScript makes anew at each call."""

    twice: Tensor
    total: Tensor


class Named(nn.Module):
    """Returns one."""

    def forward(self, x: Tensor) -> Pair:
        return Pair(x * 2, x.sum(1))


class Pyramid(nn.Module):
    """Layers of a picture, the last one as large as the first."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 3, 3, padding=1, stride=2)

    def forward(self, x: Tensor) -> Dict[str, Tensor]:  # noqa: UP006
        small = self.down(x)
        large = F.interpolate(small, size=[x.size(2), x.size(3)], mode="nearest")
        return {"small": small, "large": large + x}


class Grown(nn.Module):
    """Adds to a list, and takes it apart."""

    def forward(self, x: Tensor) -> Tensor:
        parts: List[Tensor] = []  # noqa: UP006
        for i in range(3):
            parts += [x * i, x + i]
        return torch.cat(parts[1:]) + parts[-1].sum()


class Encoder(nn.Module):
    """A layer that takes fused operators where no gradients are wanted."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def test_lists_that_are_added_to_are_read() -> None:
    script, x = torch.jit.script(Grown()), torch.arange(6.0).reshape(2, 3)
    torch.testing.assert_close(Reader(script)(x), script(x))


def test_layers_of_transformers_are_exported() -> None:
    script = torch.jit.script(Encoder().eval())
    generator = torch.Generator().manual_seed(0)
    model = ep.export(script, torch.randn(2, 5, 8, generator=generator))
    x = torch.randn(3, 7, 8, generator=generator)
    (found,) = ep.Session(model).run([x.numpy()]).values()
    with torch.no_grad():
        np.testing.assert_allclose(found, script(x).numpy(), rtol=1e-4, atol=1e-5, strict=True)


def test_named_tuples_vary_in_size() -> None:
    model = ep.export(torch.jit.script(Named()), torch.ones(2, 5))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    twice, total = ep.Session(model).run([x]).values()
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(total, x.sum(1))


def test_what_is_resized_in_a_dict_is_exported() -> None:
    script = torch.jit.script(Pyramid().eval())
    generator = torch.Generator().manual_seed(0)
    model = ep.export(script, torch.randn(2, 3, 8, 6, generator=generator))
    x = torch.randn(1, 3, 10, 4, generator=generator)
    with torch.no_grad():
        wanted = script(x)
    for name, found in ep.Session(model).run([x.numpy()]).items():
        np.testing.assert_allclose(found, wanted[name].numpy(), rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("kind", [Named, Pyramid])
def test_the_graph_of_the_script_stays_as_it_was(kind: type[nn.Module]) -> None:
    script = torch.jit.script(kind().eval())
    before = str(script.graph)
    ep.export(script, torch.ones(2, 3, 8, 6))
    assert str(script.graph) == before
