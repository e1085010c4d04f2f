"""ScriptModules that return named tuples and dicts, and resize: what the translation of one leaves as it was."""

# no `from __future__ import annotations`: TorchScript reads the annotations

from typing import Dict, NamedTuple  # noqa: UP035 - TorchScript wants them in function bodies

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

import entrepot as ep

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
