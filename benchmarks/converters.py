"""Exports beside those of tf2onnx, jax2onnx and skl2onnx: the same cases, the same judge.

    python -m benchmarks.converters [--corpus keras tensorflow jax sklearn] [--every 25] [--limit 120] [--list]

Each corpus of ``tests/export_cases`` is run in a process of its own. What a converter raises, whatever it is, what
takes it longer than the limit, and a file that no runtime takes, count as refused; a file that takes one call of a case
and not the others is static; that its floats may be of another precision is forgiven. Time is that of the processor:
ours includes the proof. Both ratios, of times and of nodes, are medians over the cases that both pass: theirs by ours.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import signal
import statistics
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from types import FrameType
from typing import Any

import numpy as np

import entrepot as ep
from tests.export_cases import cases, judge_of
from tests.sweeps.judging import Subject, judged
from tests.sweeps.outcome import Outcome

VERDICTS = ("passed", "static", "refused", "wrong", "crashed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="*", default=list(CONVERTERS), choices=list(CONVERTERS))
    parser.add_argument("--every", type=int, default=25, help="only every n-th case")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a case, of each converter")
    parser.add_argument("--list", action="store_true", help="print what either of them does not pass")
    options = parser.parse_args(arguments)
    if len(options.corpus) > 1:
        rest = ["--every", str(options.every), "--limit", str(options.limit), *(["--list"] if options.list else [])]
        command = [sys.executable, "-m", "benchmarks.converters", *rest, "--corpus"]
        return max(subprocess.run([*command, corpus], check=False).returncode for corpus in options.corpus)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    _compare(options.corpus[0], options)
    return 0


def _compare(corpus: str, options: argparse.Namespace) -> None:
    name, build = CONVERTERS[corpus]()
    found: list[tuple[Outcome, Outcome]] = []
    for case in cases(corpus)[:: options.every]:
        with _limited(options.limit):
            ours = _judged(judge_of(corpus), case)
        if ours.verdict == "invalid":
            continue
        with _limited(options.limit):
            theirs = _judged(functools.partial(judged, build=build), case)
        found.append((ours, theirs))
        if options.list:
            for who, outcome in (("entrepot", ours), (name, theirs)):
                if outcome.verdict != "passed":
                    print(f"  {who} {outcome.verdict} {outcome.name}: {outcome.why[:150]}", flush=True)
    _print(corpus, name, found)


def _judged(judge: Callable[[Any], Outcome], case: Any) -> Outcome:
    try:
        return judge(case)
    except (TimeoutError, ep.EntrepotError) as error:  # no runtime takes the file
        return Outcome(case.name, case.corpus, "refused", str(error))


def _print(corpus: str, name: str, found: Sequence[tuple[Outcome, Outcome]]) -> None:
    print(f"{corpus}, {len(found)} cases".ljust(34) + "".join(f"{verdict:>10}" for verdict in VERDICTS))
    for who, outcomes in zip(("entrepot", name), zip(*found, strict=True), strict=True):
        counts = Counter(outcome.verdict for outcome in outcomes)
        print(f"  {who:32}" + "".join(f"{counts[verdict]:10}" for verdict in VERDICTS))
    both = [pair for pair in found if all(outcome.verdict == "passed" for outcome in pair)]
    times = [theirs.seconds / ours.seconds for ours, theirs in both if ours.seconds]
    nodes = [theirs.nodes / ours.nodes for ours, theirs in both if ours.nodes]
    if times and nodes:
        more = sum(theirs.nodes < ours.nodes for ours, theirs in both)
        ratios = f"time x {statistics.median(times):.2f}, nodes x {statistics.median(nodes):.2f}"
        print(f"  {len(both)} passed by both: {ratios}; {name} has fewer nodes in {more}", flush=True)


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Interrupt what takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# the others ----------------------------------------------------------------------------------------------------------


def _by(base: type[Subject], convert: Callable[[Subject], Any]) -> type[Subject]:
    """Cases that another converter exports."""

    class Other(base):  # type: ignore[valid-type, misc]
        def export(self) -> ep.Model:
            try:
                self._made = ep.load(convert(self))
            except TimeoutError:
                raise
            except Exception as error:  # whatever it raises, there is no file
                raise ep.ConversionError(f"{type(error).__name__}: {error}") from error
            return self._made

        def outputs(self, answers: Sequence[np.ndarray], count: int) -> Sequence[np.ndarray]:
            """As many as there are, in the precision of the file."""
            return [
                answer.astype(spec.dtype) if answer.dtype.kind == "f" and spec.dtype.startswith("float") else answer
                for answer, spec in zip(answers[:count], self._made.outputs, strict=False)
            ]

        def reason_for_static(self, exported: ep.Model, why: str) -> str:
            return why

    return Other


def _tf2onnx(base: type[Subject], function: Callable[[Any], Any]) -> tuple[str, type[Subject]]:
    import tensorflow as tf
    import tf2onnx

    def convert(subject: Subject) -> Any:
        arrays = [[np.asarray(array) for array in tf.nest.flatten(call)] for call in subject.calls]
        specs = [
            tf.TensorSpec([None if isinstance(size, str) else size for size in dims], array.dtype, name=f"input_{at}")
            for at, (dims, array) in enumerate(zip(_dims(arrays), arrays[0], strict=True))
        ]
        called = tf.function(
            lambda *given: function(subject.model)(*tf.nest.pack_sequence_as(subject.calls[0], given)), autograph=False
        )
        return tf2onnx.convert.from_function(called, input_signature=specs, opset=18)[0]

    return f"tf2onnx {version('tf2onnx')}", _by(base, convert)


def _of_keras() -> tuple[str, type[Subject]]:
    import keras

    from tests.sweeps.exports_of_keras import Keras

    def called(model: Any) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            one = given[0] if len(given) == 1 else keras.tree.pack_sequence_as(model.input, list(given))
            return model(one, training=False)

        return call

    return _tf2onnx(Keras, called)


def _of_tensorflow() -> tuple[str, type[Subject]]:
    from tests.sweeps.exports_of_tensorflow import TensorFlow

    return _tf2onnx(TensorFlow, lambda model: model)


def _of_jax() -> tuple[str, type[Subject]]:
    import jax
    import jax2onnx

    from tests.export_cases.jax.making import callee
    from tests.sweeps.exports_of_jax import Jax

    def convert(subject: Subject) -> Any:
        arrays = [[np.asarray(leaf) for leaf in jax.tree.leaves(call)] for call in subject.calls]
        tree, function = jax.tree.structure(subject.calls[0]), callee(subject.model)
        given = [
            jax.ShapeDtypeStruct(tuple(sizes), array.dtype)
            if all(isinstance(each, int) for each in sizes)
            else tuple(sizes)
            for sizes, array in zip(_dims(arrays), arrays[0], strict=True)
        ]
        return jax2onnx.to_onnx(lambda *leaves: function(*jax.tree.unflatten(tree, leaves)), inputs=given)

    return f"jax2onnx {version('jax2onnx')}", _by(Jax, convert)


def _of_sklearn() -> tuple[str, type[Subject]]:
    import skl2onnx
    from sklearn.base import is_classifier

    from tests.sweeps.estimators import Estimator

    def convert(subject: Subject) -> Any:
        sample = np.asarray(subject.calls[0])
        plain = {id(subject.model): {"zipmap": False}} if is_classifier(subject.model) else None
        return skl2onnx.to_onnx(subject.model, sample[:1], options=plain)

    return f"skl2onnx {version('skl2onnx')}", _by(Estimator, convert)


def _dims(calls: Sequence[Sequence[np.ndarray]]) -> list[list[int | str]]:
    """The sizes of each input; those that are not the same in all calls are names, the same for the same sizes."""
    names: dict[tuple[int, ...], str] = {}
    found: list[list[int | str]] = []
    for arrays in zip(*calls, strict=True):
        sizes = zip(*(array.shape for array in arrays), strict=True)
        found.append([
            each[0] if len(set(each)) == 1 else names.setdefault(each, "BTUVWXYZ"[len(names)]) for each in sizes
        ])  # fmt: skip
    return found


CONVERTERS: dict[str, Callable[[], tuple[str, type[Subject]]]] = {
    "keras": _of_keras,
    "tensorflow": _of_tensorflow,
    "jax": _of_jax,
    "sklearn": _of_sklearn,
}
"""What there is besides for each corpus, imported when it is asked for."""


if __name__ == "__main__":
    sys.exit(main())
