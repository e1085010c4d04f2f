"""onnxruntime in a process of its own: some of its kernels end the process on values that no specification allows."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import onnx

from tests.judges.oracle import run_onnxruntime

LONGEST = 20
"""Seconds after which a kernel is assumed to run for ever."""


class Apart:
    """Runs models one after the other; a process that dies costs one result and is replaced."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._ours: Connection | None = None
        self.process: SpawnProcess | None = None

    def run(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
        """As ``run_onnxruntime``.

        Raises:
            RuntimeError: Whatever onnxruntime raises there, or the process is gone.
        """
        if self._ours is None:
            self._ours, theirs = self._context.Pipe()
            self.process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self._ours.send((model.SerializeToString(), feeds))
            if not self._ours.poll(LONGEST):
                self.process.kill()  # the next line says that it ended
            ran, answer = self._ours.recv()
        except (EOFError, ConnectionError):
            self.close()
            raise RuntimeError("onnxruntime ended the process, or would not end") from None
        if not ran:
            raise RuntimeError(answer)
        return answer

    def close(self) -> None:
        """Let the process go."""
        if self._ours is not None:
            self._ours.close()
            self._ours = None


def _serve(pipe: Connection) -> None:
    while True:
        try:
            content, feeds = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, run_onnxruntime(onnx.ModelProto.FromString(content), feeds)))
        except Exception as error:  # noqa: BLE001  onnxruntime's exceptions have no common class
            pipe.send((False, str(error)))
