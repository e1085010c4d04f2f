"""``export`` and ``verify``: what is asked for is read once, and handed to the exporter of the framework."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entrepot.exporters.dispatch import exporter_of
from entrepot.exporters.options import Dynamic, Judging, Options, State, Strings, as_dynamic
from entrepot.exporters.weight_store import WeightStore
from entrepot.ir.arguments import IntegerLike, PathLike, as_choice, as_flag, as_names, as_opset, as_path
from entrepot.ir.collector import collector_sparing
from entrepot.ir.errors import InputError
from entrepot.ir.passes.levels import LEVELS, Level
from entrepot.ir.progress import Progress, announcing, reporter
from entrepot.runtime import heap

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source
    from entrepot.ir.model import Model
    from entrepot.parity.report.report import Report
    from entrepot.parity.tolerance import Tolerance, ToleranceLike
    from entrepot.runtime.providers import Providers


def export(
    obj: Any,
    sample: Any = None,
    path: PathLike | None = None,
    *,
    opset: IntegerLike | None = None,
    dynamic: Dynamic = "auto",
    verify: bool = True,
    tolerance: ToleranceLike | None = None,
    input_names: str | Sequence[str] | None = None,
    output_names: str | Sequence[str] | None = None,
    share: bool = False,
    checks: bool = False,
    dynamic_shapes: Any = None,
    optimize: Level = "basic",
    state: State = "refuse",
    random: bool = False,
    training: bool = False,
    strings: Strings = "refuse",
    weights: PathLike | None = None,
    progress: Progress = None,
) -> Model:
    """Turn a model of any framework into a verified ``Model``.

    Args:
        obj: A ``torch.nn.Module``, ``torch.export.ExportedProgram`` or TorchScript module; a function of tensors, or
            a method of a module; a ``.pt2``, TorchScript or ``.onnx`` file; anything ``load`` reads.
        sample: What the model is called with: a tensor, a tuple of positional arguments, a dict of keyword arguments,
            or ``Sample(args, kwargs)``. Not needed if ``obj`` brings its own.
        path: Where to save the result, if anywhere.
        opset: Opset of the result; by default what every current runtime loads, and for ``.onnx`` what the file has.
        dynamic: ``"auto"``: every axis that can vary; ``"all"``: the same, but an axis that the model takes at other
            sizes and the graph does not is an error; ``False``: none; ``{"x": {0: "batch"}}``: these, or an error.
            ``{"x": ["batch", None]}`` says the same by position, ``{"x": [0]}`` leaves the name to us; an axis named
            ``None`` stays fixed, and a formula over other names, ``"past + new"``, follows from them.
        verify: Run the result beside the source on the sample, other values and other sizes, on our runtime and
            on onnxruntime where it is installed.
        tolerance: What agreement means: a number, ``(atol, rtol)`` or a ``Tolerance``; see ``compare``.
        input_names: Names of the graph inputs instead of those from the signature.
        output_names: Names of the graph outputs instead of those from the structure of the result.
        share: Use the weights of ``obj`` without copying them: training ``obj`` then changes the model too, and
            makes its ``report`` void.
        checks: Put nodes into the graph that make every runtime refuse inputs whose sizes break one of the model's
            ``conditions``, where it might otherwise broadcast them or carry on.
        dynamic_shapes: Instead of ``dynamic``: what ``torch.export.export`` takes under this name. A ``Dim`` makes its
            axes vary or is an error, ``Dim.AUTO`` lets them vary if the module does, and the rest is fixed.
        optimize: ``"basic"``: only the nodes that are needed, shapes as constants, batch normalisations absorbed into
            the weights before them, which a note names; ``"extended"``: those before a product, too; ``"none"``: the
            operators of the source, one node or more for each. A file that is ONNX already stays; see ``optimize``.
        state: What becomes of buffers and attributes that forward changes, where results depend on them: ``"refuse"``
            raises, ``"outputs"`` makes them inputs and outputs of their own, ``"freeze"`` keeps them as they are.
        random: Let the graph draw random numbers where ``forward`` does, by ONNX's random operators; the results are
            then judged by their distribution.
        training: Export a torch module in its own mode instead of evaluation mode: batch statistics, and dropout that
            drops.
        strings: Operations on text that ONNX does not have, such as hashes: ``"refuse"`` raises, ``"cut"`` exports what
            follows them, with their results as inputs, which ``notes`` name; for TensorFlow, Keras and scikit-learn.
        weights: For a torch module on the meta device: the safetensors file, or the folder of them, that has its
            weights. They stay there: the model refers to them, and is saved into that folder.
        progress: ``True``, ``False``, or a function given each line; by default, long work is reported on a terminal.

    Returns:
        The model; its ``report`` holds the verification, which is not ``ok`` where nobody independent could run the
        result. It does not change when ``obj`` does, unless ``share`` is set.

    Raises:
        InputError: The object is not a model we know, the sample does not fit it, or an argument is none of the things
            above.
        ConversionError: The model cannot be expressed, or an axis that ``dynamic`` names cannot vary.
        UnsupportedOpError: An operator has no counterpart.
        VerificationError: The result does not compute the same thing; the error carries the report.
        MissingDependencyError: The framework is not installed.
    """
    target = None if path is None else as_path(path)
    options = Options(
        opset=None if opset is None else as_opset(opset),
        dynamic=_dynamic(dynamic, dynamic_shapes),
        verify=as_flag(verify, "verify"),
        tolerance=_tolerance(tolerance),
        input_names=None if input_names is None else as_names(input_names, "input_names"),
        output_names=None if output_names is None else as_names(output_names, "output_names"),
        tell=reporter(progress),
        share=as_flag(share, "share"),
        checks=as_flag(checks, "checks"),
        dynamic_shapes=dynamic_shapes,
        optimize=as_choice(optimize, LEVELS, "optimize"),
        state=as_choice(state, ("refuse", "outputs", "freeze"), "state"),
        random=as_flag(random, "random"),
        training=as_flag(training, "training"),
        strings=as_choice(strings, ("refuse", "cut"), "strings"),
        weights=_place(weights),
        store=WeightStore(None if target is None else Path(target).parent),
    )
    _check_beside(target, options.weights)
    with announcing(options.tell), collector_sparing(), heap.kept():
        model = exporter_of(obj, sample).export(obj, sample, options)
        if target is not None:
            options.tell(f"saving {os.fspath(target)}")
            model.save(target)
    return model


def verify(
    source: Any,
    model: Source,
    sample: Any = None,
    *,
    providers: Providers | None = None,
    tolerance: ToleranceLike | None = None,
    weights: PathLike | None = None,
    progress: Progress = None,
) -> Report:
    """Run ``model`` beside the object it came from, as ``export`` does; raises nothing about their agreement.

    Args:
        source: What ``export`` takes.
        model: What came out: a ``Model``, or anything ``load`` reads.
        sample: What the source is called with.
        providers: Who runs the model; by default ``cpu``, and ``onnxruntime`` where it is installed.
        tolerance: What agreement means: a number, ``(atol, rtol)`` or a ``Tolerance``; see ``compare``.
        weights: See ``export``.
        progress: See ``export``.

    Returns:
        The report; it is true when they agree and somebody independent could judge.

    Raises:
        InputError: The sample does not fit, or an argument is none of the things above.
    """
    from entrepot.ir.io.read import load
    from entrepot.runtime.providers import as_providers

    names = None if providers is None else as_providers(providers)
    judging = Judging(names, _tolerance(tolerance), reporter(progress), _place(weights))
    with announcing(judging.progress):
        return exporter_of(source, sample).verify(source, load(model), sample, judging)


def _place(given: PathLike | None) -> Path | None:
    return None if given is None else Path(as_path(given))


def _dynamic(given: Any, shapes: Any) -> Dynamic:
    dynamic = as_dynamic(given)
    if shapes is not None and dynamic != "auto":
        raise InputError("dynamic and dynamic_shapes are two ways to say the same thing", hint="give one of them")
    return dynamic


def _check_beside(target: PathLike | None, weights: Path | None) -> None:
    if weights is None or target is None:
        return
    folder = weights if weights.is_dir() else weights.parent
    if Path(target).absolute().parent.resolve() != folder.resolve():
        raise InputError(
            f"the weights lie in {folder}, and a model refers to files beside it only",
            path=target,
            hint="give a path there, or leave it out and copy the weights with model.save(path, gather=True)",
        )


def _tolerance(given: ToleranceLike | None) -> Tolerance | None:
    from entrepot.parity.tolerance import Tolerance

    return Tolerance.of(given)
