"""What a call of ``export`` must leave as it found it: the module, the random state, torch's global flags."""

from __future__ import annotations

import contextlib
import io
import logging
import operator
import random
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.quantised.observers import observers_off
from entrepot.exporters.torch.running.bags import bags_checked
from entrepot.exporters.torch.running.contents import Contents, contents, same_members
from entrepot.exporters.torch.running.kept_weights import WeightKeeper
from entrepot.exporters.torch.running.objects import HeldObjects
from entrepot.exporters.torch.running.padding import padding_as_in_inference
from entrepot.exporters.torch.running.skipped_masks import skipped_masks
from entrepot.exporters.torch.running.sparse import is_sparse, same_entries
from entrepot.exporters.torch.running.stepping import Place
from entrepot.exporters.torch.running.systems import solved_systems
from entrepot.exporters.torch.upstream import writes
from entrepot.ir.errors import ConversionError

_NOISY_LOGGERS = (
    "torch.onnx",
    "torch.export",
    "torch._export",
    "torch._dynamo",
    "torch.fx",
    "torch._subclasses",
    "onnxscript",
)


class ModuleState:
    """Modes, buffers and attributes of a module and all its submodules, as they were.

    Parameters are not copied (they are the bulk of a model), but for those that are written to while ``keeping``, or
    are known to be; of the others it is checked that nothing writes to them.

    Attributes:
        written: The names of the parameters that were written to.
    """

    def __init__(self, module: torch.nn.Module, written: Iterable[str] = ()) -> None:
        self._names = dict(module.named_modules())
        self._attributes = [(part, _shallow(part.__dict__)) for part in self._names.values()]
        self._plain = [(part, tuple(part.__dict__), tuple(part.__dict__.values())) for part in self._names.values()]
        self._contents = Contents(each for _, attributes in self._attributes for each in attributes.values())
        self._objects = HeldObjects(
            value for _, held in self._attributes for key, (value, _) in held.items() if key not in _REGISTERED
        )
        self.written = list(written)
        weights = {id(weight): weight for weight in map(module.get_parameter, self.written)}
        held = (*module.buffers(), *self._in_attributes(), *self._objects.tensors())
        kept = {id(tensor): tensor for tensor in held} | weights
        self._buffers = [(tensor, writes(tensor), tensor.detach().clone()) for tensor in kept.values()]
        self._parameters = [
            (name, value, writes(value)) for name, value in module.named_parameters() if id(value) not in weights
        ]
        self._torch = torch.get_rng_state()
        self._numpy = np.random.get_state()  # noqa: NPY002 - the global state is what forward may draw from
        self._python = random.getstate()

    def restore(self) -> None:
        """Put everything back.

        Raises:
            ConversionError: ``forward`` wrote to a parameter.
        """
        for part, keys, values in self._plain:
            held = part.__dict__
            if len(held) != len(keys) or not all(map(operator.is_, held.values(), values)) or tuple(held) != keys:
                _restore_attributes(part, dict(zip(keys, values, strict=True)))
        self._contents.restore()
        self._objects.restore()
        with torch.no_grad():
            for index, (buffer, version, value) in enumerate(self._buffers):
                if _written(buffer, version, value):
                    buffer.copy_(value)
                    self._buffers[index] = (buffer, writes(buffer), value)
        torch.set_rng_state(self._torch)
        np.random.set_state(self._numpy)  # noqa: NPY002
        random.setstate(self._python)
        for name, value, version in self._parameters:
            if writes(value) != version:
                raise ConversionError(
                    f"forward writes to the parameter '{name}'",
                    value=name,
                    hint="compute the new value out of place, or make it a buffer",
                )

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Inside, parameters that are written to are kept, and put back as buffers are."""
        with WeightKeeper((value, version) for _, value, version in self._parameters) as keeper:
            yield
        self._buffers += keeper.kept.values()
        self.written += [name for name, value, _ in self._parameters if id(value) in keeper.kept]
        self._parameters = [each for each in self._parameters if id(each[1]) not in keeper.kept]

    def changed(self) -> list[Place]:
        """The buffers and attributes that ``forward`` has written to or replaced since the last ``restore``."""
        written = {id(tensor) for tensor, version, value in self._buffers if _written(tensor, version, value)}
        return [
            Place(path, key)
            for (path, part), (_, attributes) in zip(self._names.items(), self._attributes, strict=True)
            for key in (*_changed_keys(part, attributes, written), *self._changed_objects(attributes, written))
        ]

    def _changed_objects(self, attributes: dict[str, tuple[Any, Any]], written: set[int]) -> Iterator[str]:
        return (
            key
            for key, (value, _) in attributes.items()
            if key not in _REGISTERED and self._objects.changed(value, written)
        )

    def _in_attributes(self) -> Iterator[torch.Tensor]:
        """Tensors in attributes, and in lists and dicts there; parameters are checked, and buffers in a place apart."""
        for _, attributes in self._attributes:
            for key, (value, held) in attributes.items():
                if key not in _REGISTERED:
                    members = held.values() if isinstance(held, dict) else held or ()
                    yield from (each for each in (value, *members) if type(each) is torch.Tensor)


@contextlib.contextmanager
def untouched(module: torch.nn.Module, *, training: bool = False) -> Iterator[ModuleState]:
    """Inside, no gradients, and evaluation mode unless ``training`` keeps the module's own; then all is as before."""
    modes = [
        (part, part.training) for part in module.modules() if hasattr(part, "training")
    ]  # a frozen script lacks it
    fastpath = torch.backends.mha.get_fastpath_enabled()
    for part, _ in modes:
        part.training = (
            part.training and training
        )  # not part.eval(): an overridden train() may do more, such as merging weights
    off = contextlib.nullcontext() if training else observers_off(module)
    as_in_use = padding_as_in_inference(module), bags_checked(), _as_without_an_export(module)
    with torch.no_grad(), off, contextlib.ExitStack() as stack:
        for each in (*as_in_use, _no_logs()):
            stack.enter_context(each)
        state = ModuleState(module)
        try:
            # The fused inference kernels of MultiheadAttention have no graph form.
            torch.backends.mha.set_fastpath_enabled(False)
            yield state
        finally:
            torch.backends.mha.set_fastpath_enabled(fastpath)
            try:
                state.restore()
            finally:
                for part, mode in modes:
                    part.training = mode


