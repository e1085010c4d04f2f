"""A file of TensorFlow Lite as something that can be called: its interpreter, and a replay that can be traced."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.lite.model import Graph, graphs_of
from entrepot.exporters.tensorflow.lite.replay import Program
from entrepot.exporters.tensorflow.sources.callable import Opened
from entrepot.ir.errors import ModelFormatError


def opened_lite(path: Path) -> Opened:
    """A file of TensorFlow Lite.

    Raises:
        ModelFormatError: It is damaged.
        UnsupportedOpError: An operator has no counterpart.
    """
    content = path.read_bytes()
    try:
        judge = _Interpreter(content)
    except (ValueError, RuntimeError) as error:
        text = next(iter(str(error).splitlines()), "")
        raise ModelFormatError(f"TensorFlow Lite cannot read it: {text}", path=path) from error
    graphs = graphs_of(content)
    program = Program(graphs)
    program.check()
    main = graphs[0]
    names = judge.names(main.inputs)
    results = judge.result_names(main.outputs)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])

    def call(*given: Any) -> dict[str, Any]:
        return dict(zip(results, judge(given), strict=True))

    def replay(*given: Any) -> dict[str, Any]:
        return dict(zip(results, program.run(given), strict=True))

    call.__signature__ = signature  # type: ignore[attr-defined]
    specs = tuple(tf.TensorSpec(main.tensors[at].shape, main.tensors[at].dtype) for at in main.inputs)
    return Opened(
        call,
        path.stem,
        f"tflite:{path.stem}",
        noun="model",
        traceable=replay,
        has_python=False,
        takes=(specs, {}),
        unsteadiness=program.unsteadiness if _rounds(graphs) else None,
    )


def _rounds(graphs: Sequence[Graph]) -> bool:
    """Whether anything that is computed is rounded to integers."""
    made = (graph.tensors[at] for graph in graphs for each in graph.operations for at in each.outputs)
    return any(tensor.quantised is not None for tensor in made)


class _Interpreter:
    """TensorFlow Lite's own interpreter, on its plain kernels."""

    def __init__(self, content: bytes) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=r"\s*Warning: tf\.lite\.Interpreter is deprecated", category=UserWarning
            )
            self._interpreter = tf.lite.Interpreter(
                model_content=content,
                num_threads=1,
                experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
        self._inputs = [each["index"] for each in self._interpreter.get_input_details()]
        self._outputs = [each["index"] for each in self._interpreter.get_output_details()]

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        interpreter = self._interpreter
        arrays = [np.asarray(each) for each in given]
        if not all(array.size for array in arrays):
            raise ValueError("its kernels end the process on tensors without elements")  # TensorFlow 2.21
        for index, array in zip(self._inputs, arrays, strict=True):
            interpreter.resize_tensor_input(index, array.shape, strict=True)
        interpreter.allocate_tensors()
        interpreter.reset_all_variables()  # states of recurrent networks, which begin with zeros in each call
        for index, array in zip(self._inputs, arrays, strict=True):
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return [tf.constant(interpreter.get_tensor(index)) for index in self._outputs]

    def names(self, numbers: Sequence[int]) -> list[str]:
        """What the inputs are called: by the signature if there is one, else by the tensors."""
        return _words(self._named("inputs", self._interpreter.get_input_details(), numbers))

    def result_names(self, numbers: Sequence[int]) -> list[str]:
        """The same for what it returns."""
        return _distinct(self._named("outputs", self._interpreter.get_output_details(), numbers))

    def _named(self, side: str, details: Sequence[Any], numbers: Sequence[int]) -> list[str]:
        plain = [each["name"].partition(":")[0].removeprefix("serving_default_") for each in details]
        return [name or f"{side[:-1]}_{at}" for at, name in enumerate(plain)][: len(numbers)]


def _words(names: Sequence[str]) -> list[str]:
    words = ["".join(letter if letter.isalnum() else "_" for letter in name) for name in names]
    words = [word if word.isidentifier() else f"input_{word}" for word in words]
    return _distinct(words)


def _distinct(words: Sequence[str]) -> list[str]:
    """The same, with its place behind what was there before: a file may return one tensor several times."""
    return [word if words.index(word) == at else f"{word}_{at}" for at, word in enumerate(words)]
