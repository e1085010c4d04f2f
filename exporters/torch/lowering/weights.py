"""The weights of an exported model: its own, copied once from the module, or on request shared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir
import torch

from entrepot.exporters.torch.upstream import TorchTensor, writes
from entrepot.exporters.weight_store import WeightStore
from entrepot.ir.derived import DerivedTensor
from entrepot.ir.io.weights import all_tensors

_SAMPLED = 64  # how many elements of a weight are looked at: a training step changes nearly all of them


def settle_weights(model: onnx_ir.Model, store: WeightStore, *, share: bool) -> None:
    """Copy the weights into the store, or link them to those of the module."""
    if share:
        _link_weights(model)
    else:
        _copy_weights(model, store)


def refer_to_weights(
    model: onnx_ir.Model, reference: Callable[[onnx_ir.TensorProtocol], onnx_ir.TensorProtocol | None]
) -> None:
    """Replace weights that lie in files by references to them."""
    _replace(model, lambda tensor: reference(tensor) or tensor)


def weight_names(module: torch.nn.Module) -> set[str]:
    """The names of a module's parameters and buffers; other initializers are constants of its code."""
    return {name for name, _ in (*module.named_parameters(), *module.named_buffers())}


def _copy_weights(model: onnx_ir.Model, store: WeightStore) -> None:
    """Give ``model`` weights of its own, so that nothing done to the module later changes it.

    Weights that are views of one storage are copied with it if that takes less than a copy of each.
    """
    live = [tensor for tensor, _ in all_tensors(model) if isinstance(tensor, TorchTensor)]
    copies = dict(zip(map(id, live), _copied([tensor.raw for tensor in live], store), strict=True))

    def copied(tensor: Any) -> np.ndarray:
        return copies[id(tensor)] if id(tensor) in copies else store.kept(tensor.numpy())

    _replace(model, lambda tensor: _owned(tensor, copied(tensor)))


def _link_weights(model: onnx_ir.Model) -> None:
    """Share the weights with the module, and let each say when it has changed."""
    _replace(model, _linked)


class LinkedTensor(onnx_ir.LazyTensor):
    """A weight that is read from the module whenever it is asked for.

    Args:
        tensor: What gives the values.
        sources: The module's tensors that they come from.
    """

    def __init__(self, tensor: onnx_ir.TensorProtocol, sources: Sequence[torch.Tensor]) -> None:
        shape = onnx_ir.Shape(tensor.shape.numpy())
        super().__init__(lambda: tensor, tensor.dtype, shape, name=tensor.name)
        self._sources = tuple(sources)

    def fingerprint(self) -> tuple[Any, ...]:
        """Changes when the module's tensors do; a write that bypasses the version counter shows in sampled values."""
        return tuple(_fingerprint(source) for source in self._sources)


def _fingerprint(tensor: torch.Tensor) -> tuple[Any, ...]:
    tensor = tensor.detach()
    places = np.unique(np.linspace(0, max(tensor.numel() - 1, 0), _SAMPLED).astype(np.int64))[: tensor.numel()]
    index = tuple(torch.from_numpy(each) for each in np.unravel_index(places, tuple(tensor.shape) or (1,)))
    seen = tensor.reshape(tuple(tensor.shape) or (1,))[index]
    return writes(tensor), tensor.data_ptr(), seen.contiguous().view(torch.uint8).numpy().tobytes()


def _replace(model: onnx_ir.Model, change: Callable[[Any], onnx_ir.TensorProtocol]) -> None:
    """Replace every tensor of a model, in initializers and attributes; each object is replaced only once."""
    done: dict[int, tuple[Any, onnx_ir.TensorProtocol]] = {}  # keeps the old ones alive, so that no id is used twice

    def changed(tensor: Any) -> Any:
        if not isinstance(tensor, TorchTensor | DerivedTensor):
            return tensor
        if id(tensor) not in done:
            done[id(tensor)] = tensor, change(tensor)
        return done[id(tensor)][1]

    for graph in _graphs(model):
        for value in graph.initializers.values():
            value.const_value = changed(value.const_value)
    for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph):
        for name, attribute in node.attributes.items():
            if attribute.type == onnx_ir.AttributeType.TENSOR and isinstance(attribute.value, TorchTensor):
                node.attributes[name] = onnx_ir.AttrTensor(name, changed(attribute.value))


def _graphs(model: onnx_ir.Model) -> Iterator[onnx_ir.Graph]:
    yield model.graph
    yield from model.graph.subgraphs()


def _owned(tensor: Any, array: np.ndarray) -> onnx_ir.TensorProtocol:
    return onnx_ir.Tensor(array, dtype=tensor.dtype, shape=onnx_ir.Shape(tensor.shape.numpy()), name=tensor.name)


def _linked(tensor: Any) -> onnx_ir.TensorProtocol:
    parts = tensor.sources if isinstance(tensor, DerivedTensor) else (tensor,)
    return LinkedTensor(tensor, [part.raw for part in parts if isinstance(part, TorchTensor)])


def _as_numpy(tensor: torch.Tensor) -> np.ndarray:
    return TorchTensor(tensor).numpy()


def _copied(tensors: Iterable[torch.Tensor], store: WeightStore) -> Iterator[np.ndarray]:
    """A copy of each, in order; views that overlap share the copy of their storage."""
    plain = [tensor.detach().resolve_conj().resolve_neg() for tensor in tensors]
    needed: dict[int, int] = {}
    for tensor in plain:
        place = tensor.untyped_storage().data_ptr()
        needed[place] = needed.get(place, 0) + tensor.nbytes
    whole: dict[int, np.ndarray] = {}
    for tensor in plain:
        storage, view = tensor.untyped_storage(), _as_numpy(tensor)
        place = storage.data_ptr()
        if needed[place] <= storage.nbytes():
            yield store.kept(view)
            continue
        if place not in whole:
            whole[place] = store.kept(tensor.new_empty(0, dtype=torch.uint8).set_(storage).numpy(force=True))
        steps = [step * view.itemsize for step in tensor.stride()]
        yield np.ndarray(view.shape, view.dtype, whole[place], tensor.storage_offset() * view.itemsize, steps)
