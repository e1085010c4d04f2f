"""tf2onnx, jax2onnx and skl2onnx as exporters of the corpora's cases, for ``benchmarks.converters``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

import entrepot as ep
from tests.sweeps.judging import Subject

_OPSETS = {"": 18, "ai.onnx.ml": 3}


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
            """Those of the kinds that the file has, in its precision, and as columns where it has them."""
            left, found = list(answers), []
            for spec in self._made.outputs:
                at = next(
                    (at for at, answer in enumerate(left) if (answer.dtype == object) == (spec.dtype == "string")), 0
                )
                found += [_like(answer, spec) for answer in left[at : at + 1]]
                left = left[at + 1 :]
            return found

        def reason_for_static(self, exported: ep.Model, why: str) -> str:
            return why

    return Other


def _like(answer: np.ndarray, spec: Any) -> np.ndarray:
    if answer.dtype.kind == "f" and spec.dtype.startswith("float"):
        answer = answer.astype(spec.dtype)
    is_column = spec.shape is not None and len(spec.shape) == answer.ndim + 1 and spec.shape[-1] == 1
    return answer[..., None] if is_column else answer


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

    from tests.sweeps.estimators import Estimator

    _register_boosters()

    def convert(subject: Subject) -> Any:
        sample = np.asarray(subject.calls[0])[:1]
        plain = {id(subject.model): {"zipmap": False}}
        try:
            return skl2onnx.to_onnx(subject.model, sample, options=plain, target_opset=_OPSETS)
        except NameError:  # it is no classifier
            return skl2onnx.to_onnx(subject.model, sample, target_opset=_OPSETS)

    return f"skl2onnx {version('skl2onnx')}", _by(Estimator, convert)


def _register_boosters() -> None:
    """Tell skl2onnx of onnxmltools' converters, as its documentation does."""
    import lightgbm
    import skl2onnx
    import xgboost
    from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm
    from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost
    from skl2onnx.common import shape_calculator as shapes

    settings = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    for kind, name, convert in (
        (xgboost.XGBClassifier, "XGBoostXGBClassifier", convert_xgboost),
        (lightgbm.LGBMClassifier, "LightGbmLGBMClassifier", convert_lightgbm),
    ):
        calculate = shapes.calculate_linear_classifier_output_shapes
        skl2onnx.update_registered_converter(kind, name, calculate, convert, options=settings)
    for kind, name, convert in (
        (xgboost.XGBRegressor, "XGBoostXGBRegressor", convert_xgboost),
        (lightgbm.LGBMRegressor, "LightGbmLGBMRegressor", convert_lightgbm),
    ):
        calculate = shapes.calculate_linear_regressor_output_shapes
        skl2onnx.update_registered_converter(kind, name, calculate, convert)


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
"""What there is for each corpus: a name, and what builds the subjects of its cases; imported when it is asked for."""