@contextlib.contextmanager
def _as_without_an_export(module: torch.nn.Module) -> Iterator[None]:
    """Inside, what transformers does otherwise in an export, it does as without one."""
    with solved_systems(module), skipped_masks():
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the prints, warnings and logging of torch and of a module that runs many times.

    Errors are still raised. It wraps single calls, so that progress can be reported between them.
    """
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        with _no_logs():
            yield


@contextlib.contextmanager
def _no_logs() -> Iterator[None]:
    """Inside, noisy loggers say nothing. A level that changes makes every logger forget which messages it takes."""
    levels = {logger: logger.level for logger in map(logging.getLogger, _NOISY_LOGGERS)}
    noisy = [logger for logger, level in levels.items() if level != logging.CRITICAL]
    try:
        for logger in noisy:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger in noisy:
            logger.setLevel(levels[logger])


def random_state() -> dict[str, object]:
    """By library, a state that changes when somebody draws from its global generator."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    inner = numpy["state"]
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy.random": (inner["key"].tobytes(), inner["pos"], numpy["has_gauss"], numpy["gauss"]),
        "random": random.getstate(),
    }


def _written(tensor: torch.Tensor, version: int, value: torch.Tensor) -> bool:
    """Not every write is counted: those of torch's batch normalisations are not, nor those through ``.data``."""
    return writes(tensor) != version or not (same_entries if is_sparse(value) else torch.equal)(tensor, value)


_REGISTERED = ("_parameters", "_buffers", "_modules")


def _changed_keys(part: torch.nn.Module, attributes: dict[str, tuple[Any, Any]], written: set[int]) -> Iterator[str]:
    now, before = vars(part), {key: value for key, (value, _) in attributes.items()}
    kept = dict(part.named_buffers(recurse=False))
    buffers = attributes.get("_buffers", (None, None))[1] or kept  # those of a script are no dict
    yield from (key for key in buffers if kept.get(key) is not buffers[key] or id(buffers[key]) in written)
    for key in dict.fromkeys((*before, *now)):
        if key not in _REGISTERED:
            value, held = attributes.get(key, (None, None))
            members = held.values() if isinstance(held, dict) else held or ()
            if (
                now.get(key) is not value
                or not same_members(contents(value), held)
                or any(id(each) in written for each in (value, *members))
            ):
                yield key


def _shallow(attributes: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key: (value, contents(value)) for key, value in attributes.items()}


def _restore_attributes(part: torch.nn.Module, attributes: dict[str, Any]) -> None:
    for key in part.__dict__.keys() - attributes.keys():
        del part.__dict__[key]
    part.__dict__.update(attributes)
