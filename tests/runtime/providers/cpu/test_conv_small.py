"""Small convolutions, whose columns stay from run to run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from entrepot.runtime.providers.cpu.prepared import conv_small
from tests.judges.convolution import assert_convolves
from tests.op_cases.normal import normal as image
from tests.runtime.providers.cpu.test_conv_plan import bound


@pytest.fixture
def workspaces(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those that were made."""
    made: list[Any] = []

    class Counted(conv_small._Workspace):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(conv_small, "_Workspace", Counted)
    return made


def test_threads_that_come_and_go_share_one_workspace(workspaces: list[Any]) -> None:
    x, W, B = image(1, 3, 8, 8), image(4, 3, 3, 3), image(4)
    run = bound(W, B)
    for _ in range(5):
        thread = threading.Thread(target=run, args=(x, W, B))
        thread.start()
        thread.join()
    assert len(workspaces) == 1


def test_runs_at_the_same_time_do_not_share(workspaces: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    W, B = image(4, 3, 3, 3), image(4)
    together, product = threading.Barrier(3), conv_small.matmul
    run = bound(W, B)
    xs = [image(1, 3, 8, 8, of=str(caller)) for caller in range(3)]

    def held(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        together.wait(timeout=30)  # all three have filled their columns
        return product(a, b)

    monkeypatch.setattr(conv_small, "matmul", held)
    with ThreadPoolExecutor(3) as callers:
        results = list(callers.map(lambda x: run(x, W, B), xs))
    for x, y in zip(xs, results, strict=True):
        assert_convolves(y, x, W, B)
    assert len(workspaces) == 3


def test_a_run_that_fails_takes_nothing_along(monkeypatch: pytest.MonkeyPatch) -> None:
    x, W, B = image(1, 3, 8, 8), image(4, 3, 3, 3), image(4)
    run = bound(W, B)
    run(x, W, B)
    with monkeypatch.context() as broken:
        broken.setattr(conv_small, "matmul", lambda a, b: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(x, W, B)
    assert_convolves(run(x, W, B), x, W, B)
